"""PyTorch: tensors and arrays on one memory, and their gradients.

Tensors of the processor share memory with arrays of the device "cpu". torch is imported when a function here first
needs it.
"""

import functools
import importlib

from ..runtime.device import get_device
from .tensors import TensorLibrary, from_tensor, shared_numbers

@functools.cache
def library():
    """The module torch. Errors: ImportError where it is not installed."""
    return importlib.import_module("torch")


def dtype_from_torch(torch_dtype):
    """The scalar type of one of torch's. Errors: TypeError for types that the package lacks."""
    return TORCH.dtype_from(torch_dtype)


def dtype_to_torch(warp_dtype):
    """torch's type for a scalar type; the signed one for unsigned integers from 16 bits.

    Errors: TypeError for types that torch lacks.
    """
    return TORCH.dtype_to(warp_dtype)


def dtype_is_compatible(torch_dtype, warp_dtype):
    """Whether arrays of a type can share memory with tensors of one of torch's; of vectors and matrices by components."""
    return TORCH.reads(torch_dtype, warp_dtype)


def device_from_torch(torch_device):
    """The device of one of torch's, or of its name: the processor, or a GPU by its number.

    Errors: RuntimeError for other devices; ValueError for a GPU that is not there.
    """
    kind, _, number = str(torch_device).partition(":")
    if kind == "cpu":
        return get_device("cpu")
    if kind == "cuda":
        return get_device(f"cuda:{number or library().cuda.current_device()}")
    raise RuntimeError(f"Unsupported Torch device {torch_device}")


def device_to_torch(warp_device):
    """The name of torch's device for a device. Errors: RuntimeError for devices that torch has not."""
    device = get_device(warp_device)
    if device.is_cpu:
        return "cpu"
    if device.is_cuda:
        return f"cuda:{device.ordinal}"
    raise RuntimeError(f"Torch has no device for {device.alias}")


class Torch(TensorLibrary):
    """PyTorch."""

    name = "Torch"
    module = staticmethod(library)

    def keeps_no_gradient(self, tensor):
        return not (tensor.is_leaf or tensor.retains_grad)

    def on_host(self, tensor):
        return not tensor.is_cuda

    def check(self, tensor):
        if tensor.is_neg() or tensor.is_conj():
            raise RuntimeError(
                "the tensor's numbers are stored negated or conjugated: resolve_neg() or resolve_conj() it"
            )


TORCH = Torch()


def from_torch(t, dtype=None, requires_grad=None, grad=None, return_ctype=False, retain_grad=False):
    r"""The array on a tensor's memory, which both share.

    The array's gradient is the tensor's, and is made when it is first asked for, or when a tape that has recorded the
    array goes back. It is the array's own where the tensor is a result of torch's, and where torch records nothing (in
    an ``autograd.Function``, an operator, ``no_grad()``) and the tensor has no gradient yet: the caller hands it to torch,
    which adds it to the tensor's.
    \param dtype  the element type: of vectors and matrices too, whose components are the last dimensions
    \param requires_grad  whether the array has a gradient; as the tensor if it is left out
    \param grad  an array or a tensor that is the gradient instead
    \param return_ctype  gives an ArrayDescriptor instead, for launches alone
    \param retain_grad  kept for programs that say it, as the array's attribute: gradients stay anyway
    Errors: RuntimeError for numbers of another type, and for last dimensions that are no elements.
    """
    return from_tensor(TORCH, t, dtype, requires_grad, grad, return_ctype, retain_grad)


def to_torch(a, requires_grad=None):
    r"""The tensor on an array's memory, which both share; vectors and matrices have dimensions of their own.

    \param requires_grad  whether the tensor's gradient is the array's; as the array if it is left out
    Errors: TypeError for structs; RuntimeError while a tape records the thread's work, because it cannot know what torch
    does to the elements.
    """
    if requires_grad is None:
        requires_grad = a.requires_grad
    made = tensor_of(a)
    if requires_grad and made.is_floating_point():
        made.requires_grad_(True)
        if a.grad is not None:
            made.grad = tensor_of(a.grad)
    return made


def tensor_of(a):
    """The tensor on an array's memory, without a gradient."""
    torch = library()
    return torch.utils.dlpack.from_dlpack(a) if a.native_device.is_gpu else torch.from_numpy(shared_numbers(a))


def stream_from_torch(stream_or_device=None):
    """The stream for one of torch's.

    Errors: RuntimeError: torch's streams are CUDA's, and no device here has such streams.
    """
    raise RuntimeError(
        f"no stream here stands for {stream_or_device}: torch's streams are CUDA's, and devices here have none of those. "
        "torch.cuda.synchronize() before a launch and wp.synchronize() after it order the work of both"
    )


def stream_to_torch(stream_or_device=None):
    """torch's stream for one of a device. Errors: RuntimeError, as those of stream_from_torch()."""
    raise RuntimeError(
        f"torch has no stream for {stream_or_device}: its streams are CUDA's, and devices here have none of those. "
        "torch.cuda.synchronize() before a launch and wp.synchronize() after it order the work of both"
    )
