"""Jacobians, by adjoints and by finite differences."""

import numpy as np

from .. import _weft
from ..runtime.array import array, clone
from ..runtime.tape import Tape
from .plots import jacobian_plot
from .problem import Problem, count_of, is_differentiable, numbers_of, set_numbers


def empty_jacobian(y, x):
    """A Jacobian whose elements are not known yet: NaN."""
    return np.full((count_of(y), count_of(x)), np.nan)


def as_arrays(found, inputs):
    """The Jacobians as arrays with a row for each scalar of the output and a column for each element of the input."""
    made = {}
    for (i, j), values in found.items():
        x = inputs[i]
        shape = (len(values), x.size, *getattr(x.dtype, "_shape_", ()))
        made[i, j] = array(values.reshape(shape), dtype=x.dtype, device=x.device)
    return made


def plotted(jacobians, metadata, asked):
    """The Jacobians, after they are plotted if that is asked for."""
    if asked:
        jacobian_plot(jacobians, metadata)
    return jacobians


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
    metadata=None,
    restore_inputs=True,
    **_,
):
    r"""The derivatives of outputs by inputs, by the adjoint: a dict of (input's number, output's number) to an array with a
    row for each scalar of the output and a column for each element of the input, of the input's type.

    \param function  a kernel, with `dim`, `inputs` and `outputs`, or a function of the inputs that returns arrays
    \param input_output_mask  the pairs that are asked for, by names or numbers; all arrays with gradients if None
    \param max_outputs_per_var  the most rows that are computed; others are NaN; 0 or less: all
    \param plot_jacobians  shows them, see jacobian_plot(); `metadata` has the names and types that it shows
    Errors: ValueError for a mask that does not fit; those of launches and Tape.backward().
    Cost: one evaluation, and a way back for each row.
    """
    problem = Problem(function, dim, inputs, outputs, device, block_dim, metadata)
    gradients = [(a, clone(a.grad, requires_grad=False)) for a in problem.inputs if is_differentiable(a)]
    found = {}
    try:
        tape = Tape()
        with tape:
            made = problem.evaluate()
        pairs = problem.pairs(input_output_mask, made)
        for i, j in pairs:
            found[i, j] = empty_jacobian(made[j], problem.inputs[i])
        for j in sorted({j for _, j in pairs}):
            y = made[j]
            rows = count_of(y) if max_outputs_per_var <= 0 else min(max_outputs_per_var, count_of(y))
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
    return plotted(as_arrays(found, problem.inputs), problem.metadata, plot_jacobians)


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
    metadata=None,
    restore_inputs=True,
    **_,
):
    r"""The same as jacobian(), by differences of the outputs for inputs that are `eps` more and less.

    \param max_inputs_per_var  the most scalars of an input that are varied; others are NaN; 0 or less: all
    Cost: two evaluations for each scalar.
    """
    problem = Problem(function, dim, inputs, outputs, device, block_dim, metadata)
    found = {}
    try:
        made = problem.evaluate()
        pairs = problem.pairs(input_output_mask, made)
        for i, j in pairs:
            found[i, j] = empty_jacobian(made[j], problem.inputs[i])
        for i in sorted({i for i, _ in pairs}):
            x = problem.inputs[i]
            columns = count_of(x) if max_inputs_per_var <= 0 else min(max_inputs_per_var, count_of(x))
            rows = [j for k, j in pairs if k == i]
            for column in range(columns):
                steps, sides = sides_of(problem, x, column, eps, rows, restore_inputs)
                for j in rows:
                    found[i, j][:, column] = (sides[0][j] - sides[1][j]) / (steps[0] - steps[1])
    finally:
        if restore_inputs:
            problem.restore()
    return plotted(as_arrays(found, problem.inputs), problem.metadata, plot_jacobians)


def sides_of(problem, x, column, eps, rows, restore_inputs):
    """The values of a scalar of an input, `eps` more and less than given, and the outputs for them, as dicts by number."""
    steps, sides = [], []
    restores = restore_inputs or problem.is_kernel
    for sign in (1.0, -1.0):
        if restores:
            problem.restore()
        numbers = numbers_of(x)
        before = numbers[column]
        numbers[column] += sign * eps
        set_numbers(x, numbers)
        steps.append(numbers_of(x)[column])  # as the type of the input rounds it
        made = problem.evaluate()
        sides.append({j: numbers_of(made[j]) for j in rows})
        if not restores:
            numbers = numbers_of(x)
            numbers[column] = before
            set_numbers(x, numbers)
    return steps, sides
