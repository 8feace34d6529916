"""Arrays on the memory of tensors of libraries that differentiate, PyTorch and Paddle, and their gradients."""

import functools

from .. import _weft
from ..runtime.device import get_device
from ..types import numpy_types, scalars
from ..types.annotations import element_type, is_concrete, type_name

TYPES = {
    "float16": (scalars.float16,),
    "float32": (scalars.float32,),
    "float64": (scalars.float64,),
    "int8": (scalars.int8, scalars.uint8),
    "int16": (scalars.int16, scalars.uint16),
    "int32": (scalars.int32, scalars.uint32),
    "int64": (scalars.int64, scalars.uint64),
    "uint8": (scalars.uint8, scalars.int8),
    "uint16": (scalars.uint16, scalars.int16),
    "uint32": (scalars.uint32, scalars.int32),
    "uint64": (scalars.uint64, scalars.int64),
    "bool": (scalars.bool, scalars.uint8, scalars.int8),
}
"""The libraries' types of numbers by name, with the types of the package that read them: the first is the usual one."""

SIGNED = {scalars.uint16: "int16", scalars.uint32: "int32", scalars.uint64: "int64"}
"""The types of numbers that libraries compute with, for those that it hardly does."""


class TensorLibrary:
    """What differs between libraries of tensors. Their types of numbers have the same names."""

    name = None

    def module(self):
        """The library's module, which is imported when it is first needed. Errors: ImportError."""
        raise NotImplementedError

    def dtype_from(self, dtype):
        """The scalar type of one of the library's. Errors: TypeError for types that the package lacks."""
        known = TYPES.get(name_of(dtype))
        if known is None:
            raise TypeError(f"Cannot convert {dtype} to a type of weft")
        return known[0]

    def dtype_to(self, dtype):
        """The library's type for a scalar type. Errors: TypeError for types that it lacks."""
        dtype = element_type(dtype)
        if dtype.native.kind != "scalar":
            raise TypeError(f"Cannot convert {type_name(dtype)} to a type of {self.name}")
        return getattr(self.module(), SIGNED.get(dtype, dtype.__name__))

    def reads(self, dtype, element):
        """Whether arrays of an element type can share memory with tensors of one of the library's types."""
        return scalar_of(element_type(element)) in TYPES.get(name_of(dtype), ())

    def has_gradient(self, tensor):
        """Whether the library computes a gradient for a tensor."""
        return tensor.requires_grad

    def keeps_no_gradient(self, tensor):
        """Whether a tensor is a result of the library's, whose gradient it does not keep."""
        return not tensor.is_leaf

    def share_gradient(self, tensor, gradient):
        """Makes a tensor the gradient of another, without a copy."""
        tensor.grad = gradient

    def on_host(self, tensor):
        """Whether the host has a tensor's memory."""
        raise NotImplementedError

    def check(self, tensor):
        """Refuses tensors whose memory does not hold their numbers as they are. Errors: RuntimeError."""

    def zeros_like(self, tensor):
        """A tensor of zeros, without a gradient."""
        return self.module().zeros_like(tensor)


def name_of(dtype):
    """The name of a library's type: ``float32``."""
    return str(dtype).rpartition(".")[2]


def scalar_of(dtype):
    """The type of the numbers of an element type."""
    return getattr(dtype, "_wp_scalar_type_", None) or dtype


def shared_numbers(a):
    """NumPy's array on the memory of one of the host, with signed integers for those that libraries hardly compute with.

    Errors: TypeError for structs.
    """
    dtype = a.dtype
    if dtype.native.kind == "struct":
        raise TypeError(f"tensors have no elements like {type_name(dtype)}")
    shared = _weft.Array.shared_numpy(a)
    shared = shared.reshape(tuple(a.shape) + numpy_types.element_layout(dtype)[1])
    signed = SIGNED.get(scalar_of(dtype))
    return shared if signed is None else shared.view(signed)


class OwnGradient:
    """The gradient of an array alone: made, with zeros, when it is first asked for.

    It is apart from the memory's gradient storage, which other arrays on that memory may use.
    """

    def __init__(self, made):
        self.description = (made.shape, made.element_dtype, made.native_device)
        self.made = None

    def __call__(self):
        if self.made is None:
            self.made = _weft.zeros(*self.description)
        return self.made

    def present(self):
        """The gradient if there is one yet, else None."""
        return self.made


class TensorGradient:
    """The gradient of a tensor as an array's: made, with zeros, when it is first asked for.

    Libraries let gradients go (``zero_grad()``) and replace them: the array is that of the gradient that the tensor has.
    """

    def __init__(self, library, tensor, made):
        self.library = library
        self.tensor = tensor
        self.native = made.element_dtype
        self.own = OwnGradient(made)  # of a tensor that becomes a result of the library's
        self.made = None
        self.address = None

    def __call__(self):
        if self.library.keeps_no_gradient(self.tensor):
            return self.own()
        if self.tensor.grad is None:
            self.library.share_gradient(self.tensor, self.library.zeros_like(self.tensor))
        return self.array_of(self.tensor.grad)

    def present(self):
        """The gradient if the tensor has one, else None."""
        if self.library.keeps_no_gradient(self.tensor):
            return self.own.present()
        grad = self.tensor.grad
        return None if grad is None else self.array_of(grad)

    def array_of(self, grad):
        """The array on a gradient's memory."""
        address = grad.data_ptr()
        if self.made is None or self.address != address or self.made.shape != tuple(grad.shape)[: self.made.ndim]:
            self.made, self.address = around(self.library, grad, self.native), address
        return self.made


class ArrayDescriptor(_weft.Array):
    """An array for launches alone: what ``from_torch(..., return_ctype=True)`` gives."""

    @property
    def data(self):
        """The address of the elements."""
        return self.ptr or 0

    @property
    def grad(self):
        """The address of the gradient's elements; 0 without a gradient."""
        made = _weft.Array.grad.__get__(self)
        return 0 if made is None else made.ptr or 0


@functools.cache
def processor():
    """The module's device of the processor."""
    return get_device("cpu").native


def around(library, tensor, native, cls=None):
    """The array on a tensor's memory, of a native type; of the tensor's numbers for None.

    Errors: RuntimeError for tensors whose numbers are no elements of the type.
    """
    library.check(tensor)
    try:
        return _weft.from_tensor(tensor, native, processor(), cls)
    except TypeError as error:
        if not library.on_host(tensor):
            return _weft.from_dlpack(tensor.detach(), native)
        library.dtype_from(tensor.dtype)  # says which types there are not
        wanted = "" if native is None else f" with dtype={type_name(native.python)}"
        raise RuntimeError(
            f"Could not convert {library.name} tensor with shape {tuple(tensor.shape)} and type {tensor.dtype} to an "
            f"array{wanted}: {error}"
        ) from None


def has_gradient_apart(library, tensor):
    """Whether the array of a tensor has a gradient of its own. See from_torch()."""
    if library.keeps_no_gradient(tensor):
        return True
    return library.has_gradient(tensor) and tensor.grad is None and not library.module().is_grad_enabled()


def from_tensor(library, tensor, dtype, requires_grad, grad, return_ctype, retain_grad):
    """The array on a tensor's memory. See from_torch()."""
    native = None if dtype is None else native_type(library, tensor.dtype, dtype)
    made = around(library, tensor, native, ArrayDescriptor if return_ctype else None)
    if retain_grad:
        made.retain_grad = True
    if grad is not None:
        _weft.Array.grad.__set__(made, gradient_around(library, grad, made))
    elif library.has_gradient(tensor) if requires_grad is None else requires_grad:
        if made.element_dtype.has_reals:
            apart = has_gradient_apart(library, tensor)
            made.gradient_source = OwnGradient(made) if apart else TensorGradient(library, tensor, made)
    return made


@functools.cache
def native_type(library, tensor_dtype, dtype):
    """The native type of elements. Errors: RuntimeError where it does not read a tensor's numbers."""
    dtype = element_type(dtype)
    if not is_concrete(dtype) or not library.reads(tensor_dtype, dtype):
        raise RuntimeError(f"Cannot convert {library.name} type {tensor_dtype} to type {type_name(dtype)}")
    return dtype.native


def gradient_around(library, grad, made):
    """The gradient that the caller gives for a tensor: an array, or a tensor like the tensor."""
    if isinstance(grad, _weft.Array):
        return grad
    if tuple(grad.shape[: made.ndim]) != made.shape:
        raise RuntimeError(f"the gradient has shape {tuple(grad.shape)}, the array {made.shape}")
    return around(library, grad, made.element_dtype)
