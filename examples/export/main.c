/* A pendulum that finds out its own length while it swings up, without Python. `make` exports, compiles and runs it. */
#include <stdio.h>

#include "pendulum.h"

static pendulum_controller controller; /* all the memory that there is */

int main(void)
{
    double truth[PENDULUM_NZ] = { /* angle and rate are zero, friction and 1/length what they really are */
        [PENDULUM_AT_inverse_length] = 1.25, [PENDULUM_AT_friction] = 0.1
    };
    const int at = PENDULUM_AT_inverse_length;
    double y[PENDULUM_NY] = {PENDULUM_NAN, PENDULUM_NAN}; /* nothing is measured before the first input */
    double u[PENDULUM_NU];
    double x[PENDULUM_NX];

    pendulum_init(&controller);
    pendulum_use(&controller, PENDULUM_PLANNED);
    for (int k = 0; k < PENDULUM_PLAN_STEPS; k++) {
        const int status = pendulum_act(&controller, y, u);
        if (status < 0) {
            printf("stopped at step %d with status %d\n", k, status);
            return 1;
        }
        printf("%2d  angle %6.3f  torque %6.3f  believed 1/length %.3f +- %.3f\n", k, truth[0], u[0],
            controller.belief.z[at], sqrt(controller.belief.tt[at - PENDULUM_NX][at - PENDULUM_NX]));

        /* the world: here the model itself with other parameters; on a target, actuators and sensors */
        pendulum_kernels_dynamics(k, truth, u, controller.settings.numbers, x);
        truth[0] = x[0];
        truth[1] = x[1];
        y[0] = x[0];
        y[1] = k % 5 == 4 ? PENDULUM_NAN : x[1]; /* the rate sensor fails now and then */
    }
    return 0;
}
