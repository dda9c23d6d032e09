"""numba's cache: never stale, and never emptied without need. Each step runs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from math import cos, sin, tanh
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

HEAD = """
    import hashlib, json, os
    from pathlib import Path
    import numba, numpy as np, sympy as sp
    import symdual
    from symdual import Model, features
    from symdual.runtime import evaluate
    from tests.forked import in_new_process, results

    x, u = sp.symbols("x u")

    def cart(frequency=1.0, mean=0.0, sign=1):
        slope = features.fourier("g", x, count=2, frequencies=[frequency], mean=mean)
        return Model([x], [u], [x + sign * slope + u], name="cart")
"""

UNCHANGED = (
    HEAD
    + """
    def step(model):
        made = symdual.generate(model, "generated")[0]
        package = symdual.load(made.folder, backend="numba")
        value = evaluate.dynamics(package, [0.5], [0.0], package.numbers["prior_mean"])[0]
        stats = package.kernels.dynamics.stats
        listed = [f for f in sorted(made.folder.iterdir()) if f.is_file()]
        files = [[f.name, hashlib.sha256(f.read_bytes()).hexdigest(), f.stat().st_mtime_ns] for f in listed]
        return [made.changed, value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), files]

    numbers = [cart(mean=1.0), cart(mean=1.0), cart(mean=2.0), cart(mean=2.0, frequency=3.0)]
    for model in (*numbers, cart(sign=-1, mean=1.0)):
        in_new_process(step, model)
    print(json.dumps(results))
"""
)


def test_nothing_is_compiled_again_without_need(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    steps = json.loads(fresh_python(UNCHANGED, tmp_path).stdout)
    changed, values, hits, misses, files = zip(*steps, strict=True)
    assert changed == (True, False, True, True, True)
    assert files[0] == files[1]  # bytes and times
    # a prior or a frequency is data: new numbers, old code; another sign is new code
    assert hits == (0, 1, 1, 1, 0)
    assert misses == (1, 0, 0, 0, 1)
    assert values[0] == values[1] == pytest.approx(0.5 + sin(0.5) + cos(0.5))
    assert values[2] == pytest.approx(0.5 + 2 * (sin(0.5) + cos(0.5)))
    assert values[3] == pytest.approx(0.5 + 2 * (sin(1.5) + cos(1.5)))
    assert values[4] == pytest.approx(0.5 - sin(0.5) - cos(0.5))


#: A function in another file that calls a kernel, as the recursions do.
CALLER = '''\
"""Calls a kernel of {{ name }}."""

from numba import njit

from .kernels.kernels import dynamics


@njit(cache=True)
def call(z_in, u_in, data, work, f_out):
    dynamics(0, z_in, u_in, data, work, f_out)
    return 10.0 * f_out[0]
'''

STALE = (
    HEAD
    + """
    import shutil
    from symdual import generation
    from symdual.emit import code, package as packaging, printer, render, write

    templates = Path("templates")
    shutil.copytree(render.template_folder(), templates)
    shutil.copy("caller.py.jinja", templates)
    render.template_folder = lambda: templates
    packaging.template_folder = render.template_folder
    whole = code.files

    def few(derivation, placeholder=""):
        places = ("__init__", "options", "pipeline", "kernels/__init__", "kernels/kernels")
        kept = [file for file in whole(derivation, placeholder) if file.place in places]
        return (*kept, code.File("caller"))

    code.files = few

    def write_in_one_second(package, folder, keep_compiled):  # all that Python looks at, besides the size
        target = write.write(package, folder, keep_compiled)
        for file in target.rglob("*.py"):
            os.utime(file, (second, second))
        return target

    generation.write = write_in_one_second
    generation.is_unchanged = lambda *arguments: False

    def step(edit, written):
        global second
        second = written
        if edit == "printer":
            printer.KernelPrinter._print_tanh = lambda self, e: f"(100.0 + math.tanh({self._print(e.args[0])}))"
        elif edit == "template":
            kernels = templates / "kernels" / "kernels.py.jinja"
            text = kernels.read_text()
            changed = text.replace("{{ functions }}", "{{ functions | replace('math.tanh', '7.0 * math.tanh') }}", 1)
            assert changed != text
            kernels.write_text(changed)
        made = symdual.generate(Model([x], [u], [sp.tanh(x) + u], name="tanh"), "generated")[0]
        package = symdual.load(made.folder, backend="numba")
        out = np.zeros(1)
        value = package.caller.call(np.array([0.5]), np.zeros(1), np.zeros(0), np.zeros(package.WORK), out)
        return [value, sum(package.caller.call.stats.cache_hits.values())]

    for edit, written in (("", 1), ("", 1), ("printer", 1), ("printer", 2), ("", 2), ("template", 3)):
        in_new_process(step, edit, written)
    print(json.dumps(results))
"""
)


def test_a_cached_caller_never_returns_stale_results(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The body of a kernel changes through the printer or a template; its caller lies in another, unchanged file."""
    (tmp_path / "caller.py.jinja").write_text(CALLER)
    values, hits = zip(*json.loads(fresh_python(STALE, tmp_path).stdout), strict=True)
    plain, edited = 10 * tanh(0.5), 10 * (100 + tanh(0.5))
    assert values[:5] == pytest.approx((plain, plain, edited, edited, plain))
    assert values[5] == pytest.approx(7 * plain)
    assert hits[0] == 0
    assert hits[1] == 1  # the caller really was cached
    assert hits[2] == 0
