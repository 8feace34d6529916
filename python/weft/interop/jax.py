"""JAX: arrays of both libraries on one memory.

Arrays of the processor share memory with arrays of the device "cpu". jax is imported when a function here first needs it.
"""

import functools
import importlib

import numpy as np

from .. import _weft
from ..runtime.array import array, outer_shape
from ..runtime.device import get_device
from ..types import numpy_types, scalars
from ..types.annotations import element_type, is_concrete, type_name


@functools.cache
def library():
    """The module jax. Errors: ImportError where it is not installed."""
    return importlib.import_module("jax")


def dtype_from_jax(jax_dtype):
    """The scalar type of one of JAX's. Errors: TypeError for types that the package lacks."""
    try:
        return numpy_types.dtype_from_numpy(np.dtype(jax_dtype))
    except TypeError:
        raise TypeError(f"Cannot convert {jax_dtype} to a type of weft") from None


def dtype_to_jax(warp_dtype):
    """JAX's type for a scalar type. Errors: TypeError for others."""
    dtype = element_type(warp_dtype)
    if dtype.native.kind != "scalar":
        raise TypeError(f"Cannot convert {type_name(dtype)} to a type of JAX")
    return getattr(library().numpy, "bool_" if dtype is scalars.bool else dtype.__name__)


def device_from_jax(jax_device):
    """The device for one of JAX's. Errors: RuntimeError for platforms other than the processor and GPUs."""
    if jax_device.platform == "cpu":
        return get_device("cpu")
    if jax_device.platform in ("gpu", "cuda"):
        return get_device(f"cuda:{jax_device.id}")
    raise RuntimeError(f"Unsupported JAX device platform {jax_device.platform}")


def device_to_jax(warp_device):
    """JAX's device for a device. Errors: RuntimeError where JAX has none."""
    device = get_device(warp_device)
    platform, number = ("cpu", 0) if device.is_cpu else ("cuda", device.ordinal)
    if not (device.is_cpu or device.is_cuda):
        raise RuntimeError(f"JAX has no device for {device.alias}")
    return library().devices(platform)[number]


def from_jax(jax_array, dtype=None):
    r"""The array on the memory of an array of JAX's, which both share: kernels must not write to it, because JAX's arrays do
    not change.

    \param dtype  the element type: of vectors and matrices too, whose components are the last dimensions
    Errors: RuntimeError for numbers of another type, last dimensions that are no elements, and arrays on several devices.
    """
    scalar = dtype_from_jax(jax_array.dtype)
    dtype = scalar if dtype is None else element_type(dtype)
    if not is_concrete(dtype) or (getattr(dtype, "_wp_scalar_type_", None) or dtype) is not scalar:
        raise RuntimeError(f"Cannot convert JAX type {jax_array.dtype} to type {type_name(dtype)}")
    if len(jax_array.devices()) > 1:
        raise RuntimeError("the array lies on several devices: take one of its addressable_shards")
    if next(iter(jax_array.devices())).platform != "cpu":
        return _weft.from_dlpack(jax_array, dtype.native)
    jax_array.block_until_ready()
    inner = numpy_types.element_layout(dtype)[1]
    outer = outer_shape(jax_array, dtype, inner, None)
    if tuple(outer) + inner != jax_array.shape:
        raise RuntimeError(f"an array of shape {jax_array.shape} holds no elements of type {type_name(dtype)}")
    return _weft.wrap_host(
        jax_array, jax_array.unsafe_buffer_pointer(), dtype.native, outer, None, get_device("cpu").native
    )


def to_jax(warp_array):
    """JAX's array with the elements of an array: on its memory where that begins at a multiple of 64 bytes, and a copy of
    elements that do not lie in order.

    Errors: TypeError for structs.
    """
    source = warp_array.contiguous() if isinstance(warp_array, array) else warp_array
    return library().dlpack.from_dlpack(source)
