"""Expressions of kernels: each is typed as it is emitted, from its operands up."""

import ast

from .. import _weft
from ..types import scalars, vectors
from ..types.annotations import same_type
from . import calls, operators, places
from .emitter import conditional
from .operators import COMPARE
from .values import Static, StructValue, TupleValue, Value, adapted, from_ids, ids_of, literal, name_of_type


def evaluate(e, node):
    """The value of an expression: a Value, ArrayValue, StructValue, TupleValue or Static; None for a call without one.

    Errors: those of weft.language.errors.
    """
    return steps.step_of(node)(e)


def refusal(node):
    """Why kernels do not have an expression."""
    told = REFUSED.get(type(node))
    if told is not None:
        return told
    name = type(node).__name__
    hint = HINTS.get(name)
    return f"Construct `ast.{name}` not supported in kernels{': ' + hint if hint else ''}."


def condition(e, node):
    """The value of an expression as a boolean."""
    return operators.truth(evaluate(e, node))


def constant(e, node):
    """A literal."""
    if isinstance(node.value, (bool, int, float)):
        return literal(node.value)
    if node.value is None or isinstance(node.value, str) or node.value is Ellipsis:
        return Static(node.value)
    e.error(node, f"kernels have no literals of type {type(node.value).__name__}")


def place(e, node):
    """An attribute or a subscript: the present value of the place that it names."""
    value = places.loaded(e, places.locate(e, node))
    if isinstance(value, Static) and isinstance(node, ast.Attribute) and is_name_of_python(e, node.value):
        e.things[node] = value
    return value


def is_name_of_python(e, node):
    """Whether an expression is a name that the function never stores."""
    if not isinstance(node, ast.Name) or node.id in e.names:
        return False
    use = e.uses.get(node.id)
    return use is None or not use.stores


def own_operator(e, name):
    """The function of the program that gives structs an operator: ``add(a, b)`` for +, and so on; None without one."""
    try:
        found = e.environment.find(name)
    except KeyError:
        return None
    return found if isinstance(found, calls.functions.Overloads) else None


def unary(e, node):
    """``-a``, ``+a``, ``~a``, ``not a``."""
    value = evaluate(e, node.operand)
    if isinstance(node.op, ast.Not):
        return operators.logical_not(operators.truth(value))
    if isinstance(node.op, ast.USub):
        return operators.negate(value)
    if isinstance(node.op, ast.Invert):
        return operators.invert(value)
    return value


def boolean(e, node):
    """``a and b``, ``a or b``: the right side is evaluated only if the left one does not decide."""
    is_or = isinstance(node.op, ast.Or)
    result = condition(e, node.values[0])
    for operand in node.values[1:]:
        result = short_circuit(e, result, is_or, lambda operand=operand: condition(e, operand))
    return result


def short_circuit(e, left, is_or, right):
    """Combines a boolean with the boolean that a function emits."""
    if left.literal is not None:
        return left if left.literal == is_or else right()
    _weft.short_circuit_begin(left.id, is_or)
    with e.region():
        value = right()
    return Value(scalars.bool, (_weft.short_circuit_end(left.id, value.id, is_or),))


def compare(e, node):
    """Comparisons, also chained ones, and ``is`` and ``in`` where Python can decide them while tracing."""
    left = evaluate(e, node.left)
    first = evaluate(e, node.comparators[0])
    result = comparison(e, node, node.ops[0], left, first)
    return chained(e, node, 1, result, first)


def chained(e, node, k, result, left):
    """The comparisons from number k on: each is made only if those before it hold."""
    if k == len(node.ops):
        return result

    def rest():
        right = evaluate(e, node.comparators[k])
        operators.check_chained(left, right)
        return chained(e, node, k + 1, comparison(e, node, node.ops[k], left, right), right)

    return short_circuit(e, result, False, rest)


def comparison(e, node, op, left, right):
    """One comparison."""
    e.at(node)
    if isinstance(op, (ast.Is, ast.IsNot)):
        made = operators.of_others("eq", left, right)
        return operators.logical_not(made) if isinstance(op, ast.IsNot) else made
    if isinstance(op, (ast.In, ast.NotIn)):
        if isinstance(left, Static) and isinstance(right, Static):
            return literal((left.object in right.object) == isinstance(op, ast.In))
        e.error(node, "kernels have no `in`: write a loop or comparisons")
    return operators.binary(COMPARE[type(op)], left, right)


def ternary(e, node):
    """``a if condition else b``: only the chosen side is evaluated, unless both are mere values."""
    test = condition(e, node.test)
    if test.literal is not None:
        return evaluate(e, node.body if test.literal else node.orelse)
    if is_simple(node.body) and is_simple(node.orelse):
        first, second = unified(e, node, evaluate(e, node.body), evaluate(e, node.orelse))
        if isinstance(first, StructValue):
            return from_ids(first.type, _weft.select(test.ids, ids_of(first), ids_of(second)))
        nonneg, wraps = first.nonneg and second.nonneg, first.wraps or second.wraps
        return Value(first.type, _weft.select(test.ids, first.ids, second.ids), nonneg=nonneg, wraps=wraps)
    made = []

    def then():
        value = evaluate(e, node.body)
        if not is_choosable(value):
            e.error(node, f"a {name_of_type(value)} cannot be chosen by a condition")
        if isinstance(value, Value) and value.literal is not None:
            value = literal_beside(e, value, node.orelse)
        made.extend((value.type, _weft.local(value.type.native, None)))
        _weft.set(made[1], ids_of(value))

    def otherwise():
        value = evaluate(e, node.orelse)
        kind = made[0]
        if isinstance(value, Value) and value.literal is not None and kind.native.kind == "scalar":
            value = adapted(value, kind) or value
        if not is_choosable(value) or not same_type(value.type, kind):
            e.error(node, f"the two sides are of types {kind.__name__} and {name_of_type(value)}")
        _weft.set(made[1], ids_of(value))

    conditional(e, test, then, otherwise)
    return from_ids(made[0], _weft.get(made[1]))


def is_choosable(value):
    """Whether a value can be one of the sides of a ternary: numbers, vectors and kin, and structs without arrays."""
    return isinstance(value, Value) or isinstance(value, StructValue) and not value.type.native.holds_arrays


def literal_beside(e, value, other):
    """A literal as the type of the other side of a ternary, where a glance at that side tells it."""
    if isinstance(other, ast.Name):
        held = e.lookup(other.id)
        if isinstance(held, Value) and held.literal is None and held.kind == "scalar":
            return adapted(value, held.scalar) or value
    return value


def is_simple(node):
    """Whether an expression costs and changes nothing: names, literals, attributes and their negations."""
    if isinstance(node, ast.UnaryOp):
        return is_simple(node.operand)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name)
    return isinstance(node, (ast.Name, ast.Constant))


def unified(e, node, a, b):
    """The two sides of a ternary as values of one type."""
    for side in (a, b):
        if not is_choosable(side):
            e.error(node, f"a {name_of_type(side)} cannot be chosen by a condition")
    if isinstance(a, StructValue) or isinstance(b, StructValue):
        pass
    elif a.literal is not None and b.literal is not None and a.type is not b.type:
        wide = scalars.float32 if scalars.float32 in (a.type, b.type) else a.type
        a, b = adapted(a, wide) or a, adapted(b, wide) or b
    elif a.literal is not None:
        a = adapted(a, b.scalar) or a
    elif b.literal is not None:
        b = adapted(b, a.scalar) or b
    if not same_type(a.type, b.type):
        e.error(node, f"the two sides are of types {name_of_type(a)} and {name_of_type(b)}")
    return a, b


def call(e, node):
    """A call with keywords or starred arguments."""
    return calls.call(e, node)


def tuple_(e, node):
    """``(a, b)``."""
    return TupleValue([evaluate(e, item) for item in node.elts])


def items_of(value):
    """The values into which a value unpacks; None if it does not."""
    if isinstance(value, TupleValue):
        return value.items
    if isinstance(value, Value):
        scalar = value.scalar
        if value.kind in ("vector", "quaternion", "transform"):
            return [Value(scalar, (i,)) for i in value.ids]
        if value.kind == "matrix":
            rows, columns = value.type._shape_
            kind = vectors.vector(columns, scalar)
            return [Value(kind, value.ids[r * columns : (r + 1) * columns]) for r in range(rows)]
    if isinstance(value, Static) and isinstance(value.object, (tuple, list)):
        from .statics import of_python

        return [of_python(v) for v in value.object]
    return None


REFUSED = {
    ast.List: (
        "List constructs are not supported in kernels. Use vectors like `wp.vec3()` for small fixed-size collections, "
        "or `wp.zeros(shape=N, dtype=...)` for stack-allocated arrays."
    ),
    ast.ListComp: "List comprehensions are not supported in kernels: write a loop.",
    ast.JoinedStr: "f-strings are not supported in kernels: give print() the values.",
    ast.Lambda: "lambdas are not supported inside kernels: define a function with @wp.func.",
    ast.NamedExpr: "`:=` is not supported in kernels: assign first.",
}

HINTS = {
    "AsyncFor": "loops over what a kernel awaits belong to the host",
    "AsyncFunctionDef": "coroutines belong to the host",
    "AsyncWith": "`async with` belongs to the host",
    "Await": "a kernel awaits nothing",
    "ClassDef": "define structs outside of kernels, with @wp.struct",
    "Delete": "names need not be deleted",
    "Dict": "use a struct, or arrays",
    "DictComp": "write a loop, and arrays in place of the dict",
    "FunctionDef": "define functions outside of the kernel, with @wp.func",
    "GeneratorExp": "write a loop",
    "Global": "a kernel cannot assign to names of Python, its results go into arrays",
    "Import": "import modules outside of the kernel",
    "ImportFrom": "import names outside of the kernel",
    "Match": "write `if` and `elif`",
    "Nonlocal": "a kernel cannot assign to names of Python, its results go into arrays",
    "Raise": "there are no exceptions, `assert` is checked in debug mode",
    "Set": "use a tuple, or arrays",
    "SetComp": "write a loop, and arrays in place of the set",
    "Starred": "tuples are unpacked in calls alone",
    "Try": "there are no exceptions",
    "TryStar": "there are no exceptions",
    "With": "contexts belong to the host, around the launch",
    "Yield": "a kernel writes its results into arrays",
    "YieldFrom": "a kernel writes its results into arrays",
}
"""What to do instead of constructs, by the names of their nodes, of which not every version of Python has all."""

EXPRESSIONS = {
    ast.Constant: constant,
    ast.Attribute: place,
    ast.Subscript: place,
    ast.UnaryOp: unary,
    ast.BoolOp: boolean,
    ast.Compare: compare,
    ast.IfExp: ternary,
    ast.Call: call,
    ast.Tuple: tuple_,
}

from . import steps  # noqa: E402  (which call what is here)
