"""Whether adjoints agree with finite differences: of a kernel, of a function, and of the launches on a tape."""

import sys

import numpy as np

from ..runtime.array import array
from .jacobians import jacobian, jacobian_fd
from .plots import FunctionMetadata, jacobian_plot


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

    \param plot_relative_error, plot_absolute_error  show the errors, see jacobian_plot()
    \param show_summary  prints the greatest differences
    Errors: ValueError where they differ by more than atol + rtol * size, or are not finite, if `raise_exception`.
    Cost: that of jacobian() and jacobian_fd().
    """
    metadata = FunctionMetadata()
    common = dict(
        dim=dim,
        inputs=inputs,
        outputs=outputs,
        input_output_mask=input_output_mask,
        device=device,
        block_dim=block_dim,
        metadata=metadata,
        restore_inputs=restore_inputs,
    )
    by_adjoint = jacobian(function, max_outputs_per_var=max_outputs_per_var, **common)
    by_difference = jacobian_fd(function, max_inputs_per_var=max_inputs_per_var, eps=eps, **common)
    failures = []
    for key in sorted(by_adjoint):
        computed = slice_of(max_outputs_per_var), slice_of(max_inputs_per_var)
        agrees, text = compared(matrix_of(by_adjoint[key])[computed], matrix_of(by_difference[key])[computed], atol, rtol)
        place = f"input {key[0]}, output {key[1]}"
        if show_summary:
            sys.stdout.write(f"{'pass' if agrees else 'fail'}: {place}: {text}\n")
        if not agrees:
            failures.append(f"{metadata.key}, {place}: the adjoint and the finite differences {text}")
    for kind, error_of in (("relative", relative_error), ("absolute", absolute_error)):
        if plot_relative_error if kind == "relative" else plot_absolute_error:
            errors = {key: error_of(by_adjoint[key], by_difference[key]) for key in by_adjoint}
            jacobian_plot(errors, metadata, title=f"{metadata.key} kernel Jacobian {kind} error")
    if failures and raise_exception:
        raise ValueError(failures[0])
    return not failures


def gradcheck_tape(
    tape,
    *,
    eps=1e-4,
    atol=1e-3,
    rtol=1e-2,
    raise_exception=True,
    input_output_masks=None,
    blacklist_kernels=None,
    whitelist_kernels=None,
    max_inputs_per_var=-1,
    max_outputs_per_var=-1,
    plot_relative_error=False,
    plot_absolute_error=False,
    show_summary=True,
    reverse_launches=False,
    skip_to_launch_index=0,
):
    r"""gradcheck() of each launch on a tape, with the values that its arrays hold now, on copies of them.

    What a launch computes is told by its `outputs`. Functions of record_func() are left out, and kernels that say
    ``enable_backward=False``.
    \param input_output_masks  a dict of a kernel's key to its input_output_mask
    \param blacklist_kernels, whitelist_kernels  keys of kernels that are left out; keys of the only ones that are checked
    \param reverse_launches  checks the last launch first
    \param skip_to_launch_index  the number of launches and functions that are left out first
    Errors: as gradcheck(), also for a launch without outputs.
    """
    launches = list(tape.launches)
    if reverse_launches:
        launches.reverse()
    good = True
    for launch in launches[skip_to_launch_index:]:
        if not isinstance(launch, (list, tuple)):
            continue
        kernel, dim, max_blocks, inputs, outputs, device, block_dim = launch[:7]
        is_named = not whitelist_kernels or kernel.key in whitelist_kernels
        if not is_named or kernel.key in (blacklist_kernels or ()) or kernel.option("enable_backward") is False:
            continue
        good &= gradcheck(
            kernel,
            dim,
            inputs,
            outputs,
            eps=eps,
            atol=atol,
            rtol=rtol,
            raise_exception=raise_exception,
            input_output_mask=(input_output_masks or {}).get(kernel.key),
            device=device,
            max_blocks=max_blocks,
            block_dim=block_dim,
            max_inputs_per_var=max_inputs_per_var,
            max_outputs_per_var=max_outputs_per_var,
            plot_relative_error=plot_relative_error,
            plot_absolute_error=plot_absolute_error,
            show_summary=show_summary,
        )
    return good


def slice_of(most):
    """The rows or columns that are computed: the first ones, or all without a limit."""
    return slice(None) if most <= 0 else slice(most)


def matrix_of(made):
    """A Jacobian with a column for each scalar of the input, on the host."""
    numbers = made.numpy()
    return numbers.reshape(len(numbers), -1).astype(np.float64)


def compared(adjoint, difference, atol, rtol):
    """Whether two Jacobians agree, and a text about their greatest difference."""
    distance = np.abs(adjoint - difference)
    finite = bool(np.isfinite(adjoint).all() and np.isfinite(difference).all())
    agrees = finite and bool((distance <= atol + rtol * np.abs(difference)).all())
    what = "agree" if agrees else "differ" if finite else "are not finite"
    return agrees, f"{what}: greatest difference {distance.max(initial=0.0):.3g}"


def absolute_error(adjoint, difference):
    """The sizes of the differences, as an array like the Jacobians."""
    return like(adjoint, np.abs(matrix_of(adjoint) - matrix_of(difference)))


def relative_error(adjoint, difference):
    """The differences as parts of the adjoint's Jacobian, as an array like it."""
    a, d = matrix_of(adjoint), matrix_of(difference)
    return like(adjoint, (a - d) / np.where(np.abs(a) < 1e-8, 1e-8, a))


def like(made, numbers):
    """Numbers as an array like a Jacobian."""
    return array(numbers.reshape(made.numpy().shape), dtype=made.dtype, device=made.device)
