"""Operators of arrays: element by element with another array of the same shape, or with one value."""

from typing import Any

from .. import _weft
from ..language.builtin import Builtin
from ..types.annotations import ArrayType
from .kernel import Kernel

OPERATORS = ("add", "sub", "mul", "div", "mod")
tid = Builtin("tid")
made_ = {}

Elements = ArrayType(Any, 1)


def kernel_of(name, form):
    """The kernel of an operator: `form` says which of its operands are arrays ("aa", "as", "sa")."""
    made = made_.get((name, form))
    if made is None:
        operate = Builtin(name)

        def both(a: Elements, b: Elements, out: Elements):
            i = tid()
            out[i] = operate(a[i], b[i])

        def right(a: Elements, b: Any, out: Elements):
            i = tid()
            out[i] = operate(a[i], b)

        def left(a: Any, b: Elements, out: Elements):
            i = tid()
            out[i] = operate(a, b[i])

        function = {"aa": both, "as": right, "sa": left}[form]
        made = made_[name, form] = Kernel(function, key=f"array_{name}_{form}")
    return made


def operate(name, a, b):
    """The array of an operator's results. NotImplemented for what is no operand.

    Errors: RuntimeError for arrays of different shapes or devices; CodegenError for element types without the operator.
    """
    arrays = [x for x in (a, b) if isinstance(x, _weft.Array)]
    if len(arrays) == 2 and a.shape != b.shape:
        raise RuntimeError(f"Shapes {tuple(a.shape)} and {tuple(b.shape)} are not broadcastable")
    first = arrays[0]
    operands, form = [], ""
    for operand in (a, b):
        if isinstance(operand, _weft.Array):
            operands.append(operand.contiguous().flatten())
            form += "a"
        else:
            if isinstance(operand, (int, float)) and first.dtype.native.kind == "scalar":
                operand = first.dtype(operand)
            operands.append(operand)
            form += "s"
    out = _weft.empty(first.size, first.element_dtype, first.native_device)
    _weft.launch(kernel_of(name, form), first.size, [*operands, out])
    return out.reshape(first.shape)


def add_operators(cls):
    """Gives a class of arrays the operators."""

    def forward(name):
        return lambda self, other: operate(name, self, other)

    def backward(name):
        return lambda self, other: operate(name, other, self)

    for name in OPERATORS:
        spelled = "truediv" if name == "div" else name
        setattr(cls, f"__{spelled}__", forward(name))
        setattr(cls, f"__r{spelled}__", backward(name))
    cls.__neg__ = lambda self: operate("mul", self, -1)
