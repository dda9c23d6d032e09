"""What the recursions of a package work on, declared once: records with named fields of fixed shape.

A record is one block of memory with an entry for each field, so that no two fields overlap and nothing is numbered by
hand. A compiled function is given one pointer instead of seven numbers for each array, and the shapes are known to the
compiler. The template `records.py.jinja` prints the declarations, from which numpy makes the types. Names that numpy's
records have themselves (`data`, `diagonal`, `trace`, ...) cannot be used: un-jitted code would find those.
"""

from __future__ import annotations

from symdual.controllers import OPTIONS
from symdual.emit.likelihood_records import likelihood_records
from symdual.emit.record import Field, Needs, Record
from symdual.emit.scratch import scratch


def records(needs: Needs) -> tuple[Record, ...]:
    """All records of a package, with those fields only that its model needs."""
    return (
        _gaussian(needs.square_root, needs.outliers),
        _step(needs.has_expression_cost, needs.constrained),
        _stage(needs),
        _hessian(),
        _gradient(
            needs.observation_curved,
            needs.has_expression_cost and needs.exact,
            (needs.state_dependent_noise or needs.second_order) and needs.exact,
        ),
        _stored_plan(),
        _decision_log(),
        _stage_cost(needs.has_expression_cost, needs.signals),
        _settings(needs.transition, needs.diffusion, needs.has_expression_cost, needs.constrained, needs.discrete),
        scratch(needs),
        _rollout(needs.diffusion, needs.constrained, needs.rivals),
        *(likelihood_records(needs.state_dependent_noise, needs.second_order) if needs.likelihood else ()),
    )


def _gaussian(square_root: bool, outliers: bool) -> Record:
    fields = [
        Field("z", ("NZ",), "a vector on z = (x, theta): the mean"),
        Field("xx", ("NX", "NX"), "a symmetric matrix on z by blocks: states"),
        Field("xt", ("NX", "WIDTH"), "states by parameters"),
        Field("tt", ("NTHETA", "WIDTH"), "parameters"),
    ]
    if square_root:
        fields.append(Field("factor", ("NZ", "NZ"), "lower triangular F with F' F = covariance"))
    if outliers:
        fields.append(
            Field("rejected", ("NY",), "of a belief: how many times in a row each measured number was too far off")
        )
    return Record("GAUSSIAN", "a belief, a covariance along the plan, or a cost-to-go", tuple(fields))


def _step(has_expression_cost: bool, constrained: bool) -> Record:
    fields = [
        Field("z", ("NZ",), "augmented state"),
        Field("u", ("NU",), "input"),
        Field("f_x", ("NX", "NX"), "Jacobian by the states"),
        Field("f_u", ("NX", "NU"), "by the inputs"),
        Field("f_theta", ("NR", "WIDTH"), "by the parameters, rows that are not identically zero"),
    ]
    if has_expression_cost:
        fields += [
            Field("l_x", ("NX",), "half the slope of the cost by the states"),
            Field("l_u", ("NU",), "by the inputs"),
            Field("W", ("NX", "NX"), "half its curvature by the states"),
            Field("N", ("NU", "NX"), "by inputs and states"),
            Field("U", ("NU", "NU"), "by the inputs"),
        ]
    if constrained:
        fields += [
            Field("g", ("NC",), "constraints, at most zero where they are kept"),
            Field("g_x", ("NC", "NX"), "their slopes by the states"),
            Field("g_u", ("NC", "NU"), "by the inputs"),
            Field("g_theta", ("NC", "NS"), "by the scalar unknowns"),
            Field("backoff", ("NC",), "that is to be kept"),
            Field("near", ("NC",), "share by which each counts in the curvature"),
        ]
    return Record("POINT", "a point of a trajectory with its linearisation; written by forward passes", tuple(fields))


def _stage(needs: Needs) -> Record:
    fields = [
        Field("gain", ("NU", "NX"), "feedback of the last backward pass"),
        Field("feedforward", ("NU",), "its feedforward"),
        Field(
            "policy_gain", ("NU", "NX"), "affine policy_gain u = policy_gain x + policy_offset from which plans start"
        ),
        Field("policy_offset", ("NU",), ""),
        Field("saved_policy_gain", ("NU", "NX"), "the policy while another start is tried"),
        Field("saved_policy_offset", ("NU",), ""),
        Field("gap", ("NX",), "f minus the next point, where a trajectory is not one"),
        Field("h", ("NY",), "expected measurement"),
        Field("h_x", ("NY", "NX"), "its Jacobian by the states"),
        Field("h_theta", ("NHR", "WIDTH"), "by the parameters, rows that are not identically zero"),
        Field("qx", ("NY", "NX"), "whitened innovation directions q = L^-1 C S: states"),
        Field("qt", ("NY", "WIDTH"), "parameters"),
        Field("root", ("NY", "NY"), "C S C', then L below the diagonal with L L' = C S C' + R"),
        Field("pivots", ("NY",), "1 / L_aa, zero for a component that is left out"),
        Field("lam", ("NX",), "costate of the next time"),
        Field("gradient_x", ("NX",), "slope, halved, of what a plan minimises besides L: by the state"),
        Field("gradient_u", ("NU",), "by the input"),
    ]
    if needs.second_order and needs.observation_curved:
        fields.append(Field("excess", ("NY", "NY"), "what the curvature of h adds to the covariance of an innovation"))
    if needs.processes:
        fields += [
            Field("values", ("VALUES", "WIDTH"), "covariances of the values of Gaussian processes that the step uses"),
            Field("prior", ("NR", "WIDTH"), "what their priors add to the product of the covariance with f_theta"),
            Field("Q", ("NX", "NX"), "process noise with what Gaussian processes leave open"),
        ]
    if needs.saturation:
        fields += [
            Field("slope", ("NU",), "half the slope of L by the inputs"),
            Field("curvature", ("NU",), "of each input in the cost-to-go"),
            Field("answer_x", ("NU", "NX"), "feedback of the cost-to-go: states"),
            Field("answer_t", ("NU", "WIDTH"), "parameters, or values of the plan"),
            Field("away_x", ("NY", "NX"), "where each innovation has led the estimate: states"),
            Field("away_t", ("NY", "WIDTH"), "parameters, or values of the plan"),
            Field("answer", ("NY", "NU"), "what inputs would answer to it"),
            Field("answer_variance", ("NU",), "variance of all answers"),
            Field("share", ("NU",), "of what each input could save without bounds"),
            Field("response", ("NU",), "equivalent gain of its clipped answer"),
        ]
    if needs.constrained:
        fields += [
            Field("gain_x", ("NU", "NX"), "gains of the cost-to-go: states"),
            Field("gain_t", ("NU", "WIDTH"), "parameters"),
            Field("variance", ("NC",), "what the filter will not know of each constraint"),
            Field("closed_loop_variance", ("NC",), "what the estimate will stray in it by states and answers"),
            Field("sigma", ("NC",), "deviation of each constraint in closed loop"),
            Field("saved_sigma", ("NC",), "the same along the certainty-equivalent plan"),
            Field("saved_backoff", ("NC",), "and the back-off there"),
            Field("held", ("NC",), "1 for those that held the plan before back-offs were moved"),
            Field("end_sigma", ("2", "NC"), "deviation and"),
            Field("end_backoff", ("2", "NC"), "back-off along the plans through both ends of a valley"),
            Field("end_policy_gain", ("NU", "NX"), "and the policy of the plan through one of them"),
            Field("end_policy_offset", ("NU",), ""),
        ]
    return Record("STAGE", "stage data of a plan, from one pass over it to the next", tuple(fields))


def _hessian() -> Record:
    return Record(
        "HESSIAN",
        "second derivatives of costate' f at each time of the plan; only for order 2",
        (
            Field("core", ("NX + NS", "NZ"), "rows of the states and scalar unknowns"),
            Field("inputs", ("NU", "NZ"), "input by z"),
            Field("uu", ("NU", "NU"), "input by input"),
            Field("diagonals", ("NDIAG",), "diagonals between weights"),
            Field("left", ("NPAIRS", "NTHETA"), "pairs of vectors: left right' + right left'"),
            Field("right", ("NPAIRS", "NTHETA"), ""),
        ),
    )


def _gradient(observation_curved: bool, curved_cost: bool, noise_depends: bool) -> Record:
    fields = [
        Field("gain_x", ("NU", "NX"), "feedback on the estimate: states"),
        Field("gain_t", ("NU", "WIDTH"), "parameters"),
        Field("closed_loop_x", ("NX", "NX"), "rows of the states of K (A + B L): states"),
        Field("closed_loop_t", ("NX", "WIDTH"), "parameters"),
        Field("Ax", ("NX", "NX"), "1/2 dJd/df_x"),
        Field("At", ("NX", "WIDTH"), "1/2 dJd/df_theta"),
        Field("B", ("NX", "NU"), "1/2 dJd/df_u"),
    ]
    if observation_curved:
        fields += [
            Field("Cx", ("NY", "NX"), "1/2 dJd/dh_x, of the next time"),
            Field("Ct", ("NY", "WIDTH"), "1/2 dJd/dh_theta"),
        ]
    if curved_cost:
        fields += [
            Field("W", ("NX", "NX"), "dJd/dW of the cost's curvature"),
            Field("N", ("NU", "NX"), "1/2 dJd/dN"),
            Field("U", ("NU", "NU"), "dJd/dU"),
        ]
    if noise_depends:
        fields += [
            Field("Q", ("NX", "NX"), "1/2 dJd/dQ"),
            Field("R", ("NY", "NY"), "1/2 dJd/dR, of the next time"),
        ]
    return Record("GRADIENT", "how the dual cost depends on each time of a plan; only for planners", tuple(fields))


def _stored_plan() -> Record:
    return Record(
        "STORED",
        "a plan that is stored from decision to decision, a record for each time",
        (
            Field("z", ("NZ",), "augmented state"),
            Field("u", ("NU",), "input"),
            Field("gain_x", ("NU", "NX"), "feedback on the estimate: states"),
            Field("gain_t", ("NU", "WIDTH"), "parameters"),
            Field("begin", (), "in the first record: the time of the plan"),
            Field("steps", (), "in the first record: its length; 0 for none"),
        ),
    )


def _race() -> tuple[Field, ...]:
    return (
        Field("entries", (), "contestants of rollouts: plans, followed for some steps"),
        Field("entry_u", ("ENTRIES", "NU"), "their first inputs"),
        Field("entry_place", ("ENTRIES",), "their places of stored plans"),
        Field("entry_follow", ("ENTRIES",), "for how many steps they are followed"),
        Field("entry_cost", ("ENTRIES",), "mean cost in the first rollouts"),
        Field("entry_in", ("ENTRIES",), "1 for those that are not left out"),
        Field("entry_unlike", ("ENTRIES",), "1 for those that have to be confirmed"),
        Field(
            "entry_gap", ("ENTRIES",), "what challengers cost more than the harder reference in fresh rollouts, or NaN"
        ),
        Field("entry_error", ("ENTRIES",), "its standard error"),
        Field("entry_sure", ("ENTRIES",), "how sure it is that they are better than both references"),
        Field("entry_won", (), "the contestant that won"),
        Field("met", (), "rollouts that were counted"),
        Field("entry_last", ("ENTRIES",), "cost in the last one"),
        Field("entry_total", ("ENTRIES",), "sum of costs"),
        Field("entry_square", ("ENTRIES", "ENTRIES"), "sums of squared differences, below the diagonal"),
    )


def _tree() -> list[Field]:
    return [
        Field("samples", ("SAMPLES", "NZ"), "states and parameters that a tree of scenarios tells apart"),
        Field("particles", ("SAMPLES", "NZ"), "the same on their way along a branch"),
        Field("weights", ("SAMPLES",), "how far each is believed"),
        Field("misfit", ("SAMPLES",), "how little each explains a measurement"),
        Field("worth", (), "what a nat of information is worth"),
    ]


def _rollout(diffusion: str, constrained: bool, rivals: bool) -> Record:
    dense = [Field("drift", ("NTHETA", "NTHETA"), "of the drift")] if diffusion == "dense" else []
    return Record(
        "ROLLOUT",
        "a rollout",
        (
            Field("stream", ("6",), "of random numbers"),
            Field("draws", ("NZ",), "normal random numbers"),
            Field("z", ("NZ",), "true state and parameters"),
            Field("u", ("NU",), "input"),
            Field("y", ("NY",), "measurement"),
            Field("stats", ("3",), "of its update"),
            Field("process", ("NX", "NX"), "triangular root of the process noise"),
            Field("measurement", ("NY", "NY"), "of the measurement noise"),
            *dense,
            *([Field("g", ("NC",), "constraints")] if constrained else []),
            *(_tree() if rivals else []),
        ),
    )


def _decision_log() -> Record:
    return Record(
        "DECISION_LOG",
        "how a decision of a planning controller came about",
        (
            Field("starts", (), "number of plans to start from"),
            Field("start_u", ("STARTS", "NU"), "their first inputs: certainty-equivalent, stored, perturbed"),
            Field("start_cost", ("STARTS",), "J before it was improved"),
            Field("plan_cost", ("STARTS",), "J afterwards, or NaN"),
            Field("taken", ("STARTS",), "1, 2, ... for those that were improved"),
            Field("steps", (), "improvements of all plans"),
            Field("work", (), "steps of plans that were gone through: what a budget limits"),
            Field("won", (), "the start of the best plan"),
            Field("plan_u", ("NU",), "first input of the best plan"),
            Field("unlearned", (), "Jd of the plan of the chosen input if nothing were learned about the parameters"),
            Field("looks", (), "number of first inputs that were looked at one step ahead"),
            Field("screened", (), "of these, those that were looked at before the best ones were moved"),
            Field("look_u", ("LOOKS", "NU"), "these inputs"),
            Field("look_cost", ("LOOKS",), "their cost with the next measurement taken into account"),
            Field("reach", ("2", "NU"), "how far below and above the certainty-equivalent input Jbar stays below J"),
            Field("asked", (), "1: a cost is asked once more, for the input that its search has found"),
            *_race(),
        ),
    )


def _stage_cost(has_expression_cost: bool, signals: bool) -> Record:
    fields = [
        Field("W", ("NX", "NX"), "(x - r)' W (x - r)"),
        Field("U", ("NU", "NU"), "(u - s)' U (u - s)" if has_expression_cost else "u' U u"),
        Field("r", ("NX",), "reference"),
    ]
    if has_expression_cost:
        fields += [
            Field("N", ("NU", "NX"), "2 (u - s)' N (x - r)"),
            Field("s", ("NU",), "reference of the inputs"),
            Field("terms", ("NT",), "weights of the terms of the cost"),
        ]
    if signals:
        fields += [
            Field("signals", ("NSIGNALS",), "known quantities as the controller believes them"),
            Field("true_signals", ("NSIGNALS",), "as they are"),
        ]
    return Record("STAGE_COST", "the cost of each time", tuple(fields))


def _discrete_inputs() -> list[Field]:
    return [
        Field("choices", ("COMBINATIONS", "NU"), "combinations of the inputs with a finite set of values"),
        Field("discrete", ("NU",), "1 for these inputs, 0 for those that are free"),
        Field("combinations", (), "how many of the combinations there are"),
    ]


def _settings(transition: str, diffusion: str, has_expression_cost: bool, constrained: bool, discrete: bool) -> Record:
    square = ("NTHETA", "NTHETA")
    return Record(
        "SETTINGS",
        "controller settings: what a decision is given besides the belief and the stage costs",
        (
            Field("Q", ("NX", "NX"), "process noise"),
            Field("R", ("NY", "NY"), "measurement noise"),
            Field("D", square if transition == "dense" else ("NTHETA",), f"motion of the parameters, {transition}"),
            Field("Xi", square if diffusion == "dense" else ("NTHETA",), f"their drift, {diffusion}"),
            Field("lower", ("NU",), "bounds of the inputs"),
            Field("upper", ("NU",), ""),
            Field("numbers", ("DATA",), "known numbers of the kernels, and what is remembered of Gaussian processes"),
            Field("weight", (), "w of Jbar + w Jd"),
            Field("learning", (), "0: future measurements do not reduce the parameters' covariance"),
            Field("order", (), "of the dual cost, 1 or 2"),
            Field("bonus", (), "tau of the exploration bonus"),
            Field("iterations", (), "limit of Gauss-Newton steps"),
            Field("tolerance", (), "relative decrease of the cost at which a plan counts as converged"),
            *(Field(option.field, (), option.meaning) for option in OPTIONS.values()),
            *([Field("ends", ("NE",), "weights of the terms of the cost of the end")] if has_expression_cost else []),
            *([Field("constraint_weights", ("NC",), "of squared excesses of constraints")] if constrained else []),
            *([Field("quantiles", ("NC",), "back-offs to be kept, in deviations")] if constrained else []),
            *(_discrete_inputs() if discrete else []),
        ),
    )
