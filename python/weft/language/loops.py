"""Loops of kernels. A `for` over a few numbers that are known while tracing is unrolled; all others are traced once."""

import ast

from .. import _weft
from ..types import scalars
from . import expressions
from .emitter import Local
from .names import contains, stored_in
from .values import Static, TupleValue, Value, adapted, literal, name_of_type

DEFAULT_MAX_UNROLL = 16


def for_loop(e, node):
    """``for i in range(...)``, or over a tuple that is known while tracing."""
    from . import statements

    if node.orelse:
        e.error(node, "loops of kernels have no `else`")
    if not isinstance(node.target, ast.Name):
        e.error(node, "the variable of a loop is a single name")
    over = node.iter
    if isinstance(over, ast.Call) and is_range(e, over.func):
        bounds = [expressions.evaluate(e, a) for a in over.args]
        range_loop(e, node, bounds)
        return
    items = expressions.evaluate(e, over)
    if isinstance(items, Static) and isinstance(items.object, range):
        known = items.object
        range_loop(e, node, [literal(known.start), literal(known.stop), literal(known.step)])
        return
    if isinstance(items, Static) and hasattr(items.object, "__iter__"):
        from .statics import of_python

        items = TupleValue([of_python(x) for x in items.object])
    if not isinstance(items, TupleValue):
        e.error(node, f"a loop over a {name_of_type(items)} is not supported: use range(...)")
    if contains(node.body, (ast.Break, ast.Continue), enter_loops=False):
        e.error(node, "a loop over a tuple is unrolled: it has no `break` and no `continue`")
    e.loops.append("unrolled")
    for item in items.items:
        e.bind(node.target.id, item)
        statements.block(e, node.body)
    e.loops.pop()


def is_range(e, function):
    """Whether a call is Python's range."""
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return False
    called = expressions.evaluate(e, function)
    return isinstance(called, Static) and called.object is range


def range_loop(e, node, bounds):
    """A loop over range(*bounds)."""
    if not 1 <= len(bounds) <= 3:
        e.error(node, f"range() takes 1 to 3 arguments, not {len(bounds)}")
    bounds = integers(e, node, bounds)
    if len(bounds) == 1:
        bounds = [adapted(literal(0), bounds[0].scalar), bounds[0]]
    if len(bounds) == 2:
        bounds = [*bounds, adapted(literal(1), bounds[0].scalar)]
    known = [known_number(b) for b in bounds]
    if known[2] == 0:
        e.error(node, "the step of range() is 0")
    if None not in known and unrolls(e, node, range(*known)):
        unrolled(e, node, range(*known), bounds[0].scalar)
    else:
        dynamic(e, node, bounds, known)


def integers(e, node, bounds):
    """The bounds as integers of one type. Errors: CodegenError for other types."""
    given = [b for b in bounds if isinstance(b, Value) and b.literal is None]
    scalar = given[0].scalar if given else scalars.int32
    made = []
    for bound in bounds:
        if isinstance(bound, Value) and bound.literal is not None:
            bound = adapted(bound, scalar)
        if not isinstance(bound, Value) or bound.kind != "scalar" or bound.scalar is not scalar:
            e.error(node, "the bounds and the step of range() are integers of one type")
        if not issubclass(scalar, scalars.IntegerScalar):
            e.error(node, f"the bounds and the step of range() are integers, not {scalar.__name__}")
        made.append(bound)
    return made


def known_number(value):
    """The number of an integer that is known while tracing, else None."""
    return value.literal if value.literal is not None else _weft.known(value.id)


def unrolls(e, node, values):
    """Whether a loop of known bounds is unrolled: few iterations, which all run to their end."""
    most = e.options.get("max_unroll")
    most = DEFAULT_MAX_UNROLL if most is None else most
    leaves = contains(node.body, (ast.Break, ast.Continue), enter_loops=False)
    return len(values) <= most and not leaves and not contains(node.body, (ast.Return,))


def unrolled(e, node, values, scalar):
    """Emits the body for each of the values."""
    from . import statements

    e.loops.append("unrolled")
    for number in values:
        counter = Value(scalar, (_weft.constant(scalar.native.code, number),), nonneg=number >= 0)
        with bound_counter(e, node, counter):
            statements.block(e, node.body)
    e.loops.pop()


def dynamic(e, node, bounds, known):
    """Emits the loop once."""
    from . import statements

    lo, hi, step = bounds
    ascending = known[2] is not None and known[2] > 0
    counter = _weft.open_range(lo.id, hi.id, step.id)
    from_below = lo.nonneg or known[0] is not None and known[0] >= 0
    from_above = known[1] is not None and known[1] >= -1
    nonneg = from_below if ascending else known[2] is not None and from_above
    value = Value(lo.scalar, (counter,), nonneg=nonneg)
    e.loops.append("dynamic")
    with e.region():
        with bound_counter(e, node, value):
            statements.block(e, node.body)
    e.loops.pop()
    _weft.close_range()


class bound_counter:
    """The name of a loop's counter: the value of this iteration inside the body, a variable for what comes after it."""

    def __init__(self, e, node, counter):
        self.e = e
        self.name = node.target.id
        self.counter = counter
        self.assigned = self.name in stored_in(node.body)
        self.held = None

    def __enter__(self):
        self.e.bind(self.name, self.counter)
        bound = self.e.names[self.name]
        if isinstance(bound, Local) and not self.assigned:
            self.held = bound
            self.e.names[self.name] = self.counter

    def __exit__(self, kind, error, trace):
        if self.held is not None:
            self.e.names[self.name] = self.held


def while_loop(e, node):
    """``while condition``."""
    from . import statements

    if node.orelse:
        e.error(node, "loops of kernels have no `else`")
    _weft.open_while()
    e.loops.append("dynamic")
    with e.region():
        condition = expressions.condition(e, node.test)
        _weft.while_body(condition.id)
        statements.block(e, node.body)
    e.loops.pop()
    _weft.close_while()
