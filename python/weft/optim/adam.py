"""Adam: steps by means of the gradient and of its square."""

from typing import Any

import weft as wp


@wp.kernel
def adam_step(
    g: wp.array(dtype=Any),
    m: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    lr: float,
    beta1: float,
    beta2: float,
    correction1: float,
    correction2: float,
    eps: float,
    params: wp.array(dtype=Any),
):
    """One step of one number."""
    i = wp.tid()
    scalar = params.dtype
    grad = float(g[i])
    first = beta1 * float(m[i]) + (1.0 - beta1) * grad
    second = beta2 * float(v[i]) + (1.0 - beta2) * grad * grad
    m[i] = m.dtype(first)
    v[i] = v.dtype(second)
    mean = first / correction1
    square = second / correction2
    params[i] = params[i] - scalar(lr * mean / (wp.sqrt(square) + eps))


class Adam:
    """Kingma's and Ba's optimiser, for a list of arrays of numbers or vectors.

    Call ``step(gradients)`` with a list of gradients of the same shapes.
    """

    def __init__(self, params=None, lr=0.001, betas=(0.9, 0.999), eps=1.0e-8):
        self.lr = lr
        self.beta1, self.beta2 = betas
        self.eps = eps
        self.t = 0
        self.params = []
        self.m = []
        self.v = []
        self.set_params(params)

    def set_params(self, params):
        """Takes the arrays that step() changes. Means that fit them are kept, in order; others begin at zero."""
        self.params = list(params or [])
        for array in self.params:
            if array.ndim != 1:
                raise RuntimeError("the parameters of an optimiser are arrays of one dimension")
        self.m = means_for(self.params, self.m)
        self.v = means_for(self.params, self.v)

    def reset_internal_state(self):
        """Sets the means to zero, and the count of steps."""
        for array in (*self.m, *self.v):
            array.zero_()
        self.t = 0

    def step(self, grad):
        """One step along the gradients. Errors: RuntimeError for another number or other shapes of gradients."""
        if len(grad) != len(self.params):
            raise RuntimeError(f"{len(self.params)} gradients are needed, not {len(grad)}")
        self.t += 1
        for p, g, m, v in zip(self.params, grad, self.m, self.v):
            if g.shape != p.shape or g.dtype is not p.dtype:
                raise RuntimeError("a gradient has the shape and the type of its parameters")
            flat = numbers(p)
            wp.launch(
                adam_step,
                dim=flat.size,
                inputs=[
                    numbers(g),
                    m,
                    v,
                    self.lr,
                    self.beta1,
                    self.beta2,
                    1.0 - self.beta1**self.t,
                    1.0 - self.beta2**self.t,
                    self.eps,
                    flat,
                ],
                record_tape=False,
            )


def numbers(array):
    """An array of one dimension as its scalars."""
    if array.dtype.native.kind == "scalar":
        return array
    return array.scalars().reshape(array.size * array.dtype.native.count)


def moment_type(array):
    """The type in which means are kept: float32, or float64 for parameters of float64."""
    return wp.float64 if wp.types.type_scalar_type(array.dtype) is wp.float64 else wp.float32


def means_for(params, before):
    """The means of parameters: those of before where they are as many, with the same numbers and types; else zeros."""
    made = []
    for k, array in enumerate(params):
        flat = numbers(array)
        mean = before[k] if len(before) == len(params) else None
        if mean is None or mean.shape != flat.shape or mean.dtype is not moment_type(array):
            mean = wp.zeros(flat.shape, dtype=moment_type(array), device=array.device)
        made.append(mean.to(array.device))
    return made
