"""What tells functions of Python apart: their code and the values that they see.

A lambda or a kernel that is written in a loop, or in a function that is called again, is then known to be the one before.
"""

import types

from ..language import functions
from ..language.builtin import Builtin
from ..types import composites, scalars

NUMBERS = (bool, int, float, str, bytes, type(None), scalars.Scalar, composites.Composite)


class Same:
    """A key for one object, which it keeps."""

    def __init__(self, thing):
        self.thing = thing

    def __eq__(self, other):
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self):
        return id(self.thing)


def identity_of(func):
    """A key that two functions share if they do the same: of plain functions it is made of their code and of the values
    that they see; anything else is itself.
    """
    if isinstance(func, functions.Overloads):
        return (func, *func.overloads)
    if not isinstance(func, types.FunctionType):
        return func
    code = func.__code__
    return (code.co_code, constants_of(code), code.co_names, code.co_varnames, func.__defaults__, seen_by(func))


def constants_of(code):
    """The constants of a function's code, with the code of the functions in it as theirs."""
    return tuple(
        (c.co_code, constants_of(c), c.co_names, c.co_freevars) if isinstance(c, types.CodeType) else (type(c), c)
        for c in code.co_consts
    )


def seen_by(func):
    """The values that a function sees from outside: numbers by their value, all else by which object it is. Of modules it
    also sees the attributes that it names.
    """
    names = func.__code__.co_names
    found = []
    for cell in func.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(object())  # assigned later, who knows what: like nothing else
    found += [func.__globals__.get(name) for name in names]
    for thing in list(found):
        if isinstance(thing, types.ModuleType):
            found += [vars(thing)[name] for name in names if name in vars(thing)]
    return tuple((type(v), v) if isinstance(v, NUMBERS) else Same(v) for v in found)


def is_settled(func):
    """Whether nothing that a function sees may change: it names no containers and no objects with attributes of its own."""
    kinds = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, functions.Overloads, Builtin)
    return all(not isinstance(v, Same) or isinstance(v.thing, kinds) for v in seen_by(func))
