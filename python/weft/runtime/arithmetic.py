"""Operators of arrays: element by element with another array, whose shape is broadcast, or with one value."""

from ..language.builtin import Builtin
from .mapping import in_place, is_operand, map, operand  # noqa: A004

OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floordiv",
    "mod": "mod",
    "pow": "pow",
    "and": "bit_and",
    "or": "bit_or",
    "xor": "bit_xor",
    "lshift": "lshift",
    "rshift": "rshift",
}
UNARY = {"neg": "neg", "pos": "pos", "invert": "invert"}


def add_operators(cls):
    """Gives a class of arrays the operators. They raise what map() raises; NotImplemented for what is no operand."""

    def operator(name):
        function = Builtin(name)

        def forward(self, other):
            return map(function, self, operand(self, other)) if is_operand(other) else NotImplemented

        def backward(self, other):
            return map(function, operand(self, other), self) if is_operand(other) else NotImplemented

        def changed(self, other):
            return in_place(function, self, other) if is_operand(other) else NotImplemented

        return forward, backward, changed

    for spelled, name in OPERATORS.items():
        forward, backward, changed = operator(name)
        setattr(cls, f"__{spelled}__", forward)
        setattr(cls, f"__r{spelled}__", backward)
        setattr(cls, f"__i{spelled}__", changed)
    for spelled, name in UNARY.items():
        setattr(cls, f"__{spelled}__", lambda self, function=Builtin(name): map(function, self))


