"""Jacobians of kernels and functions, by their adjoints and by finite differences, and whether the two agree."""

import sys

import numpy as np

from . import _weft
from .runtime.array import array, clone
from .runtime.kernel import Kernel
from .runtime.tape import Tape


class Problem:
    """What is derived: a kernel with its arguments, or a function of Python that takes arrays and returns some.

    Every evaluation begins with the inputs as they were given, also where the function changes them.
    """

    def __init__(self, function, dim, inputs, outputs, device, block_dim):
        self.function = function
        self.dim = dim
        self.inputs = list(inputs or [])
        self.outputs = list(outputs or [])
        self.device = device
        self.block_dim = block_dim
        if isinstance(function, Kernel):
            if dim is None or not self.outputs:
                raise ValueError("the Jacobian of a kernel needs dim, inputs and outputs")
            names = [name for name, _ in function.parameters]
            self.input_names = names[: len(self.inputs)]
            self.output_names = names[len(self.inputs) :]
        elif callable(function):
            self.input_names = list(getattr(getattr(function, "__code__", None), "co_varnames", ()))[: len(self.inputs)]
            self.output_names = []
        else:
            raise TypeError(f"a kernel or a function has Jacobians, not a {type(function).__name__}")
        self.before = [(a, clone(a, requires_grad=False)) for a in self.inputs if isinstance(a, _weft.Array)]

    def evaluate(self):
        """The outputs. Errors: ValueError for a function that returns no arrays."""
        if isinstance(self.function, Kernel):
            device = self.device or self.outputs[0].device
            arguments = dict(device=device) if self.block_dim is None else dict(device=device, block_dim=self.block_dim)
            _weft.launch(self.function, self.dim, self.inputs, self.outputs, **arguments)
            return self.outputs
        made = self.function(*self.inputs)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if not all(isinstance(a, _weft.Array) for a in made):
            raise ValueError("the function returns something else than arrays")
        return made

    def restore(self):
        """Gives the inputs the values that they had."""
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
            i = number_of(one, self.input_names, len(self.inputs), "input")
            j = number_of(other, self.output_names, len(outputs), "output")
            if i in columns and j in rows:
                found.append((i, j))
        return found


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


def empty_jacobian(y, x):
    """A Jacobian whose elements are not known yet: NaN."""
    return np.full((count_of(y), count_of(x)), np.nan)


def as_arrays(found, scalar_of):
    """The Jacobians as arrays of the types of what they belong to."""
    return {key: array(values, dtype=scalar_of(key)) for key, values in found.items()}


def scalar_type(a):
    """The type of the scalars of an array."""
    return a.dtype if a.dtype.native.kind == "scalar" else a.dtype._wp_scalar_type_


def jacobian(
    function,
    dim=None,
    inputs=None,
    outputs=None,
    input_output_mask=None,
    device=None,
    max_blocks=0,
    block_dim=None,
    max_outputs_per_var=-1,
    plot_jacobians=False,
    restore_inputs=True,
    **_,
):
    r"""The derivatives of outputs by inputs, by the adjoint: a dict of (input's number, output's number) to an array with a
    row for each scalar of the output and a column for each of the input.

    \param function  a kernel, with `dim`, `inputs` and `outputs`, or a function of the inputs that returns arrays
    \param input_output_mask  the pairs that are asked for, by names or numbers; all arrays with gradients if None
    \param max_outputs_per_var  the most rows that are computed; others are NaN; -1: all
    Errors: ValueError for a mask that does not fit; those of launches and Tape.backward().
    Cost: one evaluation, and a way back for each row.
    """
    refuse_plot(plot_jacobians)
    problem = Problem(function, dim, inputs, outputs, device, block_dim)
    gradients = [(a, clone(a.grad, requires_grad=False)) for a in problem.inputs if is_differentiable(a)]
    found, scalars = {}, {}
    try:
        tape = Tape()
        with tape:
            made = problem.evaluate()
        pairs = problem.pairs(input_output_mask, made)
        for i, j in pairs:
            found[i, j] = empty_jacobian(made[j], problem.inputs[i])
            scalars[i, j] = scalar_type(made[j])
        for j in sorted({j for _, j in pairs}):
            y = made[j]
            rows = count_of(y) if max_outputs_per_var < 0 else min(max_outputs_per_var, count_of(y))
            for row in range(rows):
                seed = np.zeros(count_of(y))
                seed[row] = 1.0
                tape.zero()
                given = _weft.zeros(y.shape, y.element_dtype, y.native_device)
                set_numbers(given, seed)
                tape.backward(grads={y: given})
                for i, _ in (p for p in pairs if p[1] == j):
                    found[i, j][row] = numbers_of(problem.inputs[i].grad)
        tape.zero()
    finally:
        for a, before in gradients:
            a.grad.copy_from(before)
        if restore_inputs:
            problem.restore()
    return as_arrays(found, scalars.get)


def jacobian_fd(
    function,
    dim=None,
    inputs=None,
    outputs=None,
    input_output_mask=None,
    device=None,
    max_blocks=0,
    block_dim=None,
    max_inputs_per_var=-1,
    eps=1e-4,
    plot_jacobians=False,
    restore_inputs=True,
    **_,
):
    r"""The same as jacobian(), by differences of the outputs for inputs that are `eps` more and less.

    \param max_inputs_per_var  the most columns that are computed; others are NaN; -1: all
    Cost: two evaluations for each column.
    """
    refuse_plot(plot_jacobians)
    problem = Problem(function, dim, inputs, outputs, device, block_dim)
    found, scalars = {}, {}
    try:
        made = problem.evaluate()
        pairs = problem.pairs(input_output_mask, made)
        for i, j in pairs:
            found[i, j] = empty_jacobian(made[j], problem.inputs[i])
            scalars[i, j] = scalar_type(problem.inputs[i])
        for i in sorted({i for i, _ in pairs}):
            x = problem.inputs[i]
            if restore_inputs:
                problem.restore()
            columns = count_of(x) if max_inputs_per_var < 0 else min(max_inputs_per_var, count_of(x))
            for column in range(columns):
                sides, steps = [], []
                for sign in (1.0, -1.0):
                    if restore_inputs:
                        problem.restore()
                    numbers = numbers_of(x)
                    before = numbers[column]
                    numbers[column] += sign * eps
                    set_numbers(x, numbers)
                    steps.append(numbers_of(x)[column])  # as the type of the input rounds it
                    made = problem.evaluate()
                    sides.append({j: numbers_of(made[j]) for k, j in pairs if k == i})
                    if not restore_inputs:
                        numbers = numbers_of(x)
                        numbers[column] = before
                        set_numbers(x, numbers)
                for k, j in pairs:
                    if k == i:
                        found[i, j][:, column] = (sides[0][j] - sides[1][j]) / (steps[0] - steps[1])
    finally:
        if restore_inputs:
            problem.restore()
    return as_arrays(found, scalars.get)


def gradcheck(
    function,
    dim=None,
    inputs=None,
    outputs=None,
    *,
    eps=1e-4,
    atol=1e-3,
    rtol=1e-2,
    raise_exception=True,
    input_output_mask=None,
    device=None,
    max_blocks=0,
    block_dim=None,
    max_inputs_per_var=-1,
    max_outputs_per_var=-1,
    plot_relative_error=False,
    plot_absolute_error=False,
    show_summary=True,
    restore_inputs=True,
    **_,
):
    r"""Whether the adjoint agrees with finite differences, for each pair of an input and an output.

    \param show_summary  prints the greatest differences
    Errors: ValueError where they differ by more than atol + rtol * size, or are not finite, if `raise_exception`.
    Cost: that of jacobian() and jacobian_fd().
    """
    refuse_plot(plot_relative_error or plot_absolute_error)
    common = dict(
        dim=dim, inputs=inputs, outputs=outputs, input_output_mask=input_output_mask, device=device, block_dim=block_dim
    )
    by_adjoint = jacobian(function, max_outputs_per_var=max_outputs_per_var, restore_inputs=restore_inputs, **common)
    by_difference = jacobian_fd(
        function, max_inputs_per_var=max_inputs_per_var, eps=eps, restore_inputs=restore_inputs, **common
    )
    good = True
    for key in sorted(by_adjoint):
        a, d = by_adjoint[key].numpy(), by_difference[key].numpy()
        rows = a.shape[0] if max_outputs_per_var < 0 else max_outputs_per_var
        columns = a.shape[1] if max_inputs_per_var < 0 else max_inputs_per_var
        a, d = a[:rows, :columns].astype(np.float64), d[:rows, :columns].astype(np.float64)
        finite = bool(np.isfinite(a).all() and np.isfinite(d).all())
        distance = np.abs(a - d)
        agrees = finite and bool((distance <= atol + rtol * np.abs(d)).all())
        text = f"input {key[0]}, output {key[1]}: greatest difference {distance.max(initial=0.0):.3g}"
        if show_summary:
            sys.stdout.write(f"{'pass' if agrees else 'fail'}: {text}\n")
        if not agrees and raise_exception:
            what = "differ" if finite else "are not finite"
            raise ValueError(f"the adjoint and the finite differences {what}: {text}")
        good = good and agrees
    return good


def refuse_plot(asked):
    """Refuses plots, which the package does not draw."""
    if asked:
        raise RuntimeError("Jacobians are not plotted: they are arrays, which any library for plots shows")
