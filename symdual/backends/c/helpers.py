"""Small functions and structs that are written out where translated code needs them."""

from __future__ import annotations

from symdual.backends.c.kinds import INT, REAL, VOID, Array, Group, Kind, Several, Spelling
from symdual.backends.c.program import Function
from symdual.backends.c.unit import Unit

_PLAIN = {
    "max": "{real} {name}({real} a, {real} b)\n{{\n    return b > a ? b : a;\n}}",
    "min": "{real} {name}({real} a, {real} b)\n{{\n    return b < a ? b : a;\n}}",
    "max_int": "int {name}(int a, int b)\n{{\n    return b > a ? b : a;\n}}",
    "min_int": "int {name}(int a, int b)\n{{\n    return b < a ? b : a;\n}}",
    "floor_quotient": (
        "int {name}(int a, int b)\n{{\n    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);\n}}"
    ),
    "floor_remainder": (
        "int {name}(int a, int b)\n{{\n    const int rest = a % b;\n"
        "    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n}}"
    ),
    "clear": (
        "void {name}({real} *numbers, int count)\n{{\n    for (int i = 0; i < count; i++) {{\n"
        "        numbers[i] = 0;\n    }}\n}}"
    ),
    "bits_of": (
        "uint64_t {name}(double number)\n{{\n"
        "    union {{\n        double number;\n        uint64_t bits;\n    }} both;\n"
        "    both.number = number;\n    return both.bits;\n}}"
    ),
    "number_of": (
        "double {name}(uint64_t bits)\n{{\n    union {{\n        double number;\n        uint64_t bits;\n    }} both;\n"
        "    both.bits = bits;\n    return both.number;\n}}"
    ),
}


def text(name: str, full: str, spelling: Spelling, hint: str) -> str:
    """The text of a helper, with what tells compilers to merge it into its callers."""
    if name.startswith("power_"):
        return f"static {hint} {_power(int(name.removeprefix('power_')), full, spelling.real)}"
    return f"static {hint} " + _PLAIN[name].format(name=full, real=spelling.real)


def _power(exponent: int, full: str, real: str) -> str:
    """x**n by squaring, as numba multiplies."""
    lines, result, square, rest, number = [], "", "x", exponent, 1
    while True:
        if rest & 1:
            result = square if not result else f"{result} * {square}"
        rest >>= 1
        if not rest:
            break
        number *= 2
        lines.append(f"    const {real} x{number} = {square} * {square};\n")
        square = f"x{number}"
    return f"{real} {full}({real} x)\n{{\n{''.join(lines)}    return {result};\n}}"


def struct_text(spelling: Spelling, group: Group) -> str:
    """A named tuple as a struct of pointers and numbers."""
    members = []
    for name, kind in group.fields:
        members += spelling.arguments(kind, name)
    lines = "".join(f"    {member};\n" for member in members)
    return f"typedef struct {{\n{lines}}} {spelling.name(group)};"


def result_text(spelling: Spelling, kind: Several) -> str:
    """Several results as a struct."""
    lines = "".join(f"    {spelling.name(item)} item{n};\n" for n, item in enumerate(kind.items))
    return f"typedef struct {{\n{lines}}} {spelling.name(kind)};"


def wave_function(spelling: Spelling, function: Function, result: str) -> Unit:
    """Sine and cosine of one number by the target's own library."""
    (angle,) = function.arguments
    body = [f"    return ({result}){{sinf({angle}), cosf({angle})}};"]
    signature = f"{result} @({spelling.real} {angle})"
    return Unit(function, (REAL,), result=Several((REAL, REAL)), signature=signature, body=body)


def block_function(spelling: Spelling, function: Function, kinds: tuple[Kind, ...], what: str, count: int) -> Unit:
    """Sine and cosine, or the exponential, of a block by the target's own library."""
    names = function.arguments
    arguments = [spelling.declared(kind, name) for name, kind in zip(names, kinds, strict=True)]
    assert isinstance(kinds[0], Array) and all(kind == INT for kind in kinds[1:])
    work, argument = names[0], names[1]
    if what == "exp":
        turn = [f"        {work}[{names[2]} + i] = expf({work}[{argument} + i]);"]
    else:
        turn = [
            f"        {work}[{names[2]} + i] = sinf({work}[{argument} + i]);",
            f"        {work}[{names[3]} + i] = cosf({work}[{argument} + i]);",
        ]
    body = [f"    for (int i = 0; i < {count}; i++) {{", *turn, "    }"]
    return Unit(
        function, kinds, result=VOID, written=frozenset({work}), signature=f"void @({', '.join(arguments)})", body=body
    )
