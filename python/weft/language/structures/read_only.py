"""Arrays of structures that a kernel finds by their ids, in kernels: they are read, and not written."""

from ..errors import CodegenError


def refuse(*args):
    """Throws the error of a store."""
    raise CodegenError(
        "the arrays of a mesh that is found by its id are read-only: give the kernel the array itself as an argument"
    )


class ReadOnlyAddress:
    """What kernels do with an element of such an array: as the module's Address."""

    def __init__(self, address):
        self.address = address
        self.dtype = address.dtype
        self.load = address.load

    def component(self, k):
        """Scalar k of the element."""
        return ReadOnlyAddress(self.address.component(k))

    def at(self, index, n, step):
        """Part `index` of n parts of the element."""
        return ReadOnlyAddress(self.address.at(index, n, step))

    store = update = atomic = refuse


class ReadOnlyRef:
    """What kernels do with such an array: as the module's ArrayRef. It does not cross the ends of calls."""

    def __init__(self, ref):
        self.ref = ref
        self.ndim = ref.ndim
        self.dtype = ref.dtype
        self.is_null = ref.is_null
        self.shape = ref.shape
        self.load = ref.load

    def element(self, indices, wrap=0):
        """The place of an element."""
        return ReadOnlyAddress(self.ref.element(indices, wrap))

    def slice(self, low, high, step):
        """A range of the indices."""
        return ReadOnlyRef(self.ref.slice(low, high, step))

    store = row = transpose = gradient = refuse
