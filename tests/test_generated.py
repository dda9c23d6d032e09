"""generated/ is what the generator writes, whole or by digests; `make generated` writes it again."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pytest

from symdual.common.parts import PARTS
from symdual.derive.derivation import derive
from symdual.emit import code, render
from symdual.emit.facts import Facts
from symdual.emit.package import package
from symdual.spec.loading import contents_of, load_model_file
from symdual.spec.names import RESERVED

from .emit.test_combinations import combinations, scenario
from .goldens import DIGESTS, GENERATED, MODEL_FILES, ROOT, WHOLE, committed_digests, digests, files_of, packages

Packages = dict[str, dict[str, bytes]]


@pytest.fixture(scope="module")
def fresh(every_package: list[Path]) -> Packages:
    return packages(every_package)


def test_the_papers_models_and_the_examples_are_there() -> None:
    names = {file.stem for file in MODEL_FILES}
    assert names >= {"toy", "schedule", "relevance", "drift", "pendulum", "vehicle", "greenhouse"}


def test_eight_packages_are_committed_and_nothing_else_but_digests() -> None:
    assert sorted(entry.name for entry in GENERATED.iterdir()) == sorted([DIGESTS.name, *WHOLE]), "run `make generated`"
    assert len(WHOLE) == 8


def test_committed_packages_and_digests_equal_a_fresh_run(fresh: Packages) -> None:
    whole = packages(GENERATED / name for name in WHOLE)
    committed: dict[str, Any] = {f"{name}/{file}": whole[name][file] for name in WHOLE for file in whole[name]}
    made: dict[str, Any] = {f"{name}/{file}": fresh[name][file] for name in WHOLE for file in fresh[name]}
    committed |= committed_digests()
    for name in fresh.keys() - set(WHOLE):
        made |= digests(name, fresh[name])
    changed = sorted(file for file in {*made, *committed} if made.get(file) != committed.get(file))
    model = changed[0].partition("/")[0] if changed else ""
    how = f"`python tests/goldens.py {model}` shows what has changed in {model}; `make generated` takes it over"
    assert changed == [], how


def test_the_eight_have_every_module_and_every_function(fresh: Packages) -> None:
    have = set[str]().union(*(functions(fresh[name]) for name in WHOLE))
    for name, files in fresh.items():
        assert functions(files) - have == set(), f"none of the eight whole packages has this of {name}: choose again"


def functions(files: Mapping[str, bytes]) -> set[str]:
    """The files of a package and the functions in them; those of kernels are made from the names of the user."""
    code = {
        file: text.decode() for file, text in files.items() if file.endswith(".py") and file != "kernels/kernels.py"
    }
    return {*files} | {
        f"{file} {name}" for file in code for name in re.findall(r"^def (\w+)", code[file], re.MULTILINE)
    }


def test_a_change_shows_in_its_file_and_in_the_manifest_alone() -> None:
    before = files_of(GENERATED / "rough")
    digest = json.loads(before["manifest.json"])["package_digest"].encode()
    after = {file: text.replace(digest, b"0" * 64) for file, text in before.items()}
    after["filters/filter.py"] += b"# changed"
    after["manifest.json"] += b" "
    one, other = digests("rough", before), digests("rough", after)
    assert {file for file in one if one[file] != other[file]} == {"rough/filters/filter.py", "rough/manifest.json"}


def test_a_comment_in_the_generator_changes_no_committed_file(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model_file(ROOT / "tests" / "models" / "forms.py").specifications["known"]
    before = package(derive(model))
    monkeypatch.setattr("symdual.emit.package._generator_digest", lambda: "another generator")
    after = package(derive(model))
    assert before.input_digest != after.input_digest
    assert before.files == after.files


_BRANCH = re.compile(r"{%-? *(if|elif|else)\b[^%]*%}")


def test_models_take_every_branch_of_the_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `if`, `elif` and `else` of a template leaves a mark when it is taken."""
    marks: set[str] = set()
    taken: set[str] = set()

    def mark(place: str) -> str:
        taken.add(place)
        return ""

    class Marking(jinja2.FileSystemLoader):
        def get_source(self, environment: jinja2.Environment, template: str) -> Any:
            source, file, fresh = super().get_source(environment, template)
            bare = re.sub(r"{#.*?#}", lambda found: "\n" * found.group(0).count("\n"), source, flags=re.S)

            def after(found: re.Match[str]) -> str:
                place = f"{template}:{bare[: found.start()].count(chr(10)) + 1} {found.group(0)}"
                marks.add(place)
                return f"{found.group(0)}{{{{ mark({place!r}) }}}}"

            return _BRANCH.sub(after, bare), file, fresh

    own = render.environment()
    marking = own.overlay(loader=Marking(render.template_folder()))
    marking.globals["mark"] = mark
    monkeypatch.setattr(render, "environment", lambda: marking)
    sources = [
        *map(load_model_file, MODEL_FILES),
        *(contents_of(scenario(one, "chosen")) for one in combinations()),
    ]
    for model in itertools.chain.from_iterable(source.specifications.values() for source in sources):
        facts = Facts(derive(model))
        for facts.parts in (PARTS, ()):
            for emitted in code.files(facts):
                marking.get_template(emitted.source).render(code.given(emitted, facts))
    assert sorted(marks - taken) == []
    assert len(marks) > 40


def test_names_of_users_cannot_stand_for_those_of_the_generator(fresh: Packages) -> None:
    """In a kernel the user's names are local variables: an argument of the same name would be lost."""
    clashes: set[str] = set()
    for files in fresh.values():
        for function in ast.walk(ast.parse(files["kernels/kernels.py"])):
            if isinstance(function, ast.FunctionDef) and _unpacks(function):
                names = [node for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)]
                local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
                clashes |= {a.arg for a in function.args.args} | ({node.id for node in names} - local)
    assert {"z_in", "terms_out", "noise_out", "math"} <= clashes
    assert sorted(name for name in clashes - RESERVED if not name.startswith("_")) == []


def _unpacks(function: ast.FunctionDef) -> bool:
    """Whether a function gives states and inputs the names of the user."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Subscript)
        and isinstance(node.value.value, ast.Name)
        and node.value.value.id in ("z_in", "u_in")
        for node in function.body
    )
