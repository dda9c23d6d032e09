"""What generated code uses of numba that is private to numba: it must be there, and mean what it did.

Only versions that are known are looked at; any other is used by what it documents, which the last tests try here too.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import codegen, cpu, typed_passes, types
from numba.core.compiler import DefaultPassBuilder, Flags

from symdual.common.numba_versions import TESTED, is_known
from symdual.runtime.loading import LoadedPackage

ADVICE = (
    f"numba {numba.__version__} has changed what templates/pipeline.py.jinja relies on; "
    "mend it there, or take the version from symdual/common/numba_versions.py"
)
known = pytest.mark.skipif(not is_known(numba.__version__), reason="needs a numba that is known from inside")

PRIVATE = ("no_cpython_wrapper", "no_cfunc_wrapper", "_nrt", "numba.core.", "pipeline_class")


def test_they_stand_in_one_place() -> None:
    templates = sorted((Path(__file__).parents[2] / "templates").rglob("*.py.jinja"))
    assert [file.name for file in templates if any(word in file.read_text() for word in PRIVATE)] == [
        "pipeline.py.jinja"
    ]


@known
def test_options_of_kernels(numba_toy_package: LoadedPackage) -> None:
    kernel = numba_toy_package.kernels.dynamics.targetoptions
    fast = {"contract", "reassoc"}
    assert {key: kernel[key] for key in ("fastmath", "error_model", "_nrt")} == {
        "fastmath": fast,
        "error_model": "numpy",
        "_nrt": False,
    }
    assert {**numba_toy_package.options.KERNEL, "fastmath": {"contract"}} == numba_toy_package.options.EXACT


@pytest.mark.parametrize("option", ["no_cpython_wrapper", "no_cfunc_wrapper", "_nrt"])
@known
def test_options_of_functions_exist(option: str) -> None:
    assert hasattr(cpu.CPUTargetOptions, option), ADVICE


@pytest.mark.parametrize("method", ["_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"])
@known
def test_libraries_are_finished_by_methods_that_can_be_replaced(method: str) -> None:
    body = inspect.getsource(codegen.CPUCodeLibrary.finalize)
    assert hasattr(codegen.CPUCodeLibrary, method), ADVICE
    assert method == "_finalize_dynamic_globals" or f"self.{method}()" in body, ADVICE


@known
def test_lowering_without_machine_code_is_a_flag() -> None:
    assert "no_compile" in Flags.options, ADVICE
    assert "flags.no_compile" in inspect.getsource(typed_passes.BaseNativeLowering.run_pass), ADVICE
    assert "NativeLowering" in inspect.getsource(DefaultPassBuilder.define_nopython_lowering_pipeline), ADVICE


@known
def test_arguments_that_do_not_overlap_are_a_flag() -> None:
    assert "noalias" in Flags.options, ADVICE
    assert "noalias=flags.noalias" in inspect.getsource(typed_passes.BaseNativeLowering.run_pass), ADVICE


@known
def test_operations_are_typed_by_a_method_that_can_be_replaced() -> None:
    """`_ask_once` stands in for it, and tells operations from implementations in Python by `_impl_keys`."""
    assert list(inspect.signature(types.BaseFunction.get_call_type).parameters) == ["self", "context", "args", "kws"]
    assert "self._impl_keys[sig.args] = temp.get_impl_key(sig)" in inspect.getsource(
        types.BaseFunction.get_call_type
    ), ADVICE
    assert "NopythonTypeInference" in inspect.getsource(DefaultPassBuilder.define_typed_pipeline), ADVICE


@known
def test_a_function_is_compiled_once_for_all_numbers(numba_toy_package: LoadedPackage) -> None:
    """numba alone would compile it for 0 and True, for 1 and False, and for numbers that are not known."""
    options = numba_toy_package.options

    @numba.njit(**options.INNER)
    def chosen(n: int, flag: bool) -> int:
        return n + 1 if flag else n

    @numba.njit(**options.INNER)
    def summed(n: int) -> int:
        return chosen(0, True) + chosen(1, False) + chosen(n, n > 2)

    @numba.njit(**options.FAST)
    def entry(n: int) -> int:
        return summed(n)

    assert [entry(n) for n in (2, 3)] == [1 + 1 + 2, 1 + 1 + 4]
    assert list(chosen.overloads) == [(types.int64, types.boolean)], ADVICE


def test_no_template_says_twice_of_what_type_a_number_is() -> None:
    """But for bits of numbers, which only have types of numpy."""
    templates = sorted((Path(__file__).parents[2] / "templates").rglob("*.py.jinja"))
    found = {file.name for file in templates if re.search(r"np\.(int64|bool_)\(", file.read_text())}
    assert found == {"elementary.py.jinja"}


@known
def test_numba_types_as_ever_when_a_package_has_been_compiled(numba_toy_package: LoadedPackage) -> None:
    own, calls = types.BaseFunction.get_call_type, types.Dispatcher.get_call_type
    numba_toy_package.filter.make_filter_workspace(np.zeros(1, numba_toy_package.records.SETTINGS))
    assert own is not numba_toy_package.options.pipeline._ask_once and types.BaseFunction.get_call_type is own
    assert calls is numba_toy_package.options.pipeline._compile_for and types.Dispatcher.get_call_type is calls


@known
def test_an_inner_function_that_is_called_from_python_says_so(numba_toy_package: LoadedPackage) -> None:
    weights = numba_toy_package.records.make_stage_costs(np.eye(1)[None], np.eye(1)[None], np.zeros((1, 1)))
    with pytest.raises(KeyError, match="state_cost is called by compiled code only"):
        numba_toy_package.trajectory.state_cost(weights[0], np.zeros(1))


def test_what_is_not_finite_stays_visible_however_sums_are_reordered(numba_toy_package: LoadedPackage) -> None:
    """numba asks by x - x whether x is finite; where x is a sum, nsz beside reassoc makes that zero."""

    @numba.njit(**numba_toy_package.options.FAST)
    def finite(values: np.ndarray) -> bool:
        return math.isfinite(values[0] + values[1])

    assert [finite(np.array([value, 1.0])) for value in (1.0, math.nan, math.inf)] == [True, False, False]


# ------------------------------------------------------------------------------------------------ without it


@pytest.mark.parametrize(
    ("version", "switch", "expected"),
    [
        (f"{TESTED[-1]}.7", "", True),
        (f"{TESTED[-1]}.0rc1", "", True),
        (f"{TESTED[-1]}.0", "plain", False),
        ("0.60.0", "", False),
        ("7.1.0", "", False),
        ("nightly", "", False),
    ],
)
def test_an_unknown_numba_is_used_by_what_it_documents(
    version: str, switch: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMDUAL_NUMBA", switch)
    assert is_known(version) is expected


PLAIN = """
    import json, sys
    import numpy as np, sympy as sp
    import symdual
    from symdual.runtime import evaluate

    x, u = sp.symbols("x u")
    model = symdual.Model([x], [u], [x + 3 * u * symdual.unknown("b", 1.0, 2.0)], process_noise=0.1, name="gain")
    symdual.generate(model, "generated")
    package = symdual.load("generated/gain", backend="numba")
    value = evaluate.dynamics(package, [0.5], [2.0], [1.0])[0]
    options = package.options
    known = [name for name in sys.modules if name.startswith("symdual") and name.endswith(("pipeline", "sealed_cache"))]
    names = sorted(options.INNER), sorted(options.ENTRY)
    print(json.dumps([value, options.TUNED, *names, options.ENTRY["cache"], known]))
"""


@pytest.mark.parametrize("cache", ["on", "off"])
def test_packages_work_with_what_numba_documents(
    cache: str, tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    printed = fresh_python(PLAIN, tmp_path, SYMDUAL_NUMBA="plain", SYMDUAL_CACHE=cache).stdout
    documented = ["error_model", "fastmath"]
    assert json.loads(printed) == [6.5, False, documented, ["cache", *documented], cache == "on", []]
    kept = list((tmp_path / "generated/gain").rglob("*.nbi"))
    assert bool(kept) is (cache == "on")
