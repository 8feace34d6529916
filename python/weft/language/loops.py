"""Loops of kernels. A `for` over a few numbers that are known while tracing is unrolled; all others are traced once."""

import ast

from .. import _weft
from ..types import scalars
from . import expressions, operators
from .emitter import Local
from .tree.names import calls_static, contains, stored_in
from .structures.queries import QueryValue, RayHits
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
    if isinstance(over, ast.Call) and names(e, over.func, reversed) and len(over.args) == 1:
        if isinstance(over.args[0], ast.Call) and names(e, over.args[0].func, range):
            bounds = [expressions.evaluate(e, a) for a in over.args[0].args]
            range_loop(e, node, backwards(e, node, bounds))
            return
    if isinstance(over, ast.Call) and names(e, over.func, range):
        bounds = [expressions.evaluate(e, a) for a in over.args]
        range_loop(e, node, bounds)
        return
    items = expressions.evaluate(e, over)
    if isinstance(items, RayHits):
        hits_loop(e, node, items)
        return
    if isinstance(items, QueryValue):
        query_loop(e, node, items)
        return
    if isinstance(items, Static) and isinstance(items.object, range):
        if contains(node.body, (ast.Break, ast.Continue), enter_loops=False):
            known = items.object
            range_loop(e, node, [literal(known.start), literal(known.stop), literal(known.step)])
        else:
            unrolled(e, node, items.object, scalars.int32)
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
        statements.unless_returned(e, node)
    e.loops.pop()


def query_loop(e, node, query):
    """``for index in wp.hash_grid_query(...)`` and kin: the body runs for the number of each result."""
    from . import statements

    found = _weft.local(scalars.int32.native, None)
    _weft.set(found, (_weft.constant(_weft.INT32, 0),))
    _weft.open_while()
    e.loops.append("dynamic")
    with e.region():
        more, number = query.next(Value(scalars.int32, _weft.get(found)))
        _weft.set(found, number.ids)
        _weft.while_body(more.id)
        with bound_counter(e, node, Value(scalars.int32, _weft.get(found), nonneg=True)):
            statements.block(e, node.body)
    e.loops.pop()
    _weft.close_while()


def hits_loop(e, node, query):
    """``for hit in wp.mesh_query_ray_all(...)``: the body runs for each hit."""
    from . import statements

    _weft.open_while()
    e.loops.append("dynamic")
    with e.region():
        more, hit = query.hit()
        _weft.while_body(more.id)
        e.bind(node.target.id, hit)
        statements.block(e, node.body)
    e.loops.pop()
    _weft.close_while()


def names(e, function, wanted):
    """Whether what a call calls is a thing of Python's."""
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return False
    called = expressions.evaluate(e, function)
    return isinstance(called, Static) and called.object is wanted


def backwards(e, node, bounds):
    """The bounds of the range that runs through the values of range(*bounds) from the last to the first.

    The last one is lo + floor((hi - lo - sign) / step) * step, which lies before lo where there are no values.
    """
    lo, hi, step = complete(e, node, bounds)
    stride = known_number(step)
    if stride == 0:
        e.error(node, "the step of reversed(range()) is 0")
    one, minus = adapted(literal(1), lo.scalar), adapted(literal(-1), lo.scalar)
    if stride is None:
        negative = operators.binary("lt", step, adapted(literal(0), lo.scalar))
        sign = Value(lo.scalar, _weft.select(negative.ids, minus.ids, one.ids))
    else:
        sign = one if stride > 0 else minus
    steps = operators.binary("floordiv", operators.binary("sub", operators.binary("sub", hi, lo), sign), step)
    last = operators.binary("add", lo, operators.binary("mul", steps, step))
    back = operators.negate(step) if stride is None else adapted(literal(-stride), lo.scalar)
    return [last, operators.binary("sub", lo, step), back]


def range_loop(e, node, bounds):
    """A loop over range(*bounds)."""
    bounds = complete(e, node, bounds)
    known = [known_number(b) for b in bounds]
    if known[2] == 0:
        e.error(node, "the step of range() is 0")
    if None not in known and unrolls(e, node, range(*known)):
        unrolled(e, node, range(*known), bounds[0].scalar)
    else:
        dynamic(e, node, bounds, known)


def complete(e, node, bounds):
    """Start, end and step of a range. Errors: CodegenError for what are no bounds."""
    if not 1 <= len(bounds) <= 3:
        e.error(node, f"range() takes 1 to 3 arguments, not {len(bounds)}")
    bounds = integers(e, node, bounds)
    if len(bounds) == 1:
        bounds = [adapted(literal(0), bounds[0].scalar), bounds[0]]
    if len(bounds) == 2:
        bounds = [*bounds, adapted(literal(1), bounds[0].scalar)]
    return bounds


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
    if contains(node.body, (ast.Break, ast.Continue), enter_loops=False) or contains(node.body, (ast.Return,)):
        return False
    return len(values) <= most or counter_is_static(node)


def counter_is_static(node):
    """Whether a static expression of the body uses the counter, which it can only in an unrolled loop."""
    for part in (p for statement in node.body for p in ast.walk(statement)):
        if calls_static(part):
            if any(isinstance(n, ast.Name) and n.id == node.target.id for n in ast.walk(part)):
                return True
    return False


def unrolled(e, node, values, scalar):
    """Emits the body for each of the values."""
    from . import statements

    e.loops.append("unrolled")
    for number in values:
        counter = Value(scalar, (_weft.constant(scalar.native.code, number),), nonneg=number >= 0)
        with bound_counter(e, node, counter):
            statements.unless_returned(e, node)
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
    value = Value(lo.scalar, (counter,), nonneg=nonneg, wraps=lo.wraps)
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
        self.assigned = self.name in stored_in(node)
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
