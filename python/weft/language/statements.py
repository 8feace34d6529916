"""Statements of kernels: assignments, branches, returns, assertions. Loops are in loops.py."""

import ast

from .. import _weft
from ..types import annotations
from . import calls, expressions, loops, operators, places
from .emitter import adapted_to, assertions, conditional, is_variable
from .errors import KERNEL_RETURNS, CodegenTypeError, CodegenValueError
from .tree.names import contains, ends
from .values import ArrayValue, Static, name_of_type

def block(e, statements):
    """Emits statements in order. In a function the code after an if that returns becomes the other branch of that if.

    Returns whether what comes after the statements is never reached: a kernel has returned.
    """
    for k, statement in enumerate(statements):
        e.at(statement)
        kind = type(statement)
        if e.is_function and kind in (ast.If, ast.For, ast.While) and contains([statement], (ast.Return,)):
            rest = statements[k + 1 :]
            if kind is ast.If:
                if branch_that_returns(e, statement, rest):
                    return False
            else:
                emit(e, statement)
                guard_rest(e, rest)
                return False
        elif emit(e, statement) or kind in (ast.Return, ast.Break, ast.Continue):
            return kind in (ast.Return, ast.If)
    return False


def branch_that_returns(e, statement, rest):
    """Emits an if of a function, in which a return stands, with all that comes after it. False: it was decided while
    tracing, did not return, and the statements after it are still to be emitted.
    """
    condition = expressions.condition(e, statement.test)
    if condition.literal is not None:
        taken = statement.body if condition.literal else statement.orelse
        block(e, taken + rest if not ends(taken) else taken)
        return True
    if ends(statement.body):
        branches(e, condition, statement.body, statement.orelse + rest)
    elif ends(statement.orelse):
        branches(e, condition, statement.body + rest, statement.orelse)
    else:
        branches(e, condition, statement.body, statement.orelse)
        guard_rest(e, rest)
    return True


def branches(e, condition, body, orelse):
    """Emits an if with both branches."""
    conditional(e, condition, lambda: block(e, body), (lambda: block(e, orelse)) if orelse else None)


def guard_rest(e, rest):
    """Emits the statements after one that may have returned: they run if it has not."""
    if e.loops and e.loops[-1] == "dynamic":
        conditional(e, places.read_local(e.returned), _weft.break_)
    if rest and e.returned is not None:
        conditional(e, operators.logical_not(places.read_local(e.returned)), lambda: block(e, rest))
    elif rest:
        block(e, rest)


def unless_returned(e, loop):
    """Emits the body of an unrolled loop once more. In a function that may have returned in an earlier turn it runs only
    if that was not so; a kernel that returns ends its thread.
    """
    if e.returned is not None and contains(loop.body, (ast.Return,)):
        conditional(e, operators.logical_not(places.read_local(e.returned)), lambda: block(e, loop.body))
    else:
        block(e, loop.body)


def emit(e, node):
    """Emits one statement. Returns True if it is an if, decided while tracing, in which the kernel has returned.

    Errors: CodegenError for a construct that kernels do not have.
    """
    handler = STATEMENTS.get(type(node))
    if handler is None:
        e.error(node, expressions.refusal(node))
    return handler(e, node) is True


def expression_statement(e, node):
    """A call for its effects, or a docstring."""
    if isinstance(node.value, ast.Constant):
        return
    expressions.evaluate(e, node.value)


def assign(e, node):
    """``a = b = value`` and unpacking."""
    count = targets_of(node.targets[0])
    if count != 1 and isinstance(node.value, ast.Call):
        value = calls.call(e, node.value, count)
    else:
        value = expressions.evaluate(e, node.value)
    if value is None:
        e.error(node, "the right side has no value: the function that it calls returns nothing")
    for target in node.targets:
        assign_to(e, target, value)


def targets_of(target):
    """The number of names into which a target unpacks; 1 for a single one."""
    return len(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else 1


def assign_to(e, target, value):
    """Assigns a value to a name, a part of a value, an element of an array, or to several of these."""
    if isinstance(target, ast.Name):
        e.bind(target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        unpack(e, target, value)
    elif isinstance(target, (ast.Subscript, ast.Attribute)):
        places.store(e, target, value)
    else:
        e.error(target, f"cannot assign to ast.{type(target).__name__}")


def unpack(e, target, value):
    """``a, b = value``: the values of a tuple, the components of a vector, the rows of a matrix."""
    items = expressions.items_of(value)
    if items is None:
        e.error(target, f"a value of type {name_of_type(value)} cannot be unpacked", CodegenTypeError)
    if any(isinstance(t, ast.Starred) for t in target.elts):
        e.error(target, "kernels do not unpack into a starred name")
    if len(items) != len(target.elts):
        many = "too many" if len(items) > len(target.elts) else "not enough"
        e.error(target, f"{many} values to unpack (expected {len(target.elts)}, got {len(items)})", CodegenValueError)
    for part, item in zip(target.elts, items):
        assign_to(e, part, item)


def annotated_assign(e, node):
    """``x: float = 3.0``: the annotation decides the type of a literal."""
    if node.value is None:
        e.error(node, "a variable is declared with its first value, as in `x: float = 0.0`")
    kind = expressions.evaluate(e, node.annotation)
    if not isinstance(kind, Static):
        e.error(node, "the annotation of a variable is a type")
    value = expressions.evaluate(e, node.value)
    try:
        wanted = annotations.value_type(kind.object)
    except TypeError as error:
        raise CodegenTypeError(str(error)) from None
    value = adapted_to(value, wanted)
    if not annotations.matches(wanted, value.type):
        raise CodegenTypeError(
            f"the variable is declared as {annotations.type_name(wanted)} but the value is of type {name_of_type(value)}"
        )
    assign_to(e, node.target, value)


def augmented_assign(e, node):
    """``target op= value``. Sums and differences with elements of arrays are atomic, as threads may share these."""
    name = operators.BINARY.get(type(node.op))
    value = expressions.evaluate(e, node.value)
    if isinstance(node.target, ast.Name):
        held = e.lookup(node.target.id)
        if isinstance(held, ArrayValue) or not is_variable(held):
            operators.refuse(name, held, value)
        e.bind(node.target.id, operators.binary(name, held, value))
    else:
        places.update(e, node.target, name, value)


def if_statement(e, node):
    """An if of the kernel; one that is known while tracing emits the branch that is taken."""
    condition = expressions.condition(e, node.test)
    if condition.literal is not None:
        return block(e, node.body if condition.literal else node.orelse)
    branches(e, condition, node.body, node.orelse)
    return False


def return_statement(e, node):
    """The end of a thread's run of the kernel, or the result of a function."""
    if not e.is_function:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            e.error(node, KERNEL_RETURNS, CodegenTypeError)
        if e.depth or e.loops:
            _weft.return_()
        return
    value = None if node.value is None else expressions.evaluate(e, node.value)
    if isinstance(value, Static) and value.object is None:
        value = None
    e.give_result(value)
    if e.returned is not None and e.loops and e.loops[-1] == "dynamic":
        _weft.break_()


def assert_statement(e, node):
    """``assert condition, message``: an error of the launch in debug mode; elsewhere nothing, not even the condition."""
    if not assertions.get():
        return
    condition = expressions.condition(e, node.test)
    message = node.msg.value if isinstance(node.msg, ast.Constant) else ast.unparse(node.test)
    _weft.assert_items(condition.id, (str(message),))


def break_statement(e, node):
    """Leaves the innermost loop."""
    if not e.loops:
        e.error(node, "`break` stands outside of a loop")
    _weft.break_()


def continue_statement(e, node):
    """Goes on with the next iteration of the innermost loop."""
    if not e.loops:
        e.error(node, "`continue` stands outside of a loop")
    _weft.continue_()


def pass_statement(e, node):
    """Nothing."""


STATEMENTS = {
    ast.Expr: expression_statement,
    ast.Assign: assign,
    ast.AnnAssign: annotated_assign,
    ast.AugAssign: augmented_assign,
    ast.If: if_statement,
    ast.For: loops.for_loop,
    ast.While: loops.while_loop,
    ast.Return: return_statement,
    ast.Assert: assert_statement,
    ast.Break: break_statement,
    ast.Continue: continue_statement,
    ast.Pass: pass_statement,
}
