"""Arrays with names along the last axis: what keeps them, what loses them, and that numpy sees numbers."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from symdual.common.errors import SymdualError
from symdual.common.named_arrays import NamedArray, named

NAMES = ("T", "v_sin[0]", "v_sin[1]", "v_cos[0]")


def some() -> NamedArray:
    return named(np.arange(24.0).reshape(2, 3, 4), NAMES)


def test_a_name_is_a_place_on_the_last_axis() -> None:
    assert some()["T"].tolist() == [[0, 4, 8], [12, 16, 20]]
    assert some()["v_sin"][0, 0].tolist() == [1, 2] and some()["v"][1, 2].tolist() == [21, 22, 23]
    assert isinstance(some()[0][0]["T"], float)
    with pytest.raises(SymdualError, match='nothing of "t", only of T, v_sin'):
        some()["t"]


def test_rows_keep_the_names_and_other_axes_do_not() -> None:
    assert some()[0].names == some()[0][1].names == some()[-1:].names == NAMES
    assert [row.names for row in some()[0]] == [NAMES] * 3
    for plain in (some()[..., 0], some()[:, 1], some()[0, 0], some()[some() > 3], some()["T"]):
        assert type(plain) is np.ndarray
    with pytest.raises(SymdualError, match="has no names any more"):
        some().T["T"]  # type: ignore[call-overload]


def test_what_is_computed_is_plain() -> None:
    array = some()
    for plain in (
        array + 1,
        np.sqrt(array),
        array == array,
        array.mean(axis=0),
        np.stack([array, array]),
        array @ array[0].T,
    ):
        assert type(plain) is np.ndarray
    assert isinstance(array.sum(), float) and isinstance(array[0][0][0], float)
    assert np.array_equal(np.asarray(array), np.arange(24.0).reshape(2, 3, 4))


def test_copies_and_pickles_keep_the_names_and_share_nothing() -> None:
    array = some()
    for twin in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
        assert twin.names == NAMES and np.array_equal(twin, array) and not np.shares_memory(twin, array)


def test_it_shows_its_names() -> None:
    assert repr(some()[0][0]) == "array([0., 1., 2., 3.], names=T, v_sin[0], v_sin[1], v_cos[0])"
    assert "<th" in some()[0]._repr_html_() and "v_cos[0]" in some()[0]._repr_html_()
    assert "and 12 more rows" in named(np.zeros((20, 1)), ("<x>",))._repr_html_()
    assert "&lt;x&gt;" in named(np.zeros(1), ("<x>",))._repr_html_() and "array(" in some()._repr_html_()
