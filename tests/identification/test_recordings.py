"""Recordings on the grid of the model: gaps, uneven times, tables, and what is odd about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symdual.common.errors import SymdualError
from symdual.identification.recordings import first_far, oddities, resampled
from symdual.identification.surroundings import read_recordings
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording


def written(folder: Path, text: str, name: str = "data.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_rows_that_are_left_out_become_steps(toy_package: LoadedPackage, tmp_path: Path) -> None:
    (one,) = read_recordings(written(tmp_path, "time,u,x\n0,1,5\n1,2,\n4,3,7\n5,,8\n"), toy_package)
    assert one.name == "data"
    assert one.inputs[:, 0].tolist() == [1, 2, 2, 2, 3, 0]
    np.testing.assert_array_equal(one.measurements[:, 0], [5, np.nan, np.nan, np.nan, 7, 8])
    assert one.lines.tolist() == [2, 3, 0, 0, 4, 5]
    assert one.times.tolist() == [0, 1, 2, 3, 4, 5]
    assert one.measured == 3


def test_several_recordings_of_one_name(toy_package: LoadedPackage, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files = [
        written(tmp_path, "time,u,x\n0,1,5\n1,2,6\n"),
        written(tmp_path / "other", "time,u,x\n0,1,5\n1,2,6\n2,1,1\n"),
    ]
    assert [(one.name, len(one.times)) for one in read_recordings(files, toy_package)] == [("data0", 2), ("data1", 3)]


def test_a_table_of_columns_is_a_recording(toy_package: LoadedPackage) -> None:
    class Frame(dict[str, Any]):
        """What pandas has: columns by name, and keys."""

    (one,) = read_recordings(Frame(u=[1, 2, 3], x=[4.0, None, 6.0], note=[0, 0, 0]), toy_package)
    assert one.times.tolist() == [0, 1, 2] and one.ignored == ("note",)
    np.testing.assert_array_equal(one.measurements[:, 0], [4, np.nan, 6])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"U": [1, 2], "x": [1, 2]}, 'recording0 has no column "u"'),
        ({"u": [1, 2], "x": ["one", 2]}, 'the column "x" of recording0 holds something that is not a number'),
        ({"u": [1, 2], "x": [1, 2, 3]}, "the columns of recording0 have different lengths"),
        ({"time": [0, 1, 0.5], "u": [1, 2, 3], "x": [1, 2, 3]}, "row 3: the times must be finite and increase"),
        ({"u": [1, np.nan, 3], "x": [1, 2, 3]}, 'row 2: the input "u" is missing'),
        ({"u": [1, 2, 3], "x": [1, np.inf, 3]}, "row 2 is infinite"),
        ({"u": [1], "x": [1]}, "a single row"),
        ([], "no recording"),
    ],
)
def test_bad_tables_are_named(toy_package: LoadedPackage, table: Any, said: str) -> None:
    with pytest.raises(SymdualError, match=said):
        read_recordings(table, toy_package)


def test_uneven_times_are_refused_unless_asked(toy_package: LoadedPackage) -> None:
    table = {"time": [0.0, 1.0, 2.5, 3.0, 4.0], "u": [1.0, 2.0, 4.0, 8.0, 0.0], "x": [0.0, 1.0, 4.0, 5.0, 7.0]}
    with pytest.raises(SymdualError, match=r"comes 1.5 after the row before.*only when asked \(resample\)"):
        read_recordings(table, toy_package)
    (one,) = read_recordings(table, toy_package, resample=True)
    # the step is the median distance, 1; from 2 to 3 the input is 2 for a half and 4 for the other
    np.testing.assert_allclose(one.inputs[:4, 0], [1.0, 2.0, 3.0, 8.0])
    np.testing.assert_allclose(one.measurements[:, 0], [0.0, 1.0, 3.0, 5.0, 7.0])


def test_nothing_is_invented_across_a_gap(toy_package: LoadedPackage) -> None:
    times = np.array([0.0, 1.0, 2.0, 5.3, 6.3])
    recording = Recording(times, np.ones((5, 1)), np.array([[0.0], [1.0], [np.nan], [4.0], [5.0]]), [2, 3, 4, 5, 6], [])
    found = resampled(recording, toy_package).measurements[:, 0]
    np.testing.assert_array_equal(np.isnan(found), [False, False, True, True, True, True, False])
    assert found[6] == pytest.approx(4.7)


def test_a_unit_that_makes_a_billion_steps_is_said(toy_package: LoadedPackage) -> None:
    times = np.array([0.0, 1e-6, 2e-6, 1e3])
    recording = Recording(times, np.ones((4, 1)), np.ones((4, 1)), [2, 3, 4, 5], [])
    with pytest.raises(SymdualError, match=r"has 1e\+09 steps of the model \(1e-06\): check the unit of its times"):
        resampled(recording, toy_package)


def test_columns_that_say_nothing(toy_package: LoadedPackage) -> None:
    constant = read_recordings({"u": [2, 2, 2], "x": [1, 1, 1], "pressure": [1, 2, 3]}, toy_package)
    assert list(oddities(constant, toy_package)) == [
        "columns that the model does not know: pressure",
        'the input "u" never changes (it is 2): the recording does not show what it does',
        'the measurement "x" never changes (it is 1): is its sensor alive?',
    ]
    unseen = read_recordings({"u": [2, 1, 2], "x": [np.nan] * 3}, toy_package)
    assert list(oddities(unseen, toy_package)) == ['"x" was never measured']


def test_a_plan_needs_no_measurements(toy_package: LoadedPackage, tmp_path: Path) -> None:
    (one,) = read_recordings(written(tmp_path, "time,u\n0,1\n1,2\n2,0\n"), toy_package, measured=False)
    assert np.isnan(one.measurements).all() and one.inputs[:, 0].tolist() == [1, 2, 0]
    (one,) = read_recordings(written(tmp_path, "time,u,x\n0,1,3\n1,2,4\n"), toy_package, measured=False)
    assert one.measured == 2
    with pytest.raises(SymdualError, match='no column "u"'):
        read_recordings(written(tmp_path, "time,v\n0,1\n1,2\n"), toy_package, measured=False)


def test_the_first_row_that_is_far_and_its_farthest_column() -> None:
    errors, deviations, noise = np.zeros((5, 3)), np.full((5, 3), 0.1), np.array([1.0, 1.0, 0.0])
    errors[0, 0], errors[1, 2] = np.nan, 1e9  # what has no noise is not judged
    assert first_far(errors, deviations, noise) is None
    errors[2, :2], errors[3, 0] = (150.0, 5000.0), 1e20  # row 2 has thrown row 3 off
    deviations[3, 0] = 0.0
    assert first_far(errors, deviations, noise) == (2, 1)
