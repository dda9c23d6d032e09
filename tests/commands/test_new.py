"""`symdual new`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from symdual.commands.group import main
from symdual.derive.derivation import derive
from symdual.spec.loading import load_model_file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_a_model_file(here: Path) -> None:
    done = CliRunner().invoke(main, ["new", "cart", "--json", "told.json"])
    assert done.exit_code == 0 and "symdual simulate cart.py" in done.stdout
    assert json.loads((here / "told.json").read_text()) == {"file": "cart.py"}
    contents = load_model_file(here / "cart.py")
    assert list(contents.models) == ["cart"] and list(contents.scenarios) == ["cart"]
    assert derive(contents.models["cart"]).theta_size == 2
    text = (here / "cart.py").read_text()
    assert text.count("#") > 8 and "symdual simulate cart.py" in text


def test_the_line_that_is_commented_out_is_right_too(here: Path) -> None:
    CliRunner().invoke(main, ["new", "cart.py"])
    file = here / "cart.py"
    file.write_text(file.read_text().replace("    # truth=", "    truth="))
    truth = load_model_file(file).scenarios["cart"].truth
    assert truth is not None and truth.tolist() == [0.6, 0.4]  # gain, friction: the order of the file


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("there", "there.py is there already"),
        ("2carts", "2carts"),
        ("class", "class"),
        ("a b", "a b"),
        ("no/folder/cart", "cannot write no/folder/cart.py"),
        ("", "name"),
    ],
)
def test_what_it_refuses(here: Path, name: str, sentence: str) -> None:
    (here / "there.py").write_text("mine")
    done = CliRunner().invoke(main, ["new", name])
    assert done.exit_code == 2 and sentence in done.output and len(done.output.splitlines()) == 1
    assert (here / "there.py").read_text() == "mine" and len(list(here.iterdir())) == 1
