"""Every function that templates can emit is used in some package: by another one of it, or by symdual."""

from __future__ import annotations

import dis
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parents[2]
#: Python asks for the first by itself; those of a process carry its name, which fits put together
ASKED = {"__getattr__", "kernel_g", "slopes_g"}


def _functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _functions(constant)


def defined_and_used(source: str) -> tuple[set[str], set[str]]:
    """The functions of a module, and the names that it uses: imported names and a function's own do not count."""
    code = compile(source, "module", "exec", dont_inherit=True)
    functions = [one for one in code.co_consts if isinstance(one, CodeType) and one.co_name[0] != "<"]
    used = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_NAME"}
    for function in functions:
        within = {name for one in (function, *_functions(function)) for name in one.co_names}
        used |= within - {function.co_name}
    return {function.co_name for function in functions}, used


def test_every_function_is_used_in_some_package() -> None:
    text = "\n".join(file.read_text() for file in (ROOT / "symdual").rglob("*.py"))
    needed: dict[str, bool] = defaultdict(bool)
    for folder in (file.parent for file in (ROOT / "generated").glob("*/__init__.py")):
        modules = [defined_and_used(file.read_text()) for file in folder.glob("*.py")]
        used = set[str]().union(*(names for _, names in modules))
        for name in set[str]().union(*(names for names, _ in modules)):
            needed[name] |= name in used
    idle = {name for name, use in needed.items() if not use and f".{name}" not in text and f'"{name}"' not in text}
    assert idle <= ASKED


def test_what_is_unused_is_found() -> None:
    source = "from .a import far\n\ndef once():\n    far()\n\ndef again():\n    again()\n\nfirst = once\n"
    defined, used = defined_and_used(source)
    assert defined - used == {"again"} and "far" in used
    assert "far" not in defined_and_used("from .a import far\n")[1]
