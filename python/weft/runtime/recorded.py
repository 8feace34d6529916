"""Recorded launches: ``wp.launch(..., record_cmd=True)`` gives a Launch, whose parameters can be changed."""

from .. import _weft
from ..absent import tells_what_is_missing
from ..types.annotations import ArrayType
from ..types.composites import Composite
from ..types.structs import zero_of
from .conversion import convert_value


@tells_what_is_missing
class Launch:
    """A launch that can be made again, with other arguments and dimensions."""

    max_blocks = 0
    block_dim = 256
    """Kept for programs that set them: the device groups threads as it likes."""

    def __init__(self, kernel, device=None, dim=None, params=None, stream=None, adjoint=False, adj_params=None, **_):
        self.kernel = kernel
        self.device = device
        self.dim = dim
        self.params = list(params) if params is not None else [default_of(kind) for _, kind in kernel.parameters]
        self.stream = stream
        self.adjoint = adjoint
        self.adj_params = list(adj_params or [])
        self.adj_params += [None] * (len(self.params) - len(self.adj_params))

    def set_dim(self, dim):
        """Changes the dimensions of the launch."""
        self.dim = dim

    def set_param_at_index(self, index, value, adjoint=False):
        """Changes an argument by its number, or, with `adjoint`, the array for its gradient, of an adjoint launch.

        Errors: IndexError out of range; RuntimeError for a gradient of a launch that is no adjoint.
        """
        self.list_of(adjoint)[index] = value if adjoint else self.taken(index, value)

    def taken(self, index, value):
        """An argument, as a value of the parameter's type where that has components. Errors: those of convert_value()."""
        name, kind = self.kernel.parameters[index]
        if isinstance(kind, type) and issubclass(kind, Composite) and not isinstance(value, kind):
            return convert_value(self.kernel, name, kind, value)
        return value

    def list_of(self, adjoint):
        """The arguments, or the arrays for their gradients."""
        if adjoint and not self.adjoint:
            raise RuntimeError("the launch is no adjoint: it takes no gradients")
        return self.adj_params if adjoint else self.params

    def set_param_by_name(self, name, value, adjoint=False):
        """Changes an argument by the parameter's name. Errors: ValueError for a name that the kernel lacks; also those of
        set_param_at_index().
        """
        names = [n for n, _ in self.kernel.parameters]
        if name not in names:
            raise ValueError(f"kernel {self.kernel.key} has no parameter {name!r}")
        self.set_param_at_index(names.index(name), value, adjoint)

    set_param_at_index_from_ctype = set_param_at_index
    set_param_by_name_from_ctype = set_param_by_name

    def set_params(self, values):
        """Changes the first arguments."""
        values = list(values)
        if len(values) > len(self.params):
            raise RuntimeError(f"kernel {self.kernel.key} has {len(self.params)} parameters, not {len(values)}")
        self.params[: len(values)] = [self.taken(k, value) for k, value in enumerate(values)]

    set_params_from_ctypes = set_params

    def launch(self, stream=None):
        """Makes the launch, on a stream if one is given."""
        target = self.stream if stream is None else stream
        place = {} if self.device is None else {"device": self.device}
        place = place if target is None else {"stream": target}
        if self.adjoint:
            place.update(adjoint=True, adj_inputs=self.adj_params)
        _weft.launch(self.kernel, self.dim, self.params, **place)


def default_of(kind):
    """The argument for a parameter that was not set: zero, or no array."""
    return None if isinstance(kind, ArrayType) else zero_of(kind)


def record(kernel, dim, args, device, stream, adjoint=False, inputs=0, adj_inputs=None, adj_outputs=None):
    """The Launch of a call of launch() with ``record_cmd=True``."""
    gradients = list(adj_inputs or [])
    gradients += [None] * (inputs - len(gradients))
    return Launch(kernel, device, dim, args, stream, adjoint, [*gradients, *(adj_outputs or [])])


_weft.set_recorder(record)
