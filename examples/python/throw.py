"""Finds how to throw balls so that each hits a target of its own, by the gradient of the whole flight with its bounces.

    python examples/python/throw.py --balls 64 --rounds 200

Air slows the balls down, and the floor and a wall bounce them. A tape records all steps; the optimiser changes the
velocities by which the balls start.
"""

import argparse

import numpy as np

import weft as wp
import weft.optim

GRAVITY = wp.constant(wp.vec3(0.0, -9.81, 0.0))
WALL = wp.constant(2.0)


@wp.kernel
def step(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
    dt: float,
):
    """One step of a flight. A ball that goes into the floor (y < 0) or the wall (x > 2) turns round, and is slower."""
    i = wp.tid()
    speed = wp.length(v[i])
    velocity = v[i] + (GRAVITY - v[i] * (0.02 * speed)) * dt
    position = x[i] + velocity * dt
    if position[1] < 0.0 and velocity[1] < 0.0:
        velocity = wp.vec3(velocity[0], -0.7 * velocity[1], velocity[2])
        position = wp.vec3(position[0], -position[1], position[2])
    if position[0] > WALL and velocity[0] > 0.0:
        velocity = wp.vec3(-0.7 * velocity[0], velocity[1], velocity[2])
        position = wp.vec3(2.0 * WALL - position[0], position[1], position[2])
    x_next[i] = position
    v_next[i] = velocity


@wp.kernel
def miss(x: wp.array(dtype=wp.vec3), target: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    """The sum of squared distances to the targets."""
    i = wp.tid()
    d = x[i] - target[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


class Throws:
    """Balls that start at one place, and the states of their flights."""

    def __init__(self, balls, steps=60, dt=1.0 / 60.0, seed=1):
        random = np.random.default_rng(seed)
        self.dt = dt
        start = np.tile([[-1.0, 0.5, 0.0]], (balls, 1))
        guess = random.normal([7.0, 6.0, 0.0], 0.3, (balls, 3))
        targets = random.uniform([-1.0, 0.3, -1.0], [1.0, 1.0, 1.0], (balls, 3))
        self.target = wp.array(targets, dtype=wp.vec3)
        self.x = [wp.array(start, dtype=wp.vec3, requires_grad=True)]
        self.v = [wp.array(guess, dtype=wp.vec3, requires_grad=True)]
        for _ in range(steps):
            self.x.append(wp.zeros(balls, dtype=wp.vec3, requires_grad=True))
            self.v.append(wp.zeros(balls, dtype=wp.vec3, requires_grad=True))
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def fly(self):
        """All flights, and how far they miss."""
        self.loss.zero_()
        for k in range(len(self.x) - 1):
            states = [self.x[k], self.v[k], self.x[k + 1], self.v[k + 1]]
            wp.launch(step, dim=len(self.x[0]), inputs=[*states, self.dt])
        wp.launch(miss, dim=len(self.x[0]), inputs=[self.x[-1], self.target, self.loss])

    def gradient(self):
        """The derivative of the loss by the velocities at the start. Returns the tape, which holds it."""
        tape = wp.Tape()
        with tape:
            self.fly()
        tape.backward(self.loss)
        return tape

    def improve(self, rounds, rate=0.03):
        """Changes the throws. Gives the loss before each round."""
        optimizer = weft.optim.Adam([self.v[0].flatten()], lr=rate)
        for _ in range(rounds):
            tape = self.gradient()
            yield float(self.loss.numpy()[0])
            optimizer.step([self.v[0].grad.flatten()])
            tape.zero()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--balls", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--device", help="by default a GPU if there is one")
    options = parser.parse_args()

    with wp.ScopedDevice(options.device or wp.get_preferred_device()):
        throws = Throws(options.balls)
        for k, loss in enumerate(throws.improve(options.rounds)):
            if k % 10 == 0:
                print(f"round {k}: the balls miss by {np.sqrt(loss / options.balls):.3f} m")
        throws.fly()
        print(f"in the end by {np.sqrt(throws.loss.numpy()[0] / options.balls):.4f} m")


if __name__ == "__main__":
    main()
