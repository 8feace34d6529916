"""The parameters of kernels and functions that JAX calls: which are inputs, which outputs, and their shapes."""

import numpy as np

from ..types import numpy_types
from ..types.annotations import ArrayType, type_name
from .jax import dtype_to_jax, library
from .tensors import scalar_of


class Signature:
    """The parameters of what JAX calls: inputs first, some of which it changes, then outputs.

    `outputs` are the numbers of the parameters that JAX gets back: those that are changed, then those that are written.
    """

    def __init__(self, name, parameters, num_outputs, in_out_argnames):
        self.name = name
        self.names = [parameter for parameter, _ in parameters]
        self.kinds = [kind for _, kind in parameters]
        changed = list(in_out_argnames or ())
        self.check_names(changed)
        written = num_outputs - len(changed)
        if num_outputs < 1 or written < 0 or written > len(parameters):
            raise ValueError(f"{name}: num_outputs is {num_outputs}, with {len(changed)} in-out argument(s)")
        self.input_count = len(parameters) - written
        for k, parameter in enumerate(self.names):
            if parameter in changed and k >= self.input_count:
                raise ValueError(f"{name}: in_out arguments should be placed before output-only arguments")
        self.changed = [k for k, parameter in enumerate(self.names) if parameter in changed]
        self.outputs = self.changed + list(range(self.input_count, len(parameters)))
        for k in self.outputs:
            if not isinstance(self.kinds[k], ArrayType):
                raise TypeError(f"{name}: output argument '{self.names[k]}' is no array")
        for k, kind in enumerate(self.kinds):
            if isinstance(kind, ArrayType) and (kind.indexed or kind.dtype.native.kind == "struct"):
                raise TypeError(f"{name}: argument '{self.names[k]}' is of type {type_name(kind)}, which JAX does not have")

    def check_names(self, changed):
        """Refuses names of no parameter. Errors: ValueError."""
        if len(set(changed)) != len(changed):
            raise ValueError(f"{self.name}: in_out_argnames must not contain duplicate names")
        unknown = sorted(set(changed) - set(self.names))
        if unknown:
            raise ValueError(f"{self.name}: in_out_argnames did not match any function argument names: {unknown}")

    def check_inputs(self, args):
        """Refuses arrays that the parameters do not take. Errors: ValueError, TypeError, with the argument's name."""
        if len(args) != self.input_count:
            raise ValueError(f"{self.name}: expected {self.input_count} input arguments, got {len(args)}")
        for k, value in enumerate(args):
            kind = self.kinds[k]
            if not isinstance(kind, ArrayType):
                continue
            where = f"{self.name}: argument '{self.names[k]}'"
            if not hasattr(value, "dtype") or not hasattr(value, "shape"):
                raise TypeError(f"{where} is of type {type(value).__name__}, not an array")
            wanted = np.dtype(dtype_to_jax(scalar_of(kind.dtype)))
            if value.dtype != wanted:
                raise TypeError(f"{where} has elements of type {value.dtype}, not {wanted}")
            inner = inner_shape(kind.dtype)
            if len(value.shape) != kind.ndim + len(inner) or tuple(value.shape[kind.ndim :]) != inner:
                raise ValueError(f"{where} has shape {tuple(value.shape)}, not {kind.ndim} dimension(s) and {inner}")

    def first_shape(self, args):
        """The shape of the first array among the inputs, in elements; None if there is none."""
        for k, value in enumerate(args):
            if isinstance(self.kinds[k], ArrayType):
                return tuple(value.shape[: self.kinds[k].ndim])
        return None

    def output_types(self, args, output_dims, usual):
        """What JAX gets: a shape and a type for each output.

        `output_dims` holds for all written outputs, or for each by name; with or without the dimensions of an element.
        Errors: ValueError for an output whose shape nobody gives, or whose dimensions are others.
        """
        common = placement(args)
        types = []
        for k in self.outputs:
            kind = self.kinds[k]
            inner = inner_shape(kind.dtype)
            if k in self.changed:
                shape = tuple(args[k].shape)
            else:
                given = output_dims.get(self.names[k]) if isinstance(output_dims, dict) else output_dims
                shape = dimensions(usual if given is None else given)
                if given is None and shape is not None and len(shape) != kind.ndim:
                    shape = self.first_shape(args) or shape  # launches of fewer dimensions run over the others
                if shape is None:
                    raise ValueError(f"{self.name}: the dimensions of output '{self.names[k]}' are not known: give them")
                if len(shape) == kind.ndim:
                    shape += inner
                if len(shape) != kind.ndim + len(inner) or shape[kind.ndim :] != inner:
                    raise ValueError(
                        f"{self.name}: output '{self.names[k]}' of type {type_name(kind)} cannot have dimensions {shape}"
                    )
            types.append(array_type(shape, dtype_to_jax(scalar_of(kind.dtype)), common))
        return types


def inner_shape(dtype):
    """The dimensions that an element takes in JAX's arrays."""
    return tuple(numpy_types.element_layout(dtype)[1])


def hashable(given):
    """What a function was given as part of a key."""
    if isinstance(given, dict):
        return tuple(sorted((name, dimensions(value)) for name, value in given.items()))
    if given is None or isinstance(given, str) or not hasattr(given, "__len__"):
        return given
    return tuple(given) or None


def dimensions(given):
    """Dimensions as a tuple: of one number, or of several; None stays None."""
    if given is None:
        return None
    if hasattr(given, "__index__"):
        return (given.__index__(),)
    return tuple(n.__index__() for n in given)


def is_traced(value):
    """Whether a number is JAX's: known when the function runs alone, or an array of JAX's."""
    return isinstance(value, library().Array)


def placement(args):
    """Over which axes of a mesh the inputs vary, which outputs then do too: (mesh, axes); None outside shard_map."""
    jax = library()
    if not hasattr(jax, "typeof"):
        return None
    types = [jax.typeof(value) for value in args if is_traced(value)]
    axes = [getattr(t, "manual_axis_type", None) for t in types]
    varying = frozenset().union(*(a.varying for a in axes if a is not None))
    if not varying:
        return None
    mesh = next(t.sharding.mesh for t in types if t.sharding.mesh.axis_names)
    return mesh, type(next(a for a in axes if a is not None))(varying=varying)


def array_type(shape, dtype, common):
    """The type of an output. See placement()."""
    jax = library()
    if common is None:
        return jax.ShapeDtypeStruct(shape, dtype)
    mesh, axes = common
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*([None] * len(shape))))
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, manual_axis_type=axes)
