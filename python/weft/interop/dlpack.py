"""Arrays through DLPack, which most libraries of arrays speak."""

from .. import _weft
from ..runtime.device import device_from
from ..types.annotations import element_type


def from_dlpack(source, dtype=None, device=None, copy=None):
    r"""The array on the memory of another library's array, or of a capsule that its ``to_dlpack()`` made.

    \param dtype  the element type: of vectors and matrices too, whose components are the last dimensions of the source
    \param device  the array's device; left out, one that has the memory: for the host's the current one unless that is a
        GPU, and then the processor
    \param copy  True copies the elements; otherwise memory is shared, or refused
    Errors: TypeError for element types and dimensions that make no such array, BufferError for read-only memory that is
    not copied, RuntimeError for memory that the device cannot use.
    """
    native = None if dtype is None else element_type(dtype).native
    return _weft.from_dlpack(source, native, device_from(device), bool(copy))


def to_dlpack(wp_array):
    """A capsule with the array's memory, which other libraries' ``from_dlpack()`` take. It is taken once.

    Nothing waits: the caller orders its work and the other library's.
    """
    return wp_array.__dlpack__()
