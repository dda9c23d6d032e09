"""The peers' programs: each one that is installed must pass the agreement check, at an awkward small size."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from symdual.bench import PEERS, BenchmarkError, run, workload
from symdual.bench.contender import contender
from symdual.bench.peers import own_side
from symdual.bench.peers.compiler import OPTIMISED, compiler, shared_library
from symdual.bench.timing import verify
from symdual.common.errors import SymdualError

FEATURES = 6


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in ("c", "export") else name for name in PEERS]
)
def test_every_installed_peer_gives_the_reference_answers(name: str, tmp_path: Path) -> None:
    peer = contender(name)
    if reason := peer.missing():
        pytest.skip(reason)
    work = workload.make(FEATURES)
    reference = workload.reference(work)
    offered = peer.implementations(work, tmp_path)
    assert offered
    for one in offered:
        verify(FEATURES, one, reference[one.kernel])


@pytest.mark.soak
def test_repeating_does_not_change_the_answer(tmp_path: Path) -> None:
    work = workload.make(FEATURES)
    reference = workload.reference(work)
    for name in ("numpy", "c"):
        if contender(name).missing():
            continue
        for one in contender(name).implementations(work, tmp_path):
            one.repeat(5)
            for found, expected in zip(one.answer(), reference[one.kernel], strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_reference_derivatives_are_those_of_the_dynamics() -> None:
    work = workload.make(FEATURES)
    step = 1e-6
    for column in range(work.size):
        shift = step * np.eye(work.size)[column]
        ahead = workload.dynamics(work, work.mean + shift, work.control)
        behind = workload.dynamics(work, work.mean - shift, work.control)
        expected = workload.jacobian(work, work.mean)[:, column]
        np.testing.assert_allclose((ahead - behind) / (2 * step), expected, atol=1e-8)
        ahead, behind = (work.costate @ workload.jacobian(work, work.mean + s * shift) for s in (1, -1))
        expected = workload.hessian(work, work.mean, work.costate)[column]
        np.testing.assert_allclose((ahead - behind) / (2 * step), expected, atol=1e-8)


def test_own_order_puts_sines_before_cosines() -> None:
    assert own_side.order(workload.make(4)).tolist() == [0, 1, 2, 4, 3, 5]


def test_unknown_and_missing_peers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SymdualError, match='no peer "casady"; did you mean "casadi"'):
        run(sizes=[2], peers=["casady"])
    monkeypatch.setattr("symdual.bench.peers.c_limit.compiler", lambda: None)
    with pytest.raises(BenchmarkError, match="there is no C compiler"):
        run(sizes=[2], peers=["c"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": [3]}, "even and at least 2, not 3"),
        ({"sizes": [0]}, "even and at least 2, not 0"),
        ({"sizes": []}, "no number of features"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"processes": 0}, "processes must be at least 1"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BenchmarkError, match=message):
        run(**arguments)  # type: ignore[arg-type]


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_a_library_that_does_not_compile_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("this is not C")
    assert shared_library(source, (), tmp_path, 30.0) is None
    source.write_text("int one(void) { return 1; }")
    library = shared_library(source, (), tmp_path, 30.0)
    assert library is not None and library.exists()


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_loading_fast_code_leaves_subnormal_numbers_alone(tmp_path: Path) -> None:
    source = tmp_path / "fast.c"
    source.write_text("double twice(double x) { return 2.0 * x; }")
    library = shared_library(source, OPTIMISED, tmp_path, 30.0)
    assert library is not None
    ctypes.CDLL(str(library))
    assert (np.array([2e-308]) / 4.0)[0] > 0.0
