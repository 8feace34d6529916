"""Functions of kernels that are more than a call of the library: threads, reports, choices, atomics, draws."""

import ast

from .. import _weft
from ..types import matrices, quaternions, scalars, vectors
from ..types.annotations import same_type
from ..runtime import formats
from . import constructors, library, operators
from .emitter import adapted_to
from .errors import CodegenError, CodegenTypeError
from .arrays.indexed import plain
from .values import ArrayValue, Static, StructValue, TupleValue, Value, adapted, ids_of, literal, name_of_type, zero


class Arguments:
    """What a call gives to a function: values, keywords, and the nodes of the values, for those that are assigned to."""

    def __init__(self, emission, node, values, keywords, targets):
        self.e = emission
        self.node = node
        self.values = values
        self.keywords = keywords
        self.targets = targets

    def __getitem__(self, k):
        if not -len(self.values) <= k < len(self.values):
            raise CodegenError(f"the call has {len(self.values)} arguments: more are needed")
        return self.values[k]

    def __len__(self):
        return len(self.values)

    def expect(self, name, *counts):
        """Refuses another number of arguments."""
        if len(self.values) not in counts or self.keywords:
            wanted = " or ".join(map(str, counts))
            raise CodegenError(f"{name}() takes {wanted} arguments, not {len(self.values) + len(self.keywords)}")

    def assign(self, k, value):
        """Assigns to the variable that argument k names. Errors: CodegenError if it names none."""
        if self.e is None:  # on the host
            self.node.assigned[k] = value
            return
        from .statements import assign_to

        assign_to(self.e, self.node.args[k], value)


def tid(args):
    """The thread's coordinates: as many as the result is unpacked into."""
    args.expect("tid", 0)
    n = args.targets
    if n > 4:
        raise CodegenError("tid() gives 1 to 4 coordinates")
    items = [Value(scalars.int32, (_weft.thread(k, n),), nonneg=True, coordinate=(k, n)) for k in range(n)]
    return items[0] if n == 1 else TupleValue(items)


def block_dim(args):
    """The number of threads of a workgroup."""
    args.expect("block_dim", 0)
    return Value(scalars.int32, (_weft.block_dim(),), nonneg=True)


def printed(value):
    """The items of a report that show a value."""
    if isinstance(value, Static):
        return [str(value.object)]
    if isinstance(value, Value) and value.type is scalars.bool:
        return formats.marked(formats.BOOLEAN, [(value.type.native, value.ids)])
    if isinstance(value, Value):
        return [(value.type.native, value.ids)]
    if isinstance(value, StructValue):
        return [(value.type.native, ids_of(value))]
    if isinstance(value, TupleValue):
        return spaced(value.items)
    raise CodegenTypeError(f"a {name_of_type(value)} cannot be printed")


def spaced(values):
    """The items of several values, with spaces between them."""
    items = []
    for value in values:
        items.extend([" "] if items else [])
        items.extend(printed(value))
    return items


def print_(args):
    """``print(a, b, ...)``: a line of the values with spaces between them."""
    if args.keywords:
        raise CodegenError("print() in a kernel takes values alone")
    _weft.print_items(tuple(spaced(args.values)))


def printf(args):
    """``printf("format", ...)``: a line with the values in place of the format's directives."""
    if not len(args) or not isinstance(args[0], Static) or not isinstance(args[0].object, str):
        raise CodegenError("the first argument of printf() is a string")
    if len(args) > 33:
        raise CodegenError("the maximum number of variadic arguments that can be passed to `printf` is 32")
    pieces, directives = formats.parts_of(args[0].object)
    if len(pieces) != len(args):
        raise CodegenError(f"the format of printf() has {len(pieces) - 1} directives for {len(args) - 1} values")
    items = []
    for k, piece in enumerate(pieces):
        if piece:
            items.append(piece.replace("%%", "%"))
        if k + 1 < len(pieces):
            items.extend(formatted(directives[k], args[k + 1]))
    if items and isinstance(items[-1], str):
        items[-1] = items[-1].removesuffix("\n")
    _weft.print_items(tuple(items))


def formatted(directive, value):
    """The items of a report that show a value by a directive of printf()."""
    if isinstance(value, Value) and value.type is scalars.bool and directive[-1] != "s":
        value = operators.converted(value, scalars.int32)
    return formats.marked(directive, printed(value)) if directive[-1] != "s" else printed(value)


def compared(args):
    """The two operands of a check, as values of one type."""
    a, b = args[0], args[1]
    if isinstance(a, Value) and isinstance(b, Value):
        a, b = operators.of_one_type(a, b, "expect_eq")
        if not same_type(a.type, b.type):
            raise CodegenError("Can't test equality for objects with different types")
    return a, b


def report_unless(holds, text, a, b):
    """Prints a line unless a boolean holds."""
    if holds.literal is True:
        return
    _weft.open_if(operators.logical_not(holds).id)
    _weft.print_items(tuple(["Error, expected: ", *printed(a), f" {text} ", *printed(b)]))
    _weft.close_if()


def expect_eq(args):
    """Prints an error where two values differ."""
    args.expect("expect_eq", 2)
    a, b = compared(args)
    report_unless(operators.binary("eq", a, b), "==", a, b)


def expect_neq(args):
    """Prints an error where two values are equal."""
    args.expect("expect_neq", 2)
    a, b = compared(args)
    report_unless(operators.binary("ne", a, b), "!=", a, b)


def expect_near(args):
    """Prints an error where two values differ by more than a tolerance, 1e-6 if none is given."""
    values = list(args.values) + list(args.keywords.values())
    if not 2 <= len(values) <= 3:
        raise CodegenError("expect_near() takes two values and a tolerance")
    a, b = operators.of_one_type(values[0], values[1], "expect_near")
    if not same_type(a.type, b.type):
        operators.refuse("expect_near", a, b)
    tolerance = values[2] if len(values) > 2 else literal(1.0e-6)
    tolerance = adapted(tolerance, a.scalar) or tolerance
    distance = _weft.unary(operators.OPS["abs"], _weft.binary(operators.OPS["sub"], a.ids, b.ids))
    near = literal(True)
    for i in distance:
        one = _weft.binary(operators.OPS["le"], (i,), tolerance.ids)
        near = Value(scalars.bool, _weft.binary(operators.OPS["bit_and"], near.ids, one))
    report_unless(near, "~=", a, b)


def where(args):
    """``where(condition, a, b)``: a where the condition holds, else b. Both are evaluated."""
    return chosen(args, "where", ("cond", "value_if_true", "value_if_false"), 1, 2)


def select(args):
    """``select(condition, a, b)``: b where the condition holds, else a."""
    return chosen(args, "select", ("cond", "value_if_false", "value_if_true"), 2, 1)


def chosen(args, name, names, true_place, false_place):
    """The choice of one of two values."""
    values = [*args.values, *(args.keywords[n] for n in names[len(args) :] if n in args.keywords)]
    if len(values) != 3:
        raise CodegenError(f"{name}() takes a condition and two values")
    condition = operators.truth(values[0])
    a, b = values[true_place], values[false_place]
    if isinstance(a, StructValue) and isinstance(b, StructValue) and same_type(a.type, b.type):
        from .values import from_ids

        return from_ids(a.type, _weft.select(condition.ids, ids_of(a), ids_of(b)))
    if isinstance(a, ArrayValue) and isinstance(b, ArrayValue) and condition.literal is not None:
        return a if condition.literal else b
    if not isinstance(a, Value) or not isinstance(b, Value):
        library.no_form(name, values)
    if a.literal is not None and b.literal is not None and a.type is not b.type:
        a, b = (adapted(v, scalars.float32) or v for v in (a, b))
    a, b = operators.of_one_type(a, b, name)
    if not same_type(a.type, b.type):
        library.no_form(name, values)
    nonneg = a.nonneg and b.nonneg
    return Value(a.type, _weft.select(condition.ids, a.ids, b.ids), nonneg=nonneg, wraps=a.wraps or b.wraps)


def cast(args):
    """``cast(x, dtype)``: the bits of a number as another type of the same width."""
    values = [*args.values, *args.keywords.values()]
    if len(values) != 2 or not isinstance(values[1], Static):
        raise CodegenError("cast() takes a number and a scalar type")
    kind = constructors.python_scalar(values[1])
    value = values[0]
    if isinstance(value, StructValue) and value.type.native.size == kind.native.size:
        value = word_of(value)
    if not isinstance(value, Value) or value.scalar.native.size != kind.native.size:
        raise CodegenError(f"cast() keeps the bits: {name_of_type(value)} and {kind.__name__} are of different widths")
    ids = _weft.bitcast(kind.native.code, value.ids)
    if value.kind == "scalar":
        return Value(kind, ids)
    return Value(constructors.type_for(value.kind, value.type._shape_, kind), ids)


def word_of(value):
    """The bytes of a struct of at most 8 as one integer without a sign."""
    word = {1: scalars.uint8, 2: scalars.uint16, 4: scalars.uint32, 8: scalars.uint64}[value.type.native.size]
    ids = (_weft.constant(word.native.code, 0),)
    for offset, part in leaves_of(value, 0):
        bits = {1: _weft.UINT8, 2: _weft.UINT16, 4: _weft.UINT32, 8: _weft.UINT64}[part.scalar.native.size]
        raw = _weft.convert(word.native.code, _weft.bitcast(bits, part.ids))
        shift = (_weft.constant(word.native.code, 8 * offset),)
        ids = _weft.binary(operators.OPS["bit_or"], ids, _weft.binary(operators.OPS["shl"], raw, shift))
    return Value(word, ids)


def leaves_of(value, offset):
    """The scalars of a struct without arrays, each with its place in bytes."""
    for name, _, at, _, _ in value.type.native.fields:
        part = value.fields[name]
        if isinstance(part, StructValue):
            yield from leaves_of(part, offset + at)
        elif isinstance(part, Value):
            for k, i in enumerate(part.ids):
                yield offset + at + k * part.scalar.native.size, Value(part.scalar, (i,))


def length_of(args):
    """``len(x)``: components of a vector, rows of a matrix, items of a tuple, the first extent of an array."""
    args.expect("len", 1)
    value = args[0]
    if isinstance(value, ArrayValue):
        return Value(scalars.int32, (value.ref.shape(0),), nonneg=True)
    if isinstance(value, TupleValue):
        return literal(len(value.items))
    if isinstance(value, Value) and value.kind != "scalar":
        return literal(value.type._shape_[0])
    if isinstance(value, Static) and hasattr(value.object, "__len__"):
        return literal(len(value.object))
    raise CodegenTypeError(f"a {name_of_type(value)} has no len()")


def identity(args):
    """``identity(n, dtype)``: the matrix with ones on its diagonal."""
    keywords = dict(args.keywords)
    n = args[0] if len(args) else keywords.pop("n", None)
    dtype = args[1] if len(args) > 1 else keywords.pop("dtype", None)
    n = constructors.known_shape("vector", n)[0]
    kind = scalars.float32 if dtype is None else constructors.python_scalar(dtype)
    one, none = _weft.constant(kind.native.code, 1), _weft.constant(kind.native.code, 0)
    return Value(matrices.matrix((n, n), kind), tuple(one if r == c else none for r in range(n) for c in range(n)))


def dtype_of(args):
    """The scalar type that an argument or the keyword ``dtype`` names; float32 if none is given."""
    given = args[0] if len(args) else args.keywords.get("dtype")
    return scalars.float32 if given is None else constructors.python_scalar(given)


def quat_identity(args):
    """``quat_identity(dtype)``: no rotation."""
    return constructors.identity_rotation(dtype_of(args))


def transform_identity(args):
    """``transform_identity(dtype)``: no rotation, at the origin."""
    kind = dtype_of(args)
    ids = zero(vectors.vector(3, kind)).ids + constructors.identity_rotation(kind).ids
    return Value(quaternions.transformation(kind), ids)


def spatial_vector(args):
    """``spatial_vector(w, v)``, ``spatial_vector(wx, .., vz)``, with the keyword ``dtype``."""
    keywords = dict(args.keywords)
    dtype = keywords.pop("dtype", None)
    dtype = None if dtype is None else constructors.python_scalar(dtype)
    if dtype is None and not args.values:
        dtype = scalars.float32
    return constructors.composite("vector", (6,), dtype, args.values, keywords)


def vectors_of(args, name):
    """The arguments as vectors of one type."""
    values = args.values
    if len(values) == 1 and isinstance(values[0], TupleValue):
        values = values[0].items
    if not values or not all(isinstance(v, Value) and v.kind == "vector" for v in values):
        library.no_form(name, args.values)
    if not all(same_type(v.type, values[0].type) for v in values):
        raise CodegenError(f"the vectors of {name}() are of one type")
    return values


def matrix_from_rows(args):
    """The matrix of the given rows."""
    rows = vectors_of(args, "matrix_from_rows")
    shape = (len(rows), len(rows[0].ids))
    return Value(matrices.matrix(shape, rows[0].scalar), tuple(i for row in rows for i in row.ids))


def matrix_from_cols(args):
    """The matrix of the given columns."""
    columns = vectors_of(args, "matrix_from_cols")
    shape = (len(columns[0].ids), len(columns))
    ids = tuple(column.ids[r] for r in range(shape[0]) for column in columns)
    return Value(matrices.matrix(shape, columns[0].scalar), ids)


def results_assigned(name, inputs):
    """A function with several results, which may be written to variables that the call gives after `inputs` values."""

    def handler(args):
        if len(args) == inputs:
            return library.call(name, args.values, args.keywords)
        results = library.call(name, args.values[:inputs])
        if len(args) != inputs + len(results.items):
            raise CodegenError(f"{name}() gives {len(results.items)} results, not {len(args) - inputs}")
        for k, value in enumerate(results.items):
            args.assign(inputs + k, value)
        return None

    return handler


def draw(name):
    """A function that draws a random number and advances the state, which is a variable of the caller."""

    def handler(args):
        made = library.call(name, args.values, args.keywords)
        *items, state = made.items
        if args.node.args and isinstance(args.node.args[0], (ast.Name, ast.Attribute, ast.Subscript)):
            args.assign(0, state)
        return items[0] if len(items) == 1 else TupleValue(items)

    return handler


def rand_init(args):
    """The state of a sequence of random numbers, from a seed and the number of the sequence."""
    values = []
    for value in [*args.values, *args.keywords.values()]:
        if isinstance(value, Value) and value.literal is None and value.scalar is scalars.uint32:
            value = operators.converted(value, scalars.int32)
        values.append(value)
    return library.call("rand_init", values)


def tested(name, combine):
    """isnan and kin: of values with several components whether one is, or, for isfinite, whether all are."""

    def handler(args):
        args.expect(name, 1)
        value = args[0]
        if not isinstance(value, Value) or value.kind == "scalar":
            return library.call(name, args.values)
        if not issubclass(value.scalar, scalars.FloatScalar):
            library.no_form(name, args.values)
        parts = [library.call(name, [Value(value.scalar, (i,))]) for i in value.ids]
        ids = parts[0].ids
        for part in parts[1:]:
            ids = _weft.binary(operators.OPS[combine], ids, part.ids)
        return Value(scalars.bool, ids)

    return handler


def sign(args):
    """``sign(x)``: -1 below zero, and else 1, of zero too."""
    args.expect("sign", 1)
    value = args[0]
    if isinstance(value, Value) and value.literal is not None:
        return literal(type(value.literal)(-1 if value.literal < 0 else 1))
    if not isinstance(value, Value) or value.kind not in ("scalar", "vector") or value.scalar is scalars.bool:
        library.no_form("sign", args.values)
    code = value.type.native.code
    count = len(value.ids)
    one, minus = (_weft.constant(code, 1),) * count, (_weft.constant(code, -1),) * count
    if not issubclass(value.scalar, scalars.FloatScalar) and not value.scalar.signed:
        return Value(value.type, one)
    below = _weft.binary(operators.OPS["lt"], value.ids, _weft.zeros_of(value.type.native))
    return Value(value.type, _weft.select(below, minus, one))


def closest_point_edge_edge(args):
    """The places of the closest points on two edges, and their distance, as one vector."""
    items = library.call("closest_point_edge_edge", args.values, args.keywords).items
    return Value(vectors.vector(3, scalars.float32), tuple(item.id for item in items))


def intersect_tri_tri(args):
    """1 if two triangles meet, else 0."""
    return operators.converted(library.call("intersect_tri_tri", args.values, args.keywords), scalars.int32)


def copysign(args):
    """``copysign(x, y)``: the magnitude of x with the sign of y, of a zero too."""
    args.expect("copysign", 2)
    x, y = operators.of_one_type(args[0], args[1], "copysign")
    if not isinstance(x, Value) or x.kind != "scalar" or not issubclass(x.scalar, scalars.FloatScalar):
        library.no_form("copysign", args.values)
    if not same_type(x.type, y.type):
        library.no_form("copysign", args.values)
    word = {2: _weft.INT16, 4: _weft.INT32, 8: _weft.INT64}[x.scalar.native.size]
    zero_word = (_weft.constant(word, 0),)
    signs = [_weft.binary(operators.OPS["lt"], _weft.bitcast(word, v.ids), zero_word) for v in (x, y)]
    same = _weft.binary(operators.OPS["eq"], *signs)  # so that the derivative is that of the chosen one at 0 too
    return Value(x.type, _weft.select(same, x.ids, _weft.unary(operators.OPS["neg"], x.ids)))


def quat_from_matrix(args):
    """``quat_from_matrix(m)``: the rotation of a matrix, which of a matrix of four rows is its upper left part."""
    args.expect("quat_from_matrix", 1)
    value = args[0]
    if isinstance(value, Value) and value.kind == "matrix" and value.type._shape_ == (4, 4):
        ids = tuple(value.ids[r * 4 + c] for r in range(3) for c in range(3))
        value = Value(matrices.matrix((3, 3), value.scalar), ids)
    return library.call("quat_from_matrix", [value])


def operator_function(name):
    """An operator as a function: ``wp.add(a, b)``."""

    def handler(args):
        args.expect(name, 2)
        return operators.binary(name, args[0], args[1])

    return handler


def unary_function(name, function):
    """A unary operator as a function: ``wp.neg(a)``."""

    def handler(args):
        args.expect(name, 1)
        return function(args[0])

    return handler


def set_part(name, leaves):
    """``transform_set_translation(t, p)`` and kin, which assign to their first argument."""

    def handler(args):
        args.expect(name, 2)
        args.assign(0, replaced_part(args, leaves))

    return handler


def copy_with_part(name, leaves):
    """``transform_set_translation_copy(t, p)`` and kin, which return the changed transform."""

    def handler(args):
        args.expect(name, 2)
        return replaced_part(args, leaves)

    return handler


def replaced_part(args, leaves):
    """A transform with some of its numbers replaced."""
    transform, value = args.values
    if not isinstance(transform, Value) or transform.kind != "transform" or len(value.ids) != len(leaves):
        library.no_form("transform_set", args.values)
    if transform.scalar is not value.scalar:
        library.no_form("transform_set", args.values)
    ids = list(transform.ids)
    for k, i in zip(leaves, value.ids):
        ids[k] = i
    return Value(transform.type, tuple(ids))


def searched(name):
    """``lower_bound(array, value)``, ``lower_bound(array, begin, end, value)`` and kin: the place of a value in a sorted
    array.
    """

    def handler(args):
        values = [*args.values, *args.keywords.values()]
        array = values[0] if values else None
        if not isinstance(array, ArrayValue) or array.ndim != 1 or len(values) not in (2, 4):
            raise CodegenError(f"{name}() takes a sorted array of one dimension, perhaps a range of it, and a value")
        wanted = [*(scalars.int32 for _ in values[1:-1]), array.dtype]
        given = [adapted_to(v, kind) for v, kind in zip(values[1:], wanted)]
        if not all(isinstance(v, Value) and same_type(v.type, kind) for v, kind in zip(given, wanted)):
            library.no_form(name, values)
        dtypes = (array.dtype.native, *(v.type.native for v in given))
        dtype, ids = _weft.call(name, dtypes, (plain(array, name), *(v.ids for v in given)))
        # The last place where all elements are less, so that the result is always an index.
        end = given[1].ids if len(given) == 3 else (array.ref.shape(0),)
        last = _weft.binary(operators.OPS["sub"], end, (_weft.constant(_weft.INT32, 1),))
        return Value(dtype.python, _weft.binary(operators.OPS["min"], tuple(ids), last))

    return handler


def sample_cdf(args):
    """``sample_cdf(state, cdf)``: an index drawn by a cumulative distribution; advances the state."""
    args.expect("sample_cdf", 2)
    state, cdf = args.values
    if not isinstance(cdf, ArrayValue) or not isinstance(state, Value) or state.scalar is not scalars.uint32:
        library.no_form("sample_cdf", args.values)
    index, state = _weft.call("sample_cdf", (state.type.native, cdf.dtype.native), (state.ids, plain(cdf, "sample_cdf")))
    args.assign(0, Value(scalars.uint32, tuple(state[1])))
    return Value(index[0].python, tuple(index[1]), nonneg=True)


def copied(args):
    """``copy(x)``: the value itself, as values are copied by assignment."""
    args.expect("copy", 1)
    return args[0]


POSITION, ROTATION = (0, 1, 2), (3, 4, 5, 6)

def within_domain(name):
    """``acos(x)`` or ``asin(x)``: of a number that rounding has brought out of [-1, 1] that of the nearest one in it, as Warp
    has it. The slope is 0 there and at the ends. NaN stays NaN.
    """

    def call(args):
        values = args.values
        if len(values) == 1 and isinstance(values[0], Value) and not args.keywords:
            if values[0].kind == "scalar" and (values[0].literal is not None or values[0].scalar in scalars.FLOATS):
                x = operators.converted(values[0], scalars.float32) if values[0].literal is not None else values[0]
                outside = operators.binary("ge", library.call("abs", [x]), literal(1.0))
                values = [Value(x.type, _weft.select(outside.ids, library.call("sign", [x]).ids, x.ids))]
        return library.call(name, values, args.keywords)

    return call


HANDLERS = {
    "tid": tid,
    "block_dim": block_dim,
    "print": print_,
    "printf": printf,
    "expect_eq": expect_eq,
    "expect_neq": expect_neq,
    "expect_near": expect_near,
    "where": where,
    "select": select,
    "cast": cast,
    "len": length_of,
    "identity": identity,
    "quat_identity": quat_identity,
    "transform_identity": transform_identity,
    "spatial_vector": spatial_vector,
    "matrix_from_rows": matrix_from_rows,
    "matrix_from_cols": matrix_from_cols,
    "svd3": results_assigned("svd3", 1),
    "svd2": results_assigned("svd2", 1),
    "qr3": results_assigned("qr3", 1),
    "eig3": results_assigned("eig3", 1),
    "quat_to_axis_angle": results_assigned("quat_to_axis_angle", 1),
    "rand_init": rand_init,
    "isfinite": tested("isfinite", "bit_and"),
    "isnan": tested("isnan", "bit_or"),
    "isinf": tested("isinf", "bit_or"),
    "transform_set_translation": set_part("transform_set_translation", POSITION),
    "transform_set_rotation": set_part("transform_set_rotation", ROTATION),
    "transform_set_translation_copy": copy_with_part("transform_set_translation_copy", POSITION),
    "transform_set_rotation_copy": copy_with_part("transform_set_rotation_copy", ROTATION),
    "neg": unary_function("neg", operators.negate),
    "pos": unary_function("pos", lambda value: value),
    "invert": unary_function("invert", operators.invert),
    "unot": unary_function("unot", lambda value: operators.logical_not(operators.truth(value))),
    "copy": copied,
    "sign": sign,
    "inverse_approx": lambda args: library.call("inverse", args.values, args.keywords),
    "quat_from_matrix": quat_from_matrix,
    "closest_point_edge_edge": closest_point_edge_edge,
    "intersect_tri_tri": intersect_tri_tri,
    "copysign": copysign,
    "lower_bound": searched("lower_bound"),
    "upper_bound": searched("upper_bound"),
    "sample_cdf": sample_cdf,
}
for _name in library.DRAWS:
    HANDLERS[_name] = draw(_name)
for _name in ("add", "sub", "mul", "div", "mod", "floordiv", "bit_and", "bit_or", "bit_xor", "lshift", "rshift"):
    HANDLERS[_name] = operator_function(_name)
HANDLERS["div_approx"] = operator_function("div")  # devices choose how they divide, which config.fast_math is for
HANDLERS |= {name: within_domain(name) for name in ("acos", "asin")}
