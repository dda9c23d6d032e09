"""The kernels of a generated package: f, h, costs, constraints, noise, and their derivatives.

Arrays whose name ends in `_out` are written to; entries that are identically zero are not.
"""

from __future__ import annotations

from typing import Annotated, Protocol

from symdual.common.arrays import Array
from symdual.entries.types import (
    Augmented,
    Data,
    Input,
    InputByInput,
    InputByState,
    Measurement,
    State,
    StateByState,
    Work,
    shaped,
)

# rows of f_theta and h_theta that are not identically zero; in the records they have the length of whole vectors
FTheta = Annotated[Array, shaped("NR", "NTHETA", padded=True)]
HTheta = Annotated[Array, shaped("NHR", "NTHETA", padded=True)]
FByInput = Annotated[Array, shaped("NX", "NU")]
HByState = Annotated[Array, shaped("NY", "NX")]

# second derivatives by structure: rows of states and scalar unknowns, rows of inputs, diagonals, pairs of vectors
Core = Annotated[Array, shaped("NX + NS", "NZ")]
InputRows = Annotated[Array, shaped("NU", "NZ")]
Diagonals = Annotated[Array, shaped("NDIAG")]
HDiagonals = Annotated[Array, shaped("OBSERVATION_NDIAG")]
Vectors = Annotated[Array, shaped("NPAIRS", "NTHETA")]
HVectors = Annotated[Array, shaped("OBSERVATION_NPAIRS", "NTHETA")]

# terms of the cost of a step and of the end, constraints
Terms = Annotated[Array, shaped("NT")]
TermsByState = Annotated[Array, shaped("NT", "NX")]
TermsByInput = Annotated[Array, shaped("NT", "NU")]
Ends = Annotated[Array, shaped("NE")]
EndsByState = Annotated[Array, shaped("NE", "NX")]
Joint = Annotated[Array, shaped("NX + NU", "NX + NU")]
Constraints = Annotated[Array, shaped("NC")]
ConstraintsByState = Annotated[Array, shaped("NC", "NX")]
ConstraintsByInput = Annotated[Array, shaped("NC", "NU")]
ConstraintsByScalar = Annotated[Array, shaped("NC", "NS")]

MeasurementNoise = Annotated[Array, shaped("NY", "NY")]


class KernelsModule(Protocol):
    """The leaves of a package."""

    def dynamics(self, time_index: int, z_in: Augmented, u_in: Input, data: Data, work: Work, f_out: State) -> None:
        """f(x, u, theta)."""

    def linearise(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        data: Data,
        work: Work,
        f_out: State,
        f_x_out: StateByState,
        f_u_out: FByInput,
    ) -> None:
        """The same with its Jacobians by state and input."""

    def dynamics_jacobian(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        data: Data,
        work: Work,
        f_out: State,
        f_x_out: StateByState,
        f_u_out: FByInput,
        f_theta_out: FTheta,
    ) -> None:
        """The same with that by the unknowns."""

    def dynamics_hessian(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        costate: State,
        data: Data,
        work: Work,
        core_out: Core,
        input_out: InputRows,
        uu_out: InputByInput,
        diagonal_out: Diagonals,
        left_out: Vectors,
        right_out: Vectors,
    ) -> None:
        """The second derivatives of costate' f, by structure."""

    def dynamics_hessians(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        data: Data,
        work: Work,
        costate: State,
        core_out: Core,
        input_out: InputRows,
        uu_out: InputByInput,
        diagonal_out: Diagonals,
        left_out: Vectors,
        right_out: Vectors,
        hessian_out: Annotated[Array, shaped("NX", "NZ + NU", "NZ + NU")],
    ) -> None:
        """Those of each component of f, dense."""

    def observation(self, time_index: int, z_in: Augmented, data: Data, work: Work, h_out: Measurement) -> None:
        """h(x, theta)."""

    def observation_jacobian(
        self,
        time_index: int,
        z_in: Augmented,
        data: Data,
        work: Work,
        h_out: Measurement,
        h_x_out: HByState,
        h_theta_out: HTheta,
    ) -> None:
        """The same with its Jacobians."""

    def observation_hessian(
        self,
        time_index: int,
        z_in: Augmented,
        costate: Measurement,
        data: Data,
        work: Work,
        core_out: Core,
        diagonal_out: HDiagonals,
        left_out: HVectors,
        right_out: HVectors,
    ) -> None:
        """The second derivatives of costate' h, by structure."""

    def process_points(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        data: Data,
        work: Work,
        points_out: Annotated[Array, shaped("process.POINTS", "process.POINT_ARGUMENTS")],
        gains_out: Annotated[Array, shaped("NX", "process.VALUES")],
    ) -> None:
        """Where a step evaluates Gaussian processes, where there are any."""

    def stage_terms(
        self, time_index: int, z_in: Augmented, u_in: Input, data: Data, work: Work, terms_out: Terms
    ) -> None:
        """The terms of the cost of a step, where it is given by expressions."""

    def stage_jacobian(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        data: Data,
        work: Work,
        terms_out: Terms,
        terms_x_out: TermsByState,
        terms_u_out: TermsByInput,
    ) -> None:
        """The same with their slopes."""

    def stage_hessian(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        costate: Terms,
        data: Data,
        work: Work,
        hessian_xx_out: StateByState,
        hessian_ux_out: InputByState,
        uu_out: InputByInput,
    ) -> None:
        """The second derivatives of costate' t."""

    def stage_third_derivatives(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        costate: Terms,
        joint_in: Joint,
        data: Data,
        work: Work,
        turns_x_out: State,
        turns_u_out: Input,
    ) -> None:
        """The slope of tr joint_in H, H those of costate' t, where terms are no squares."""

    def final_terms(self, time_index: int, z_in: Augmented, data: Data, work: Work, terms_out: Ends) -> None:
        """The terms of the cost of the end, likewise."""

    def final_jacobian(
        self, time_index: int, z_in: Augmented, data: Data, work: Work, terms_out: Ends, terms_x_out: EndsByState
    ) -> None:
        """The same with their slopes."""

    def final_hessian(
        self, time_index: int, z_in: Augmented, costate: Ends, data: Data, work: Work, hessian_xx_out: StateByState
    ) -> None:
        """The second derivatives of costate' e."""

    def final_third_derivatives(
        self,
        time_index: int,
        z_in: Augmented,
        costate: Ends,
        joint_in: Joint,
        data: Data,
        work: Work,
        turns_x_out: State,
    ) -> None:
        """The slope of tr joint_in H, likewise."""

    def constraint_values(
        self, time_index: int, z_in: Augmented, u_in: Input, data: Data, work: Work, constraints_out: Constraints
    ) -> None:
        """The constraints, where there are any."""

    def constraint_jacobian(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        data: Data,
        work: Work,
        constraints_out: Constraints,
        constraints_x_out: ConstraintsByState,
        constraints_u_out: ConstraintsByInput,
        constraints_theta_out: ConstraintsByScalar,
    ) -> None:
        """The same with their slopes."""

    def process_noise(
        self, time_index: int, z_in: Augmented, u_in: Input, data: Data, work: Work, noise_out: StateByState
    ) -> None:
        """Q(x, u), where noise depends on anything."""

    def process_noise_gradient(
        self,
        time_index: int,
        z_in: Augmented,
        u_in: Input,
        costate: Annotated[Array, shaped("NX * (NX + 1) // 2")],
        data: Data,
        work: Work,
        noise_x_out: State,
        noise_u_out: Input,
    ) -> None:
        """The slopes of its entries, times weights, summed."""

    def measurement_noise(
        self, time_index: int, z_in: Augmented, data: Data, work: Work, noise_out: MeasurementNoise
    ) -> None:
        """R(x), likewise."""

    def measurement_noise_gradient(
        self,
        time_index: int,
        z_in: Augmented,
        costate: Annotated[Array, shaped("NY * (NY + 1) // 2")],
        data: Data,
        work: Work,
        noise_x_out: State,
    ) -> None:
        """The slopes of its entries, times weights, summed."""
