"""Records of the likelihood of a recording and of its gradient."""

from __future__ import annotations

from symdual.emit.record import ENTRIES_OF_NOISE, Field, Record


def likelihood_records(state_dependent_noise: bool, second_order: bool) -> tuple[Record, ...]:
    """ROW, BACK and H_HESSIAN; with noise that depends, or terms of second order, there is more to write down."""
    return _row(second_order), _back(state_dependent_noise, second_order), _h_hessian()


def _row(second_order: bool) -> Record:
    moments = (
        Field("u", ("NU",), "input"),
        Field("shares", ("max(NX, NY)",), "of rows of f or h in a second derivative"),
        Field("core", ("2", "NX + NS", "NZ"), "its rows of the states and scalar unknowns, of f and of h"),
        Field("inputs", ("NU", "NZ"), "of f: input by z"),
        Field("uu", ("NU", "NU"), "input by input"),
        Field("diagonals", ("2", "max(NDIAG, OBSERVATION_NDIAG)"), "diagonals between weights"),
        Field(
            "left", ("2", "max(NPAIRS, OBSERVATION_NPAIRS)", "NTHETA"), "pairs of vectors: left right' + right left'"
        ),
        Field("right", ("2", "max(NPAIRS, OBSERVATION_NPAIRS)", "NTHETA"), ""),
        Field("along", ("NZ",), "a vector"),
        Field("into", ("NZ",), "and the product with it"),
        Field("products", ("CURVED_ROWS", "NZ", "NZ"), "H_i P"),
        Field("shift", ("CURVED_ROWS",), "1/2 tr(H_i P)"),
        Field("excess", ("CURVED_ROWS", "CURVED_ROWS"), "1/2 tr(H_i P H_j P)"),
    )
    return Record(
        "ROW",
        "a belief on the active entries of z with what a row of a recording makes of it; of `likelihood`",
        (
            Field("z", ("NZ",), "mean"),
            Field("P", ("NZ", "NZ"), "covariance of the active entries"),
            Field("work", ("WORK",), "of the kernels"),
            Field("next", ("NX",), "f"),
            Field("f_x", ("NX", "NX"), ""),
            Field("f_u", ("NX", "NU"), ""),
            Field("f_theta", ("NR", "NTHETA"), ""),
            Field("F", ("NX", "NZ"), "[f_x f_theta]"),
            Field("h", ("NY",), ""),
            Field("h_x", ("NY", "NX"), ""),
            Field("h_theta", ("NHR", "NTHETA"), ""),
            Field("H", ("NY", "NZ"), "[h_x h_theta]"),
            Field("AP", ("NZ", "NZ"), "A P"),
            Field("moved", ("NZ",), "D theta"),
            Field("e", ("NY",), "innovation"),
            Field("PC", ("NZ", "NY"), "P C'"),
            Field("S", ("NY", "NY"), "covariance of the innovation"),
            Field("V", ("NY", "NY"), "its inverse"),
            Field("w", ("NY",), "V e"),
            Field("white", ("NY",), "whitened innovation"),
            Field("gain", ("NZ", "NY"), "K = P C' V"),
            *(moments if second_order else ()),
        ),
    )


def _back(state_dependent_noise: bool, second_order: bool) -> Record:
    noise = (
        Field("weights", (ENTRIES_OF_NOISE,), "derivatives by the entries of Q or R on and below the diagonal"),
        Field("by_x", ("NX",), "what goes through them by x"),
        Field("by_u", ("NU",), "and by u"),
    )
    moments = (
        Field("by_h", ("NY",), "derivatives by h"),
        Field("by_inputs", ("NU",), "what goes through second derivatives by u"),
        Field("growth", ("NZ", "NZ"), "what they add to Lam"),
        Field("KP", ("NZ", "NZ"), "K_i P"),
        Field("M", ("NZ", "NZ"), "derivatives by the entries of H_i"),
        Field("turned", ("NZ",), "slopes by weights"),
        Field("deviations", ("NZ",), "of the entries of z"),
    )
    return Record(
        "BACK",
        "scratch of `likelihood_gradient`",
        (
            Field("into", ("NZ",), "derivatives by the mean on their way"),
            Field("along", ("NZ",), "B_i"),
            Field("costate", ("NX",), "zero, but for the row that is bent"),
            Field("multiplier", ("NY",), ""),
            Field("LA", ("NZ", "NZ"), "Lam A"),
            Field("LK", ("NZ", "NY"), "Lam K"),
            Field("Plam", ("NZ",), "P lam"),
            Field("seen", ("NY",), "C P lam"),
            Field("b", ("NY",), "V C P lam"),
            Field("G", ("NY", "NY"), "derivatives by R"),
            Field("CG", ("NZ", "NY"), ""),
            *(noise if state_dependent_noise else ()),
            *(moments if second_order else ()),
        ),
    )


def _h_hessian() -> Record:
    return Record(
        "H_HESSIAN",
        "second derivatives of a row of h",
        (
            Field("core", ("NX + NS", "NZ"), "rows of the states and scalar unknowns"),
            Field("diagonals", ("OBSERVATION_NDIAG",), "diagonals between weights"),
            Field("left", ("OBSERVATION_NPAIRS", "NTHETA"), "pairs of vectors: left right' + right left'"),
            Field("right", ("OBSERVATION_NPAIRS", "NTHETA"), ""),
        ),
    )
