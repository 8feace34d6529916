"""Recorded launches: ``wp.launch(..., record_cmd=True)`` gives a Launch, whose parameters can be changed."""

from .. import _weft
from ..types.annotations import ArrayType


class Launch:
    """A launch that can be made again, with other arguments and dimensions."""

    def __init__(self, kernel, device=None, dim=None, params=None, stream=None, **_):
        self.kernel = kernel
        self.device = device
        self.dim = dim
        self.params = list(params) if params is not None else [default_of(kind) for _, kind in kernel.parameters]
        self.stream = stream

    def set_dim(self, dim):
        """Changes the dimensions of the launch."""
        self.dim = dim

    def set_param_at_index(self, index, value, adjoint=False):
        """Changes an argument by its number. Errors: IndexError out of range."""
        self.params[index] = value

    def set_param_by_name(self, name, value, adjoint=False):
        """Changes an argument by the parameter's name. Errors: ValueError for a name that the kernel lacks."""
        names = [n for n, _ in self.kernel.parameters]
        if name not in names:
            raise ValueError(f"kernel {self.kernel.key} has no parameter {name!r}")
        self.params[names.index(name)] = value

    set_param_at_index_from_ctype = set_param_at_index
    set_param_by_name_from_ctype = set_param_by_name

    def set_params(self, values):
        """Changes the first arguments."""
        values = list(values)
        if len(values) > len(self.params):
            raise RuntimeError(f"kernel {self.kernel.key} has {len(self.params)} parameters, not {len(values)}")
        self.params[: len(values)] = values

    def launch(self, stream=None):
        """Makes the launch, on a stream if one is given."""
        target = self.stream if stream is None else stream
        if target is not None:
            _weft.launch(self.kernel, self.dim, self.params, stream=target)
        elif self.device is not None:
            _weft.launch(self.kernel, self.dim, self.params, device=self.device)
        else:
            _weft.launch(self.kernel, self.dim, self.params)


def default_of(kind):
    """The argument for a parameter that was not set: zero, or no array."""
    return None if isinstance(kind, ArrayType) else kind()


_weft.set_recorder(lambda kernel, dim, args, device, stream: Launch(kernel, device, dim, args, stream))
