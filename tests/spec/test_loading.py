"""Model files: names, and errors that point into the user's own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from symdual.common.errors import ModelError
from symdual.spec.loading import load_model_file, source_text

HEAD = """\
import sympy as sp
from symdual import Model, Scenario
x, u = sp.symbols("x u")
"""


def write(folder: Path, text: str, name: str = "cart.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def refusal(file: Path) -> str:
    with pytest.raises(ModelError) as failure:
        load_model_file(file)
    assert "\n" not in str(failure.value)
    return str(failure.value)


def test_models_and_scenarios_are_named_after_file_and_variable(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        HEAD
        + """
model = Model([x], [u], [x + u])
other = Model([x], [u], [x - u])
third = Model([x], [u], [2 * x - u], name="given")
again = model
_hidden = Model([x], [u], [x])
scenario = Scenario(model, 3, plant=other)
long = Scenario(third, 30)
""",
        "my-cart.py",
    )
    found = load_model_file(file)
    assert list(found.models) == ["my_cart", "other", "given"]
    assert {name: s.model.name for name, s in found.scenarios.items()} == {"my_cart": "my_cart", "long": "given"}
    assert found.scenarios["my_cart"].plant.name == "other"


def test_missing_file(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "nothing.py")
    assert "does not exist" in refusal(tmp_path)


def test_not_a_python_file(tmp_path: Path) -> None:
    assert "not a Python file" in refusal(write(tmp_path, "", "model.txt"))


def test_no_model(tmp_path: Path) -> None:
    text = refusal(write(tmp_path, HEAD))
    assert "cart.py contains no Model" in text


def test_an_error_of_the_file_is_shown_with_its_own_line(tmp_path: Path) -> None:
    text = refusal(write(tmp_path, HEAD + "def slope():\n    return 1 / 0\n\n\ny = slope()\n"))
    assert f"{tmp_path / 'cart.py'}:5: the file raises ZeroDivisionError: division by zero" in text


def test_an_error_inside_a_library_points_to_the_calling_line(tmp_path: Path) -> None:
    text = refusal(write(tmp_path, HEAD + "import numpy as np\nnp.linalg.inv(np.zeros((2, 3)))\n"))
    assert "cart.py:5: the file raises LinAlgError" in text


def test_a_refused_model_is_shown_with_its_line(tmp_path: Path) -> None:
    text = refusal(write(tmp_path, HEAD + "\nmodel = Model([x], [u], [x + y])\n".replace("y", "sp.Symbol('y')")))
    assert "cart.py:5: the dynamics of" in text
    assert "'y'" in text


def test_a_syntax_error_is_shown_with_its_line_and_file(tmp_path: Path) -> None:
    assert "cart.py:4: the file is not valid Python" in refusal(write(tmp_path, HEAD + "x = (\n"))
    write(tmp_path, "\n\ny = = 2\n", "broken_helper.py")
    assert "broken_helper.py:3:" in refusal(write(tmp_path, HEAD + "import broken_helper\n"))


def test_a_file_that_exits_is_no_success(tmp_path: Path) -> None:
    assert "cart.py:4: the file raises SystemExit" in refusal(write(tmp_path, HEAD + "raise SystemExit(0)\n"))


def test_an_error_text_of_many_lines_becomes_one_sentence(tmp_path: Path) -> None:
    assert "one two three" in refusal(write(tmp_path, HEAD + "raise ValueError('one\\ntwo\\n  three')\n"))


def test_two_models_of_one_name(tmp_path: Path) -> None:
    text = refusal(write(tmp_path, HEAD + "a, b = (Model([x], [u], [x + c * u], name='same') for c in (1, 2))\n"))
    assert '"same"' in text


def test_a_scenario_of_a_model_without_a_name(tmp_path: Path) -> None:
    text = refusal(write(tmp_path, HEAD + "model = Model([x], [u], [x])\ns = Scenario(Model([x], [u], [x + u]), 2)\n"))
    assert '"s"' in text


def test_file_names_that_are_no_identifiers(tmp_path: Path) -> None:
    assert "identifier" in refusal(write(tmp_path, HEAD + "model = Model([x], [u], [x])\n", "2nd try.py"))


def test_neighbours_can_be_imported_and_leave_no_traces(tmp_path: Path) -> None:
    write(tmp_path, "GAIN = 3\n", "neighbour_of_cart.py")
    file = write(tmp_path, HEAD + "from neighbour_of_cart import GAIN\nmodel = Model([x], [u], [x + GAIN * u])\n")
    assert "3*u" in str(load_model_file(file).models["cart"].dynamics[0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cart.py", "neighbour_of_cart.py"]


def test_a_file_that_goes_elsewhere_is_followed_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, HEAD + "import os\nos.chdir('/')\nmodel = Model([x], [u], [x + u])\n")
    load_model_file("cart.py")
    assert Path.cwd() == tmp_path


def test_an_error_without_words(tmp_path: Path) -> None:
    speechless = "class Speechless(Exception):\n    def __str__(self):\n        raise ValueError\nraise Speechless\n"
    assert "the file raises Speechless: (without words)" in refusal(write(tmp_path, HEAD + speechless))


def test_the_text_of_a_file_with_bytes_of_another_encoding_in_a_comment(tmp_path: Path) -> None:
    """Python runs such a file, so its page is written too; in strings these bytes are an error of the file."""
    file = tmp_path / "cart.py"
    file.write_bytes(f"{HEAD}model = Model([x], [u], [x + u])\n".encode() + "# gr\xfc\xdfe\n".encode("latin-1"))
    assert list(load_model_file(file).models) == ["cart"]
    assert source_text(file).endswith("# gr\ufffd\ufffde\n")
