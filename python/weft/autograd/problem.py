"""What Jacobians are computed of: kernels with copies of their arrays, and functions of Python."""

import numpy as np

from .. import _weft
from ..runtime.array import clone
from ..runtime.kernel import Kernel
from .plots import FunctionMetadata


class Problem:
    """What is derived: a kernel with its arguments, or a function of Python that takes arrays and returns some.

    Every evaluation begins with the inputs as they were given, also where the function changes them. A kernel runs on
    copies of its arrays: those of the caller stay as they are, and so do their gradients.
    """

    def __init__(self, function, dim, inputs, outputs, device, block_dim, metadata):
        self.function = function
        self.is_kernel = isinstance(function, Kernel)
        self.dim = dim
        self.inputs = list(inputs or [])
        self.outputs = list(outputs or [])
        self.device = device
        self.block_dim = block_dim
        self.metadata = FunctionMetadata() if metadata is None else metadata
        if self.is_kernel:
            if dim is None or not self.outputs:
                raise ValueError(
                    "A list of output arguments must be provided to compute kernel Jacobians: give dim, inputs and outputs"
                )
            copies = copies_of([*self.inputs, *self.outputs])
            self.inputs, self.outputs = copies[: len(self.inputs)], copies[len(self.inputs) :]
            if self.metadata.is_empty:
                self.metadata.update_from_kernel(function, self.inputs)
        elif not callable(function):
            raise TypeError(f"a kernel or a function has Jacobians, not a {type(function).__name__}")
        given = [*self.inputs, *self.outputs] if self.is_kernel else self.inputs
        self.before = [(a, clone(a, requires_grad=False)) for a in given if isinstance(a, _weft.Array)]

    def evaluate(self):
        """The outputs. Errors: ValueError for a function that returns no arrays."""
        if self.is_kernel:
            device = self.device or self.outputs[0].device
            arguments = dict(device=device) if self.block_dim is None else dict(device=device, block_dim=self.block_dim)
            _weft.launch(self.function, self.dim, self.inputs, self.outputs, **arguments)
            return self.outputs
        made = self.function(*self.inputs)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if not all(isinstance(a, _weft.Array) for a in made):
            raise ValueError("the function returns something else than arrays")
        if self.metadata.is_empty:
            self.metadata.update_from_function(self.function, self.inputs, made)
        return made

    def restore(self):
        """Gives the arrays the values that they had."""
        hidden = _weft.Unrecorded()
        hidden.enter()
        try:
            for target, values in self.before:
                target.copy_from(values)
        finally:
            hidden.exit()

    def pairs(self, mask, outputs):
        """The pairs of an input's and an output's number whose Jacobians are asked for: of arrays with gradients.

        Errors: ValueError for names and numbers that there are not.
        """
        columns = [i for i, a in enumerate(self.inputs) if is_differentiable(a)]
        rows = [j for j, a in enumerate(outputs) if is_differentiable(a)]
        if mask is None:
            return [(i, j) for j in rows for i in columns]
        found = []
        for one, other in mask:
            i = number_of(one, self.metadata.input_labels, len(self.inputs), "input")
            j = number_of(other, self.metadata.output_labels, len(outputs), "output")
            if i in columns and j in rows:
                found.append((i, j))
        return found


def copies_of(arguments):
    """The arguments with copies of their arrays: one copy of an array that is there twice."""
    made = {}
    for a in arguments:
        if isinstance(a, _weft.Array) and id(a) not in made:
            hidden = _weft.Unrecorded()
            hidden.enter()
            try:
                made[id(a)] = clone(a)
            finally:
                hidden.exit()
    return [made.get(id(a), a) for a in arguments]


def is_differentiable(thing):
    """Whether something is an array whose gradient is asked for."""
    return isinstance(thing, _weft.Array) and thing.requires_grad


def number_of(given, names, count, what):
    """The number of an input or output that is given by name or number. Errors: ValueError for none."""
    if isinstance(given, str) and given in names:
        return names.index(given)
    if isinstance(given, int) and 0 <= given < count:
        return given
    raise ValueError(f"there is no {what} {given!r}")


def count_of(a):
    """The number of scalars in an array."""
    return a.size * a.element_dtype.count


def numbers_of(a):
    """The scalars of an array, in row-major order, on the host."""
    return np.array(a.contiguous().numpy(), dtype=np.float64).reshape(-1)


def set_numbers(a, numbers):
    """Replaces the scalars of an array."""
    shape = a.numpy().shape
    a.assign(np.asarray(numbers).reshape(shape))
