"""The kernels of a generated package as far as they are called from Python: f, h, costs, constraints, derivatives.

A part of `package_interface`. Arrays whose name ends in `_out` are written to.
"""

from __future__ import annotations

from typing import Protocol

from symdual.common.arrays import Array


class KernelsModule(Protocol):
    """The leaves of a package."""

    def dynamics(self, time_index: int, z_in: Array, u_in: Array, data: Array, work: Array, f_out: Array) -> None:
        """f(x, u, theta)."""

    def linearise(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        data: Array,
        work: Array,
        f_out: Array,
        f_x_out: Array,
        f_u_out: Array,
    ) -> None:
        """The same with its Jacobians by state and input."""

    def dynamics_jacobian(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        data: Array,
        work: Array,
        f_out: Array,
        f_x_out: Array,
        f_u_out: Array,
        f_theta_out: Array,
    ) -> None:
        """The same with that by the unknowns."""

    def dynamics_hessian(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        costate: Array,
        data: Array,
        work: Array,
        core_out: Array,
        input_out: Array,
        uu_out: Array,
        diagonal_out: Array,
        left_out: Array,
        right_out: Array,
    ) -> None:
        """The second derivatives of costate' f, by structure."""

    def dynamics_hessians(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        data: Array,
        work: Array,
        costate: Array,
        core_out: Array,
        input_out: Array,
        uu_out: Array,
        diagonal_out: Array,
        left_out: Array,
        right_out: Array,
        hessian_out: Array,
    ) -> None:
        """Those of each component of f, dense."""

    def observation(self, time_index: int, z_in: Array, data: Array, work: Array, h_out: Array) -> None:
        """h(x, theta)."""

    def observation_jacobian(
        self, time_index: int, z_in: Array, data: Array, work: Array, h_out: Array, h_x_out: Array, h_theta_out: Array
    ) -> None:
        """The same with its Jacobians."""

    def observation_hessian(
        self,
        time_index: int,
        z_in: Array,
        costate: Array,
        data: Array,
        work: Array,
        core_out: Array,
        diagonal_out: Array,
        left_out: Array,
        right_out: Array,
    ) -> None:
        """The second derivatives of costate' h, by structure."""

    def process_points(
        self, time_index: int, z_in: Array, u_in: Array, data: Array, work: Array, points_out: Array, gains_out: Array
    ) -> None:
        """Where a step evaluates Gaussian processes, where there are any."""

    def stage_terms(
        self, time_index: int, z_in: Array, u_in: Array, data: Array, work: Array, terms_out: Array
    ) -> None:
        """The terms of the cost of a step, where it is given by expressions."""

    def stage_jacobian(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        data: Array,
        work: Array,
        terms_out: Array,
        terms_x_out: Array,
        terms_u_out: Array,
    ) -> None:
        """The same with their slopes."""

    def stage_hessian(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        costate: Array,
        data: Array,
        work: Array,
        hessian_xx_out: Array,
        hessian_ux_out: Array,
        uu_out: Array,
    ) -> None:
        """The second derivatives of costate' t."""

    def final_terms(self, time_index: int, z_in: Array, data: Array, work: Array, terms_out: Array) -> None:
        """The terms of the cost of the end, likewise."""

    def final_jacobian(
        self, time_index: int, z_in: Array, data: Array, work: Array, terms_out: Array, terms_x_out: Array
    ) -> None:
        """The same with their slopes."""

    def final_hessian(
        self, time_index: int, z_in: Array, costate: Array, data: Array, work: Array, hessian_xx_out: Array
    ) -> None:
        """The second derivatives of costate' e."""

    def constraint_values(
        self, time_index: int, z_in: Array, u_in: Array, data: Array, work: Array, constraints_out: Array
    ) -> None:
        """The constraints, where there are any."""

    def constraint_jacobian(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        data: Array,
        work: Array,
        constraints_out: Array,
        constraints_x_out: Array,
        constraints_u_out: Array,
        constraints_theta_out: Array,
    ) -> None:
        """The same with their slopes."""

    def process_noise(
        self, time_index: int, z_in: Array, u_in: Array, data: Array, work: Array, noise_out: Array
    ) -> None:
        """Q(x, u), where noise depends on anything."""

    def process_noise_gradient(
        self,
        time_index: int,
        z_in: Array,
        u_in: Array,
        costate: Array,
        data: Array,
        work: Array,
        noise_x_out: Array,
        noise_u_out: Array,
    ) -> None:
        """The slopes of its entries, times weights, summed."""

    def measurement_noise(self, time_index: int, z_in: Array, data: Array, work: Array, noise_out: Array) -> None:
        """R(x), likewise."""

    def measurement_noise_gradient(
        self, time_index: int, z_in: Array, costate: Array, data: Array, work: Array, noise_x_out: Array
    ) -> None:
        """The slopes of its entries, times weights, summed."""
