"""Types called in kernels: conversions of numbers, and vectors, matrices, quaternions, transforms and structs made of
their parts.
"""

from .. import _weft
from ..types import matrices, quaternions, scalars, structs, vectors
from . import library, operators
from .emitter import adapted_to, copy_struct
from .errors import CodegenError, CodegenTypeError, near
from .values import Static, StructValue, Value, adapted, name_of_type, zero


def construct(cls, args, keywords):
    """The value of ``cls(*args, **keywords)``. Errors: CodegenError for parts that do not make one."""
    if issubclass(cls, structs.StructInstance):
        return struct(cls, args, keywords)
    if cls.native.kind == "scalar":
        return scalar(cls, args, keywords)
    keywords = said_again(cls, keywords)
    return composite(cls.native.kind, cls._shape_, cls._wp_scalar_type_, args, keywords)


def said_again(cls, keywords):
    """The keywords without those that repeat what the type says. Errors: CodegenError for ones that contradict it."""
    left = dict(keywords)
    for name in ("length", "shape"):
        if name in left and known_shape("vector" if name == "length" else "matrix", left.pop(name)) != tuple(cls._shape_):
            raise CodegenError(f"the `{name}` argument is not that of {cls.__name__}")
    if "dtype" in left and python_scalar(left.pop("dtype")) is not cls._wp_scalar_type_:
        raise CodegenError(f"the `dtype` argument is not that of {cls.__name__}")
    return left


def scalar(cls, args, keywords):
    """A conversion, by value."""
    if not args and not keywords:
        return zero(cls)
    if len(args) != 1 or keywords:
        raise CodegenError(f"{cls.__name__}() takes one number")
    value = args[0]
    if cls is scalars.bool:
        value = operators.truth(value)
        return Value(scalars.bool, value.ids)
    if not isinstance(value, Value) or value.kind != "scalar":
        library.no_form(cls.__name__, args)
    return operators.converted(value, cls)


def anonymous(kind, args, keywords):
    """``wp.vector(...)``, ``wp.matrix(...)``, ``wp.quaternion(...)``, ``wp.transformation(...)``, whose type follows from
    the arguments and from the keywords ``dtype``, ``length``, ``shape``.
    """
    keywords = dict(keywords)
    dtype = keywords.pop("dtype", None)
    dtype = None if dtype is None else python_scalar(dtype)
    shape = keywords.pop({"vector": "length", "matrix": "shape"}.get(kind, ""), None)
    shape = None if shape is None else known_shape(kind, shape)
    if kind == "matrix" and [getattr(a, "kind", None) for a in args] == ["vector", "quaternion", "vector"]:
        return library.call("transform_compose", args)
    return composite(kind, shape, dtype, args, keywords)


def python_scalar(value):
    """The scalar type that a keyword names."""
    from ..types.composites import scalar_of

    if isinstance(value, Static):
        try:
            return scalar_of(value.object)
        except TypeError as error:
            raise CodegenTypeError(str(error)) from None
    raise CodegenTypeError("the `dtype` argument is a scalar type")


def known_shape(kind, value):
    """The extents that a keyword gives, which are known while tracing."""
    from .statics import host_value

    known, extents = host_value(value)
    if not known:
        raise CodegenError(f"the `{'length' if kind == 'vector' else 'shape'}` argument must be known while tracing: a constant")
    return (int(extents),) if kind == "vector" else tuple(int(n) for n in extents)


def composite(kind, shape, dtype, args, keywords):
    """A vector, matrix, quaternion or transform. `shape` and `dtype` are None where they follow from the arguments."""
    if kind == "transform":
        args, keywords = transform_parts(args, keywords, dtype)
    if keywords:
        raise CodegenError(f"got an unexpected keyword argument '{next(iter(keywords))}'")
    if not all(isinstance(a, Value) for a in args):
        raise CodegenError(f"a {kind} cannot be made of {', '.join(map(name_of_type, args))}")
    if not args:
        if shape is None and kind in ("vector", "matrix"):
            wanted = "length" if kind == "vector" else "shape"
            raise CodegenError(f"the `{wanted}` argument must be specified when zero-initializing a {kind}")
        return zero(type_for(kind, shape, dtype or scalars.float32))
    if len(args) == 1:
        return of_one(kind, shape, dtype, args[0])
    return of_many(kind, shape, dtype, args)


def type_for(kind, shape, dtype):
    """The type of one of the four kinds."""
    if kind == "vector":
        return vectors.vector(shape[0], dtype)
    if kind == "matrix":
        return matrices.matrix(shape, dtype)
    return quaternions.quaternion(dtype) if kind == "quaternion" else quaternions.transformation(dtype)


def of_one(kind, shape, dtype, value):
    """A copy of a value of the same kind, as another scalar type if that is asked for, or one number everywhere."""
    if value.kind != "scalar":
        given = tuple(value.type._shape_)
        fits = value.kind == kind or (kind, value.kind) in (("quaternion", "vector"), ("vector", "quaternion"))
        if not fits or (shape is not None and tuple(shape) != given and kind != "quaternion"):
            if kind == value.kind == "vector":
                raise CodegenError(
                    f"incompatible vector of length {shape[0]} given when copy constructing a vector of length {given[0]}"
                )
            if kind == value.kind == "matrix":
                raise CodegenError(
                    f"incompatible matrix of shape {tuple(shape)} given when copy constructing a matrix of shape {given}"
                )
            raise CodegenError(f"a {kind} cannot be made of a {name_of_type(value)}")
        if kind == "transform" and dtype is not None and dtype is not value.scalar:
            raise CodegenError(
                "copy constructing a transform requires matching source and target dtypes, "
                f"got `{value.scalar.__name__}` and `{dtype.__name__}`"
            )
        scalar_type = dtype or value.scalar
        ids = value.ids
        if scalar_type is not value.scalar:
            ids = _weft.convert(scalar_type.native.code, ids)
        return Value(type_for(kind, shape or given, scalar_type), ids)
    if shape is None and kind in ("vector", "matrix"):
        wanted = "length" if kind == "vector" else "shape"
        raise CodegenError(f"the `{wanted}` argument must be specified when filling a {kind} with a value")
    number = as_scalar(
        value, dtype or value.scalar, lambda t: f"the value used to fill this {kind} is expected to be of the type `{t}`"
    )
    cls = type_for(kind, shape, number.scalar)
    return Value(cls, number.ids * cls.native.count)


def of_many(kind, shape, dtype, args):
    """A value of its components in order; vectors among them give all of theirs."""
    if kind == "matrix":
        if shape is None:
            raise CodegenError("the `shape` argument must be specified when initializing a matrix by value")
        if all(a.kind == "vector" for a in args):
            raise CodegenTypeError(
                "Passing vectors to `wp.matrix()` isn't supported, use `wp.matrix_from_rows()` or "
                "`wp.matrix_from_cols()` instead."
            )
    numbers = []
    for a in args:
        numbers.extend([a] if a.kind == "scalar" else [Value(a.scalar, (i,)) for i in a.ids])
    count = {"quaternion": 4, "transform": 7}.get(kind)
    if shape is not None:
        count = shape[0] if kind == "vector" else shape[0] * shape[1] if kind == "matrix" else count
    if count is not None and len(numbers) != count:
        what = f" of length {count}" if kind == "vector" else f" of shape {tuple(shape)}" if kind == "matrix" else ""
        more = "; expected 0, 1, or 7" if kind == "transform" else ""
        raise CodegenError(f"incompatible number of values given ({len(args)}) when constructing a {kind}{what}{more}")
    dtype_given = dtype is not None
    if not dtype_given:
        typed = [n.scalar for n in numbers if n.literal is None]
        real = any(isinstance(n.literal, float) for n in numbers) or kind in ("quaternion", "transform")
        booleans = all(isinstance(n.literal, bool) for n in numbers)
        dtype = typed[0] if typed else scalars.float32 if real else scalars.bool if booleans else scalars.int32

    def message(name):
        if dtype_given:
            return f"all values used to initialize this {kind} are expected to be of the type `{name}`"
        return f"all values given when constructing a {kind} must have the same type"

    ids = tuple(as_scalar(n, dtype, message).id for n in numbers)
    return Value(type_for(kind, shape or (len(ids),), dtype), ids)


def as_scalar(value, scalar_type, message):
    """A number of a scalar type. Errors: CodegenError with the text that `message` gives for the type's name."""
    if value.literal is not None:
        made = adapted(value, scalar_type)
        if made is not None:
            return made
        if isinstance(value.literal, float) or value.type is scalars.bool:
            raise CodegenError(message(scalar_type.__name__))
        return operators.converted(value, scalar_type)
    if value.scalar is not scalar_type or value.kind != "scalar":
        raise CodegenError(message(scalar_type.__name__))
    return value


def transform_parts(args, keywords, dtype):
    """The parts of a transform in order, from a position and a rotation that may be keywords."""
    keywords = dict(keywords)
    if "p" in keywords or "q" in keywords or (len(args) == 1 and isinstance(args[0], Value) and args[0].kind == "vector"):
        if len(args) > 1 and "q" in keywords:
            raise CodegenError("multiple values for argument 'q'")
        position = keywords.pop("p", args[0] if args else None)
        scalar_type = dtype
        for given in (position, keywords.get("q")):
            if scalar_type is None and isinstance(given, Value):
                scalar_type = given.scalar
        if position is None:
            position = zero(vectors.vector(3, scalar_type))
        rotation = keywords.pop("q", None)
        if rotation is None:
            rotation = args[1] if len(args) > 1 else identity_rotation(scalar_type)
        return [position, rotation], keywords
    return args, keywords


def identity_rotation(scalar_type):
    """The quaternion of no rotation."""
    code = scalar_type.native.code
    numbers = tuple(_weft.constant(code, n) for n in (0.0, 0.0, 0.0, 1.0))
    return Value(quaternions.quaternion(scalar_type), numbers)


def struct(cls, args, keywords):
    """An instance of a struct: zeros, and the fields that are given."""
    made = zero(cls)
    names = list(cls._wp_fields_)
    if len(args) > len(names):
        raise CodegenError(f"{cls.__name__} has {len(names)} fields, not {len(args)}")
    given = dict(zip(names, args))
    for name, value in keywords.items():
        if name not in cls._wp_fields_ or name in given:
            again = " twice" if name in given else ""
            raise CodegenError(f"{cls.__name__} has no field `{name}` to set{again}{near(name, [n for n in names if n not in given])}")
        given[name] = value
    for name, value in given.items():
        from ..types.annotations import matches, type_name

        wanted = cls._wp_fields_[name]
        value = adapted_to(value, wanted)
        if not matches(wanted, value.type):
            raise CodegenTypeError(
                f"field `{name}` of {cls.__name__} is of type {type_name(wanted)}, not {name_of_type(value)}"
            )
        made.fields[name] = copy_struct(value) if isinstance(value, StructValue) else value
    return made
