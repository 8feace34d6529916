"""Tapes: gradients of what kernels compute."""

from .. import _weft
from .array import clone, from_data


class Tape:
    """Records launches and copies, and computes gradients by going back through them.

    ``with tape:`` records; ``tape.backward(loss)`` adds the gradients of the loss to ``grad`` of the arrays that were made
    with ``requires_grad=True``. Kernels may overwrite what earlier ones read: the tape keeps what it needs.
    Cost: about a microsecond for each recorded launch.
    """

    def __init__(self, scratch_bytes=256 << 20, loop_slots=8, deterministic=False):
        self.native = _weft.Tape(scratch_bytes, loop_slots, deterministic)
        self.const_gradients = set()
        self.loss = None
        self.scopes = []
        self.depth = 0  # of `with` blocks that are open

    def __enter__(self):
        self.native.begin()
        self.depth += 1
        return self

    def __exit__(self, kind, error, trace):
        self.depth -= 1
        self.native.end()

    def backward(self, loss=None, grads=None, retain_graph=True):
        r"""Goes back from a loss (an array of one element), from gradients of outputs, or from what outputs' ``grad`` holds.

        \param grads  a dict of array to the gradient of it: one row of a Jacobian
        Errors: RuntimeError for a loss of several elements, or one that nothing recorded computes.
        """
        seeds = []
        if loss is not None:
            if not isinstance(loss, _weft.Array):
                raise TypeError(f"the loss is an array of one element, not {type(loss).__name__}")
            if loss.size > 1 or loss.dtype.native.kind != "scalar":
                raise RuntimeError("Can only return gradients for scalar loss functions.")
            if not loss.requires_grad:
                raise RuntimeError(
                    "Scalar loss arrays should have requires_grad=True set before calling Tape.backward()"
                )
            seeds.append((loss, _weft.full(loss.shape, 1.0, loss.element_dtype, loss.native_device)))
            self.loss = loss
        for array, gradient in (grads or {}).items():
            if not isinstance(gradient, _weft.Array):
                gradient = from_data(gradient, array.dtype, array.shape, None, array.native_device, True)
            seeds.append((array, gradient))
        # Inside its own `with` block the tape does not record the way back.
        for _ in range(self.depth):
            self.native.end()
        try:
            if loss is None and not grads:
                self.backward_from_gradients()
            else:
                self.native.backward(seeds)
        finally:
            for _ in range(self.depth):
                self.native.begin()

    def backward_from_gradients(self):
        """Goes back from what the gradients of computed arrays hold, one array after the other: the sums are the same."""
        found = [(array, array.present_gradient()) for array in self.native.arrays()]
        held = [(array, clone(gradient)) for array, gradient in found if gradient is not None]
        for array, gradient in held:
            if not any(gradient.contiguous().bytes()):
                continue  # zeros
            try:
                self.native.backward([(array, gradient)])
            except _weft.Error as error:
                if "nothing on the tape computes" not in str(error):
                    raise  # an input, whose gradient stays and gets more

    @property
    def gradients(self):
        """A mapping from recorded arrays, and structs of arrays, to their gradients."""
        return Gradients(self)

    @property
    def adjoints(self):
        """The same as ``gradients``."""
        return self.gradients

    def zero(self):
        """Sets the gradients of all recorded arrays to zero."""
        self.native.zero()
        for array in self.native.arrays():
            gradient = array.present_gradient()
            if gradient is not None:
                gradient.zero_()

    def reset(self):
        """Forgets the record, and sets the gradients of its arrays to zero."""
        self.zero()
        self.native.reset()
        self.loss = None

    def record_func(self, backward, arrays):
        """Lets a function of Python stand for work that the tape does not see: on the way back it is called in its
        place, and adds to the gradients of `arrays`.
        """
        self.native.record_func(backward, list(arrays))

    @property
    def launches(self):
        """The numbers of the recorded operations: as many as there are."""
        return range(self.native.size)

    def record_scope_begin(self, scope_name, metadata=None):
        """Begins a named part of the record, for people who read it."""
        self.scopes.append((scope_name, self.native.size))

    def record_scope_end(self):
        """Ends the part that began last. Errors: RuntimeError if none is open."""
        if not self.scopes:
            raise RuntimeError("ended tape scope, but scope not present")
        self.scopes.pop()


class Gradients:
    """The gradients of a tape's arrays, looked up by array."""

    def __init__(self, tape):
        self.tape = tape

    def __getitem__(self, array):
        from ..types.structs import StructInstance

        if isinstance(array, StructInstance):
            made = type(array)()
            for name in type(array)._wp_fields_:
                value = getattr(array, name)
                if isinstance(value, _weft.Array) and value in self:
                    setattr(made, name, self[value])
            return made
        if array.grad is not None:
            return array.grad
        return self.tape.native.gradient(array)

    def get(self, array, default=None):
        """The gradient of an array, or a default."""
        return self[array] if array in self else default

    def __contains__(self, array):
        return array.has_grad

    def __len__(self):
        return len(self.tape.native.arrays())

    def __iter__(self):
        return iter(self.tape.native.arrays())

    def keys(self):
        """The recorded arrays with gradients."""
        return list(self.tape.native.arrays())

    def values(self):
        """The gradients."""
        return [self[array] for array in self]

    def items(self):
        """Pairs of array and gradient."""
        return [(array, self[array]) for array in self]
