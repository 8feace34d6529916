"""Paddle: tensors and arrays on one memory, and their gradients.

Tensors of the processor share memory with arrays of the device "cpu". paddle is imported when a function here first
needs it.
"""

import functools
import importlib

from ..runtime.device import get_device
from .tensors import TensorLibrary, from_tensor, shared_numbers


@functools.cache
def library():
    """The module paddle. Errors: ImportError where it is not installed."""
    return importlib.import_module("paddle")


def dtype_from_paddle(paddle_dtype):
    """The scalar type of one of Paddle's. Errors: TypeError for types that the package lacks."""
    return PADDLE.dtype_from(paddle_dtype)


def dtype_to_paddle(warp_dtype):
    """Paddle's type for a scalar type; the signed one for unsigned integers from 16 bits.

    Errors: TypeError for types that Paddle lacks.
    """
    return PADDLE.dtype_to(warp_dtype)


def dtype_is_compatible(paddle_dtype, warp_dtype):
    """Whether arrays of a type can share memory with tensors of one of Paddle's; of vectors and matrices by components."""
    return PADDLE.reads(paddle_dtype, warp_dtype)


def device_from_paddle(paddle_device):
    """The device of one of Paddle's places, or of its name ("cpu", "gpu:0").

    Errors: RuntimeError for other devices; ValueError for a GPU that is not there.
    """
    text = str(paddle_device).removeprefix("Place(").removesuffix(")")
    kind, _, number = text.partition(":")
    if kind == "cpu":
        return get_device("cpu")
    if kind == "gpu":
        return get_device(f"cuda:{number or 0}")
    raise RuntimeError(f"Unsupported Paddle device {paddle_device}")


def device_to_paddle(warp_device):
    """The name of Paddle's device for a device. Errors: RuntimeError for devices that Paddle has not."""
    device = get_device(warp_device)
    if device.is_cpu:
        return "cpu"
    if device.is_cuda:
        return f"gpu:{device.ordinal}"
    raise RuntimeError(f"Paddle has no device for {device.alias}")


class Paddle(TensorLibrary):
    """Paddle."""

    name = "Paddle"
    module = staticmethod(library)

    def has_gradient(self, tensor):
        return not tensor.stop_gradient

    def share_gradient(self, tensor, gradient):
        tensor.grad_ = gradient  # `grad` would be a copy

    def on_host(self, tensor):
        return tensor.place.is_cpu_place()


PADDLE = Paddle()


def from_paddle(t, dtype=None, requires_grad=None, grad=None, return_ctype=False, retain_grad=False):
    r"""The array on a tensor's memory, which both share, with the tensor's gradient. All as for from_torch().

    Parts of one tensor that overlap are no arrays at the same time: Paddle does not say what memory they are parts of.
    \param dtype  the element type: of vectors and matrices too, whose components are the last dimensions
    \param requires_grad  whether the array has a gradient; if it is left out, unless the tensor has ``stop_gradient``
    \param grad  an array or a tensor that is the gradient instead
    \param return_ctype  gives an ArrayDescriptor instead, for launches alone
    Errors: RuntimeError for numbers of another type, and for last dimensions that are no elements.
    """
    return from_tensor(PADDLE, t, dtype, requires_grad, grad, return_ctype, retain_grad)


def to_paddle(a, requires_grad=None):
    r"""The tensor on an array's memory, which both share; vectors and matrices have dimensions of their own.

    \param requires_grad  whether the tensor's gradient is the array's; as the array if it is left out
    Errors: TypeError for structs; RuntimeError while a tape records the thread's work, because it cannot know what Paddle
    does to the elements.
    """
    if requires_grad is None:
        requires_grad = a.requires_grad
    made = tensor_of(a)
    if requires_grad and a.dtype.native.has_reals:
        made.stop_gradient = False
        if a.grad is not None:
            PADDLE.share_gradient(made, tensor_of(a.grad))
    return made


def tensor_of(a):
    """The tensor on an array's memory, without a gradient."""
    return library().utils.dlpack.from_dlpack(a if a.native_device.is_gpu else shared_numbers(a))


def stream_from_paddle(stream_or_device=None):
    """The stream for one of Paddle's.

    Errors: RuntimeError: Paddle's streams are CUDA's, and no device here has such streams.
    """
    raise RuntimeError(
        f"no stream here stands for {stream_or_device}: Paddle's streams are CUDA's, and devices here have none of those. "
        "paddle.device.synchronize() before a launch and wp.synchronize() after it order the work of both"
    )
