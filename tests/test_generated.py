"""generated/ is what the generator writes, byte for byte; `make generated` writes it again."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import jinja2
import pytest

import symdual
from symdual.derive.derivation import derive
from symdual.emit import code, render
from symdual.emit.package import package
from symdual.spec.loading import load_model_file
from symdual.spec.names import RESERVED

ROOT = Path(__file__).resolve().parent.parent
COMMITTED = ROOT / "generated"
MODEL_FILES = sorted(
    file
    for folder in (ROOT / "symdual" / "paper" / "models", ROOT / "examples", ROOT / "tests" / "models")
    for file in folder.glob("*.py")
    if not file.name.startswith("_")
)


def packages(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of each package; what Python and numba keep beside them is no part of it."""
    return {
        package.name: {
            str(file.relative_to(package)): file.read_bytes()
            for file in sorted(package.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }
        for package in sorted(folder.iterdir())
        if package.is_dir()
    }


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("fresh")
    for file in MODEL_FILES:
        symdual.generate(file, folder)
    return packages(folder)


def test_the_papers_models_and_the_examples_are_there() -> None:
    names = {file.stem for file in MODEL_FILES}
    assert names >= {"toy", "schedule", "relevance", "drift", "pendulum", "vehicle", "greenhouse"}


def test_every_package_is_committed_and_no_other(fresh: dict[str, dict[str, bytes]]) -> None:
    assert sorted(packages(COMMITTED)) == sorted(fresh), "run `make generated`"
    strays = [entry.name for entry in COMMITTED.iterdir() if not entry.is_dir()]
    assert strays == []


def test_committed_files_equal_a_fresh_run(fresh: dict[str, dict[str, bytes]]) -> None:
    committed = packages(COMMITTED)
    for name, files in fresh.items():
        assert sorted(committed[name]) == sorted(files), f"{name}: run `make generated`"
        for file, content in files.items():
            assert committed[name][file] == content, f"{name}/{file}: run `make generated`"


def test_a_comment_in_the_generator_changes_no_committed_file(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model_file(ROOT / "tests" / "models" / "forms.py").models["known"]
    before = package(derive(model))
    monkeypatch.setattr("symdual.emit.package._generator_digest", lambda: "another generator")
    after = package(derive(model))
    assert before.input_digest != after.input_digest
    assert before.files == after.files


_BRANCH = re.compile(r"{%-? *(if|elif|else)\b[^%]*%}")


def test_committed_packages_take_every_branch_of_the_templates(monkeypatch: pytest.MonkeyPatch) -> None:
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
    for file in MODEL_FILES:
        for model in load_model_file(file).models.values():
            for emitted in code.files(derive(model)):
                marking.get_template(f"{emitted.template}.py.jinja").render(emitted.context._asdict())
    assert sorted(marks - taken) == []
    assert len(marks) > 40


def test_names_of_users_cannot_stand_for_those_of_the_generator() -> None:
    """In a kernel the user's names are local variables: an argument of the same name would be lost."""
    clashes: set[str] = set()
    for file in COMMITTED.glob("*/kernels.py"):
        for function in ast.walk(ast.parse(file.read_text())):
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
