"""Steps: functions that evaluate the expressions of a tree, made once for each node.

A loop that is unrolled evaluates its body's nodes many times, and a kernel is traced again for other types. What depends on
the tree alone, such as the operator and the places of the operands, is looked at when the step is made.
"""

import ast

from .. import _weft
from . import calls, expressions, operators
from .emitter import Local
from .values import Literal, StructValue, Value, literal


def step_of(node):
    """The step of an expression: a function that takes the Emission and returns the expression's value."""
    try:
        return node.step
    except AttributeError:
        make = MAKERS.get(type(node), handled)
        node.step = make(node)
        return node.step


def handled(node):
    """The step of a node that is not worth a step of its own."""
    line = getattr(node, "lineno", 0)
    handler = expressions.EXPRESSIONS.get(type(node))

    def step(e):
        if line != e.line:
            e.at(node)
        if handler is None:
            e.error(node, expressions.refusal(node))
        return handler(e, node)

    return step


def name(node):
    """The step of a variable, or of a thing of Python."""
    line, id = node.lineno, node.id

    def step(e):
        if line != e.line:
            e.at(node)
        bound = e.names.get(id)
        if bound is None:
            return e.things.get(id) or e.lookup(id)
        if id not in e.bound_in:
            if type(bound) is Value:
                return bound
            if type(bound) is Local and bound.plain:
                return Value(bound.type, _weft.get(bound.slots))
        return e.lookup(id)

    return step


def attribute(node):
    """The step of an attribute. Those of things of Python are looked up once in a trace."""
    find = handled(node)

    def step(e):
        return e.things.get(node) or find(e)

    return step


def constant(node):
    """The step of a literal."""
    line, value = node.lineno, node.value
    if type(value) is float:
        kind = literal(value).type

        def step(e):
            if line != e.line:
                e.at(node)
            return Literal(kind, value)

        return step
    return handled(node)


def binary(node):
    """The step of ``a op b``."""
    left, right, line = step_of(node.left), step_of(node.right), node.lineno
    name = operators.BINARY[type(node.op)]
    seen = (None, None, None)  # the types of the last operands, and their rule; one tuple, as several threads may trace

    def step(e):
        nonlocal seen
        a = left(e)
        b = right(e)
        if line != e.line:
            e.at(node)
        if type(a) is Value and type(b) is Value:
            one, other, rule = seen
            if a.type is not one or b.type is not other:
                rule = operators.rule_of(name, a, b)
                seen = (a.type, b.type, rule)
            return rule(a, b)
        if isinstance(a, StructValue) or isinstance(b, StructValue):
            own = expressions.own_operator(e, name)
            if own is not None:
                return calls.functions.call(own, [a, b], {})
        return operators.binary(name, a, b)

    return step


def call(node):
    """The step of a call. Functions of the library and conversions of numbers need nothing but the values."""
    line, function = node.lineno, step_of(node.func)
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return handled(node)
    arguments = [step_of(a) for a in node.args]
    only = arguments[0] if len(arguments) == 1 else None

    def step(e):
        if line != e.line:
            e.at(node)
        called = function(e)
        direct = calls.direct(called)
        if direct is None:
            return calls.call_of(e, node, called, 1)
        values = [only(e)] if only else [argument(e) for argument in arguments]
        if None in values:
            calls.check_values(node, values)
        if line != e.line:
            e.at(node)
        return direct(values)

    return step


MAKERS = {ast.Name: name, ast.Attribute: attribute, ast.Constant: constant, ast.BinOp: binary, ast.Call: call}
