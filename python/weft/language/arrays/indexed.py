"""Indexed arrays in kernels: arrays seen through a list of indices for each dimension, or for some.

A kernel gets one as a struct of the array and its lists (see native_type), and sees it through IndexedRef, which does what
an array's reference does, with the lists' numbers in place of the indices.
"""

from ... import _weft
from ...types import scalars
from ..errors import CodegenError
from ..values import ArrayValue, StructValue, TupleValue

LISTS = ("list0", "list1", "list2", "list3")
types_ = {}


def native_type(kind):
    """The struct as which the module takes an indexed array of a type."""
    key = (kind.dtype.native.number, kind.ndim)
    if key not in types_:
        lists = [(name, (scalars.int32.native, 1)) for name in LISTS[: kind.ndim]]
        types_[key] = _weft.struct_dtype("indexedarray", [("data", (kind.dtype.native, kind.ndim)), *lists])
        types_[key].python = kind
    return types_[key]


def value_of(kind, parts, name=None):
    """The indexed array whose data and lists are given by their names."""
    lists = [parts[n] for n in LISTS[: kind.ndim]]
    ref = IndexedRef(parts["data"], [None if one.is_null else one for one in lists])
    return ArrayValue(ref, kind.dtype, name)


def holds_indexed(value):
    """Whether a value is an array that the module has not as such, or holds one: an indexed one, a view or an array of the
    kernel's, one that a struct of the kernel's has not been given; or a query. These do not cross the ends of calls.
    """
    if isinstance(value, ArrayValue):
        return not isinstance(value.ref, _weft.ArrayRef)
    if getattr(value, "stays", False):
        return True
    if isinstance(value, StructValue):
        return any(map(holds_indexed, value.fields.values()))
    return isinstance(value, TupleValue) and any(map(holds_indexed, value.items))


class IndexedRef:
    """What kernels do with an indexed array: as the module's ArrayRef."""

    indexed = True

    def __init__(self, data, lists):
        self.data = data
        self.lists = lists

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.data.ndim

    @property
    def dtype(self):
        """The type of an element."""
        return self.data.dtype

    @property
    def is_null(self):
        """Whether the launch left the array out."""
        return self.data.is_null

    def shape(self, k, code=_weft.INT32):
        """The number of indices that dimension k takes."""
        chosen = self.lists[k]
        return self.data.shape(k, code) if chosen is None else chosen.shape(0, code)

    def mapped(self, k, index, wrap):
        """The index in the array that stands for index `index` of dimension k, and whether it may be negative."""
        chosen = self.lists[k]
        if chosen is None:
            return index, wrap
        return chosen.load((index,), int(wrap))[0], False

    def element(self, indices, wrap=0):
        """The place of an element. Bit k of wrap: index k may be negative."""
        mapped, left = [], 0
        for k, index in enumerate(indices):
            index, negative = self.mapped(k, index, bool(wrap >> k & 1))
            mapped.append(index)
            left |= int(negative) << k
        return self.data.element(tuple(mapped), left)

    def load(self, indices, wrap=0):
        """The scalars of an element."""
        return self.element(indices, wrap).load()

    def store(self, indices, values, wrap=0):
        """Replaces an element."""
        self.element(indices, wrap).store(values)

    def row(self, index, wrap=False):
        """The part of one dimension less at an index of the first."""
        index, wrap = self.mapped(0, index, wrap)
        rest = self.lists[1:]
        row = self.data.row(index, wrap)
        return IndexedRef(row, rest) if any(one is not None for one in rest) else row

    def slice(self, low, high, step):
        """A range of the indices of the first dimension."""
        if self.lists[0] is None:
            return IndexedRef(self.data.slice(low, high, step), self.lists)
        return IndexedRef(self.data, [self.lists[0].slice(low, high, step), *self.lists[1:]])

    def transpose(self):
        """The dimensions in reverse order."""
        return IndexedRef(self.data.transpose(), self.lists[::-1])

    def gradient(self):
        """The gradients of the array, seen through the same lists."""
        return IndexedRef(self.data.gradient(), self.lists)


def plain(array, name):
    """The reference of an array that is not indexed, for functions that read arrays themselves.

    Errors: CodegenError for an indexed one, and for a view that a kernel makes.
    """
    if not isinstance(array.ref, _weft.ArrayRef):
        raise CodegenError(f"{name}() takes no indexed array, no array of the kernel's own and no slice with such a step")
    return array.ref
