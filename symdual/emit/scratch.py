"""SCRATCH, the scratch of a thread: what all packages have, and what some parts of a model ask for."""

from __future__ import annotations

from symdual.emit.record import ENTRIES_OF_NOISE, Field, Needs, Record


def scratch(needs: Needs) -> Record:
    """The record with those fields that the model needs."""
    sloped = needs.exact or not needs.processes
    parts = (
        (True, _always),
        (sloped, _slopes),
        (sloped and needs.observation_curved, _curved_observation),
        (needs.square_root, _square_root),
        (bool(needs.refinement), _refined),
        (needs.refinement == "recalibrated", _recalibrated),
        (needs.outliers, _outliers),
        (needs.refinement == "iterated", _iterated),
        (needs.refinement == "iterated" and not needs.square_root, _former_covariance),
        (needs.refinement == "iterated" and needs.square_root, _former_factor),
        (needs.refinement == "iterated" and needs.second_order, _iterated_moments),
        (needs.smooths, _smoothing),
        (needs.smooths and needs.signals, _former_signals),
        (needs.second_order, _second_order),
        (needs.second_order and needs.observation_curved, _second_order_observation),
        (needs.second_order and needs.exact, _second_order_slopes),
        (needs.wide > 0, _second_order_rows),
        (needs.pairs > 0, _second_order_pairs),
        (needs.transition == "dense", _dense_transition),
        (needs.processes, _processes),
        (needs.lowrank, _values),
        (needs.has_expression_cost, _expression_cost),
        (needs.constrained, _constrained),
        (needs.constrained and needs.lowrank, _constrained_values),
        (needs.state_dependent_noise, _state_dependent_noise),
    )
    fields = tuple(field for needed, part in parts if needed for field in part())
    return Record("SCRATCH", "scratch of one thread; nothing in it outlives the function that writes it", fields)


def _always() -> tuple[Field, ...]:
    return (
        Field("work", ("WORK",), "of the kernels"),
        Field("next", ("NZ",), "state that a kernel returns"),
        Field("stream", ("6",), "of random numbers"),
        Field("measured", ("NY",), "a measurement"),
        Field("stats", ("3",), "its log-likelihood, normalised innovation squared and number of measured entries"),
        Field("held", ("NTHETA",), "parameters that an update leaves alone"),
        Field("present", ("NY",), "1 for each measured component"),
        Field("white", ("NY",), "whitened innovation"),
        Field("noise", ("2 * NY",), "measurement variances after the floor; further ones"),
        Field("inverses", ("NY",), "1 / the variance of each innovation, given those before it"),
        Field("product", ("NR", "WIDTH"), "f_theta times the parameters' block"),
        Field("seen", ("NHR", "WIDTH"), "h_theta times the parameters' block"),
        Field("looked", ("NHR", "NX"), "h_theta times the mixed block"),
        Field("inner", ("NHR", "NHR"), "h_theta times the parameters' block times h_theta"),
        Field("cross", ("NR", "NX"), "f_theta times the mixed block"),
        Field("half", ("NX", "NX"), "first factor of a product"),
        Field("mixed", ("max(NX, NU)", "max(NX, NU, WIDTH)"), "rows on their way"),
        Field("measurement_rows", ("NY", "max(NX, NY, WIDTH)"), "rows of measurements on their way"),
        Field("K", ("NX", "NX"), "cost-to-go of the nominal plan"),
        Field("KA", ("NX", "NX"), ""),
        Field("KB", ("NU", "NX"), "K f_u, a row for each input"),
        Field("Hux", ("NU", "NX"), ""),
        Field("Huu", ("NU", "NU"), ""),
        Field("excess", ("NU", "NU"), "what the plan adds to U"),
        Field("p", ("NX",), "slope of the cost-to-go"),
        Field("hu", ("NU",), "slope by the input"),
        Field("low", ("NU",), "room below an input"),
        Field("high", ("NU",), "room above it"),
        Field("d", ("NU",), "step of an input"),
        Field("free", ("NU",), "1 for each input that no bound holds"),
        Field("slope", ("NU",), ""),
        Field("trial", ("NU",), ""),
        Field("first", ("NU",), "a first input on trial"),
        Field("aside", ("NU",), "another one"),
        Field("factor", ("NU", "NU"), "Cholesky factor of the inputs' curvature"),
        Field("inverse", ("NU",), "inverse pivots of it"),
        Field("Mx", ("NU", "NX"), "right-hand side of the Riccati recursion: states"),
        Field("Mt", ("NU", "WIDTH"), "parameters"),
        Field("y", ("NR", "WIDTH"), "half of what f_theta adds to the parameters' cost-to-go"),
    )


def _slopes() -> tuple[Field, ...]:
    return (
        Field("zeros", ("NX", "NX"), "zeros"),
        Field("loss_x", ("NY", "NX"), "a cost-to-go times the filter's gain: states"),
        Field("loss_t", ("NY", "WIDTH"), "parameters"),
        Field("inner_loss", ("NY", "NY"), "the gain times that"),
        Field("rows_x", ("NX", "NX"), "rows of the states of a matrix on z: states"),
        Field("rows_t", ("NX", "WIDTH"), "parameters"),
    )


def _curved_observation() -> tuple[Field, ...]:
    return (
        Field("core", ("NX + NS", "NZ"), "second derivatives of a row of h: states and scalar unknowns"),
        Field("diagonals", ("OBSERVATION_NDIAG",), "diagonals between weights"),
        Field("left", ("OBSERVATION_NPAIRS", "NTHETA"), "pairs of vectors"),
        Field("right", ("OBSERVATION_NPAIRS", "NTHETA"), ""),
    )


def _square_root() -> tuple[Field, ...]:
    return (
        Field("tall", ("2 * max(NZ, NY)", "NZ"), "rows to be made triangular"),
        Field("sums", ("NZ",), ""),
        Field("along", ("NZ",), ""),
    )


def _refined() -> tuple[Field, ...]:
    return (Field("former", ("NZ",), "mean of the belief from which an update starts"),)


def _recalibrated() -> tuple[Field, ...]:
    return (Field("excess_rows", ("NY", "NZ"), "the gain; then the rows whose squares it adds to the covariance"),)


def _outliers() -> tuple[Field, ...]:
    return (
        Field("doubt", ("NY",), "further noise of measured numbers that are too far off"),
        Field("jump", ("NZ",), "what the states may have jumped by"),
    )


def _iterated() -> tuple[Field, ...]:
    return (
        Field("former_deviation", ("NZ",), "its standard deviations"),
        Field("start", ("NZ",), "mean before the measurement, as it is linearised"),
        Field("z", ("NZ",), "the point so far"),
        Field("target", ("NZ",), "where the whole step leads"),
        Field("z0", ("NZ",), "the state before the last prediction, at the point"),
        Field("z0_target", ("NZ",), "at the target"),
        Field("z0_trial", ("NZ",), "on trial"),
        Field("a", ("NZ",), "z0 = former + S0 a"),
        Field("a_target", ("NZ",), ""),
        Field("rows", ("NY", "NZ"), "L^-1 C"),
        Field("noise_root", ("NY", "NY"), "Cholesky factor of R"),
        Field("noise_pivots", ("NY",), "its inverse pivots"),
        Field("slack", ("NY",), "residuals on their way"),
    )


def _former_covariance() -> tuple[Field, ...]:
    return (
        Field("former_xx", ("NX", "NX"), "covariance of the belief from which an update starts"),
        Field("former_xt", ("NX", "WIDTH"), ""),
        Field("former_tt", ("NTHETA", "WIDTH"), ""),
    )


def _former_factor() -> tuple[Field, ...]:
    return (Field("former_factor", ("NZ", "NZ"), "factor of the belief from which an update starts"),)


def _former_signals() -> tuple[Field, ...]:
    return (Field("former_signals", ("NSIGNALS",), "signals of the last prediction"),)


def _smoothing() -> tuple[Field, ...]:
    return (
        Field("predicted", (), "1 from a prediction on to the next update: `former` is what was predicted from"),
        Field("smoothing", (), "1 in such an update"),
        Field("w", ("NZ",), "noise of the step, at the point"),
        Field("w_target", ("NZ",), ""),
        Field("b", ("NZ",), "w = N b"),
        Field("b_target", ("NZ",), ""),
    )


def _iterated_moments() -> tuple[Field, ...]:
    return (
        Field("known", ("NY", "NZ"), "rows g: a measurement leaves S - g' g"),
        Field("told", ("NZ",), "what it takes off each variance"),
    )


def _second_order() -> tuple[Field, ...]:
    return (
        Field("f_core", ("NX + NS", "NZ"), "second derivatives of a row of f: states and scalar unknowns"),
        Field("f_inputs", ("NU", "NZ"), "inputs"),
        Field("f_uu", ("NU", "NU"), ""),
        Field("f_diagonals", ("NDIAG",), "diagonals between weights"),
        Field("f_left", ("NPAIRS", "NTHETA"), "pairs of vectors"),
        Field("f_right", ("NPAIRS", "NTHETA"), ""),
        Field("curved_values", ("CURVED_VALUES",), "second derivatives of all rows, piece by piece"),
        Field("curved_unit_x", ("NX",), "a unit vector"),
        Field("curved_left", ("NZ",), "S l"),
        Field("curved_right", ("NZ",), "S r"),
        Field("shift", ("CURVED_ROWS",), "1/2 tr(H_i S)"),
        Field("excess_moment", ("CURVED_ROWS", "CURVED_ROWS"), "1/2 tr(H_i S H_j S)"),
        Field("curved_Q", ("NX", "NX"), "process noise with what curvature adds"),
    )


def _second_order_observation() -> tuple[Field, ...]:
    return (Field("curved_unit_y", ("NY",), "a unit vector"),)


def _second_order_slopes() -> tuple[Field, ...]:
    return (Field("moment_product", ("NZ", "NZ"), "S times second derivatives of some rows"),)


def _second_order_rows() -> tuple[Field, ...]:
    return (Field("curved_wide", ("CURVED_WIDE", "WIDTH"), "rows of second derivatives by all weights"),)


def _second_order_pairs() -> tuple[Field, ...]:
    return (
        Field("pairs_left", ("CURVED_ROWS * PAIRS", "NTHETA"), "pairs of vectors of all rows"),
        Field("pairs_right", ("CURVED_ROWS * PAIRS", "NTHETA"), ""),
    )


def _dense_transition() -> tuple[Field, ...]:
    return (
        Field("moved", ("NTHETA",), "product of a vector with D"),
        Field("square", ("NTHETA", "WIDTH"), "half of a product with D on both sides"),
    )


def _processes() -> tuple[Field, ...]:
    return (
        Field("process", ("SCRATCH_ROWS", "SCRATCH_WIDTH"), "of `process`"),
        Field("saved", ("PROCESSES", "2"), "indices in use and scale of each process before a plan"),
        Field("indices_before_step", ("PROCESSES", "2"), "the same before an imagined step"),
    )


def _values() -> tuple[Field, ...]:
    return (
        Field("probes", ("NTHETA", "WIDTH"), "rows of f_theta and h_theta that the plan meets"),
        Field("halves", ("NTHETA", "WIDTH"), "half of their products with the prior covariance"),
    )


def _expression_cost() -> tuple[Field, ...]:
    return (
        Field("t", ("NT",), "terms of the cost of a step"),
        Field("t_x", ("NT", "NX"), "their slopes by the states"),
        Field("t_u", ("NT", "NU"), "by the inputs"),
        Field("share", ("NT",), "by how much each second derivative counts"),
        Field("t_xx", ("NX", "NX"), "their sum"),
        Field("t_ux", ("NU", "NX"), ""),
        Field("t_uu", ("NU", "NU"), ""),
        Field("e", ("NE",), "the same for the end"),
        Field("e_x", ("NE", "NX"), ""),
        Field("end_share", ("NE",), ""),
        Field("e_xx", ("NX", "NX"), ""),
        Field("joint", ("NX + NU", "NX + NU"), "curvature of states and inputs together"),
        Field("axes", ("NX + NU", "NX + NU"), "its eigenvectors"),
        Field("turned", ("NX + NU", "NX + NU"), "a slope by it in their coordinates"),
        Field("convex_gradient", ("NX + NU", "NX + NU"), "the same by the curvature as it was before"),
        Field("along_x", ("NX",), "what second or third derivatives make of a slope: by the states"),
        Field("along_u", ("NU",), "by the inputs"),
    )


def _constrained() -> tuple[Field, ...]:
    return (
        Field("loop_x", ("NX", "NX"), "A + B L: states"),
        Field("loop_t", ("NX", "WIDTH"), "parameters"),
        Field("half_x", ("NX", "NX"), "its product with the closed-loop covariance"),
        Field("half_t", ("NX", "WIDTH"), ""),
        Field("seen_x", ("NX",), "slope of a constraint in closed loop"),
        Field("seen_t", ("WIDTH",), ""),
        Field("valley", (), "of a search; 2: back-offs at its ends are known, 1: will be, 0: there is none"),
        Field("ends", ("2", "NU"), "first inputs there"),
        Field("has_cost_limit", (), "1 where it is known what a plan may cost"),
        Field("cost_limit", (), "beyond which it cannot be the best"),
    )


def _constrained_values() -> tuple[Field, ...]:
    return (
        Field("fed_t", ("NU", "WIDTH"), "L_v M of a step: values"),
        Field("fed_x", ("NU", "NX"), "states"),
        Field("gain_square", ("NU", "NU"), "L_v M L_v'"),
    )


def _state_dependent_noise() -> tuple[Field, ...]:
    return (
        Field("root_Q", ("NX", "NX"), "root of Q"),
        Field("root_R", ("NY", "NY"), "root of R"),
        Field("noise_share", (ENTRIES_OF_NOISE,), "slopes by the entries of Q or R on and below the diagonal"),
        Field("noise_x", ("NX",), "what goes through them by the states"),
        Field("noise_u", ("NU",), "and by the inputs"),
    )
