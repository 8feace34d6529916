"""Views of arrays in kernels that the module's own do not describe: several sliced dimensions, and steps of any sign."""

from ... import _weft
from ..errors import CodegenValueError
from ..operators import OPS


def number(n):
    """A known number of 32 bits."""
    return _weft.constant(_weft.INT32, n)


def combined(name, a, b):
    """An operator of two numbers."""
    return _weft.binary(OPS[name], (a,), (b,))[0]


def chosen(condition, a, b):
    """The first number where the condition holds, else the second."""
    known = _weft.known(condition)
    if known is not None:
        return a if known else b
    return _weft.select((condition,), (a,), (b,))[0]


def as_int32(i):
    """An index as a number of 32 bits."""
    return i if _weft.code_of(i) == _weft.INT32 else _weft.convert(_weft.INT32, (i,))[0]


def from_end(i, extent):
    """An index that counts from the end if it is negative."""
    known = _weft.known(i)
    if known is not None and known >= 0:
        return i
    return chosen(combined("lt", i, number(0)), combined("add", i, extent), i)


class Range:
    """The indices of one dimension that a slice names: the first, the distance between two, and how many there are."""

    def __init__(self, start, step, size):
        self.start = start
        self.step = step
        self.size = size

    @staticmethod
    def whole(extent):
        """All indices of a dimension."""
        return Range(number(0), number(1), extent)

    @staticmethod
    def of(key, extent):
        """The indices that a slice names, by Python's rules. Errors: CodegenValueError for a step that is known to be 0.

        A step of 0 that only the run knows counts as 1.
        """
        step = number(1) if key.step is None else as_int32(key.step.id)
        if _weft.known(step) == 0:
            raise CodegenValueError("Slice step cannot be zero")
        forward = combined("le", number(0), step)
        lowest = chosen(forward, number(0), number(-1))
        highest = chosen(forward, extent, combined("sub", extent, number(1)))

        def bound(value, default):
            if value is None:
                return default
            i = from_end(as_int32(value.id), extent)
            return combined("max", lowest, combined("min", i, highest))

        start = bound(key.start, chosen(forward, lowest, highest))
        stop = bound(key.stop, chosen(forward, highest, lowest))
        distance = chosen(forward, combined("sub", stop, start), combined("sub", start, stop))
        length = combined("max", _weft.unary(OPS["abs"], (step,))[0], number(1))
        rounded = combined("add", distance, combined("sub", length, number(1)))
        return Range(start, step, combined("max", combined("div", rounded, length), number(0)))

    def at(self, i, wrap):
        """The index in the array of index i."""
        i = as_int32(i)
        i = from_end(i, self.size) if wrap else i
        return combined("add", self.start, combined("mul", i, self.step))

    def part(self, inner):
        """A range of the range."""
        return Range(self.at(inner.start, False), combined("mul", self.step, inner.step), inner.size)


class View:
    """What kernels do with a view: as the module's ArrayRef. `order` names the dimensions of the array that are those of
    the view; the others have one index each.
    """

    is_null = False

    def __init__(self, base, dimensions, order, is_private=False):
        self.base = base
        self.dimensions = dimensions  # a Range or an index for each dimension of the array
        self.order = order
        self.is_private = is_private

    @staticmethod
    def of(ref, keys):
        """The view that indices and slices name; dimensions without a key are whole."""
        if not isinstance(ref, View):
            extents = [ref.shape(k) for k in range(ref.ndim)]
            ref = View(ref, [Range.whole(n) for n in extents], list(range(ref.ndim)))
        made = View(ref.base, list(ref.dimensions), [], ref.is_private)
        for k, place in enumerate(ref.order):
            own = ref.dimensions[place]
            if k >= len(keys):
                made.order.append(place)
            elif isinstance(keys[k], slice):
                made.dimensions[place] = own.part(Range.of(keys[k], own.size))
                made.order.append(place)
            else:
                key = keys[k]
                made.dimensions[place] = own.at(key.id, not key.nonneg and key.scalar.signed)
        return made

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self.order)

    @property
    def dtype(self):
        """The type of an element."""
        return self.base.dtype

    def shape(self, k, code=_weft.INT32):
        """The extent of dimension k."""
        size = self.dimensions[self.order[k]].size
        return size if code == _weft.INT32 else _weft.convert(code, (size,))[0]

    def element(self, indices, wrap=0):
        """The place of an element. Bit k of wrap: index k may be negative."""
        found = list(self.dimensions)
        for k, (place, i) in enumerate(zip(self.order, indices)):
            found[place] = found[place].at(i, wrap >> k & 1)
        return self.base.element(tuple(found), 0)

    def load(self, indices, wrap=0):
        """The scalars of an element."""
        return self.element(indices, wrap).load()

    def store(self, indices, values, wrap=0):
        """Replaces an element."""
        self.element(indices, wrap).store(values)

    def row(self, index, wrap=False):
        """The part of one dimension less at an index of the first."""
        place = self.order[0]
        dimensions = list(self.dimensions)
        dimensions[place] = dimensions[place].at(index, wrap)
        return View(self.base, dimensions, self.order[1:], self.is_private)

    def slice(self, low, high, step):
        """A range of the first dimension: 0 <= low <= high <= extent, step >= 1."""
        place = self.order[0]
        dimensions = list(self.dimensions)
        length = combined("add", combined("sub", high, low), combined("sub", step, number(1)))
        dimensions[place] = dimensions[place].part(Range(low, step, combined("div", length, step)))
        return View(self.base, dimensions, self.order, self.is_private)

    def transpose(self):
        """The dimensions in reverse order."""
        return View(self.base, self.dimensions, self.order[::-1], self.is_private)

    def gradient(self):
        """The gradients of the elements."""
        return View(self.base.gradient(), self.dimensions, self.order, self.is_private)
