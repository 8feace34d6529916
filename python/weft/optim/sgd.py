"""Stochastic gradient descent, with momentum, damping, weight decay and Nesterov's look ahead."""

from typing import Any

import weft as wp

from .adam import means_for, numbers


@wp.kernel
def sgd_step(
    g: wp.array(dtype=Any),
    b: wp.array(dtype=Any),
    lr: float,
    momentum: float,
    damping: float,
    weight_decay: float,
    nesterov: int,
    t: int,
    params: wp.array(dtype=Any),
):
    """One step of one number."""
    i = wp.tid()
    scalar = params.dtype
    step = float(g[i])
    if weight_decay != 0.0:
        step += weight_decay * float(params[i])
    if momentum != 0.0:
        held = float(b[i])
        if t == 0:
            held = step
        else:
            held = momentum * held + (1.0 - damping) * step
        b[i] = b.dtype(held)
        if nesterov != 0:
            step += momentum * held
        else:
            step = held
    params[i] = params[i] - scalar(lr * step)


class SGD:
    """Gradient descent for a list of arrays of numbers or vectors. Call ``step(gradients)``."""

    def __init__(self, params=None, lr=0.001, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
        self.lr = lr
        self.momentum = momentum
        self.dampening = dampening
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.t = 0
        self.params = []
        self.b = []
        self.set_params(params)

    def set_params(self, params):
        """Takes the arrays that step() changes. Momenta that fit them are kept, in order; others begin at zero."""
        self.params = list(params or [])
        self.b = means_for(self.params, self.b)

    def reset_internal_state(self):
        """Sets the momenta to zero, and the count of steps."""
        for array in self.b:
            array.zero_()
        self.t = 0

    def step(self, grad):
        """One step along the gradients. Errors: RuntimeError for another number or other shapes of gradients."""
        if len(grad) != len(self.params):
            raise RuntimeError(f"{len(self.params)} gradients are needed, not {len(grad)}")
        for p, g, b in zip(self.params, grad, self.b):
            if g.shape != p.shape or g.dtype is not p.dtype:
                raise RuntimeError("a gradient has the shape and the type of its parameters")
            flat = numbers(p)
            wp.launch(
                sgd_step,
                dim=flat.size,
                inputs=[
                    numbers(g),
                    b,
                    self.lr,
                    self.momentum,
                    self.dampening,
                    self.weight_decay,
                    int(self.nesterov),
                    self.t,
                    flat,
                ],
                record_tape=False,
            )
        self.t += 1
