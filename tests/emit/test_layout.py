"""How kernels are laid out as text."""

from __future__ import annotations

from symdual.emit.kernels import KernelFunction
from symdual.emit.layout import function_text
from symdual.emit.steps import Call, Kernel, Line, Loop

LINES = (Line("x", "=", "z_in[0]"),)
STEPS = (
    Call("_exp_16(work, 0, 16)"),
    Loop("g", 3, (Line("total", "+=", "x * data[_i]"),)),
    Line("f_out[0]", "=", "total"),
)
TEXT = '''@njit(**KERNEL)
def f(z_in, f_out):
    """The sum.

        f = sum g

    Shapes: z_in (1).
    Operations: 3.
    """
    x = z_in[0]
    _exp_16(work, 0, 16)
    # g
    for _i in range(3):
        total += x * data[_i]
    f_out[0] = total'''


def kernel(name: str, steps: tuple[Line | Loop | Call, ...], helpers: frozenset[str] = frozenset()) -> KernelFunction:
    body = Kernel(LINES if steps else (), steps, 0, "3", (), (), helpers)
    return KernelFunction(name, ("z_in", "f_out"), "The sum.", ("f = sum g",), "z_in (1)", body)


def test_lines_calls_and_loops() -> None:
    assert function_text(kernel("f", STEPS)) == TEXT


def test_decorators() -> None:
    assert function_text(kernel("_f", STEPS)).startswith("@njit(**INNER)\ndef _f(")
    merged = function_text(kernel("f", STEPS, frozenset({"_sincos"})))
    assert merged.startswith("@njit(**KERNEL, forceinline=True)\n")


def test_what_is_identically_zero_returns() -> None:
    assert function_text(kernel("f", ())).endswith('    """\n    # identically zero\n    return')
