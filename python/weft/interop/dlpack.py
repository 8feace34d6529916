"""Arrays through DLPack, which most libraries of arrays speak."""

from .. import _weft
from ..types.annotations import element_type


def from_dlpack(source, dtype=None):
    r"""The array on the memory of another library's array, or of a capsule that its ``to_dlpack()`` made.

    \param dtype  the element type: of vectors and matrices too, whose components are the last dimensions of the source
    Errors: TypeError for element types and dimensions that make no such array, BufferError for read-only memory,
    RuntimeError for memory that no device of the package can use.
    """
    return _weft.from_dlpack(source, None if dtype is None else element_type(dtype).native)


def to_dlpack(wp_array):
    """A capsule with the array's memory, which other libraries' ``from_dlpack()`` take. It is taken once.

    Nothing waits: the caller orders its work and the other library's.
    """
    return wp_array.__dlpack__()
