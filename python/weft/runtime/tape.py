"""Tapes: gradients of what kernels compute."""

import sys

from .. import _weft
from ..types.annotations import ArrayType
from ..types.structs import StructInstance
from .array import clone, from_data
from .device import get_device
from .drawing import draw
from .graph import open_capture


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
        """The beginnings of named parts, as (number of launches before, name, metadata), and their ends, as (number, None,
        None)."""
        self.launches_ = []
        self.depth = 0  # of `with` blocks that are open
        self.is_empty = True
        self.capture = None  # in which all of the record was made
        self.is_captured = False  # the record went into a graph

    def __enter__(self):
        self.native.begin()
        self.note_capture()
        self.depth += 1
        return self

    def note_capture(self):
        """Notes the capture in which more of the record begins."""
        capture = open_capture()
        self.capture = capture if self.is_empty or self.capture is capture else None
        self.is_empty = self.is_captured = False

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
        if self.is_captured:
            raise RuntimeError(
                "what the tape recorded is part of a graph, with the way back: launch the graph, or record again"
            )
        if self.capture is not None and self.capture is open_capture():
            self.capture.tapes.append(self)
        # Inside its own `with` block the tape does not record the way back.
        for _ in range(self.depth):
            self.native.end()
        try:
            if loss is None and not grads:
                seeds = self.present_seeds()
            if seeds or loss is not None or grads:
                self.native.backward(seeds)
        finally:
            for _ in range(self.depth):
                self.native.begin()

    def present_seeds(self):
        """The arrays that recorded work computes, with what their gradients hold, which is taken out of these: they hold
        what remains at the beginning of the record. Gradients of other arrays stay, and get more.
        """
        seeds = []
        for array in self.native.arrays():
            gradient = array.present_gradient()
            if gradient is not None and self.native.computes(array):
                seeds.append((array, clone(gradient)))
                gradient.zero_()  # now, because others may be views of it
        return seeds

    @property
    def gradients(self):
        """A mapping from recorded arrays, and structs of arrays, to their gradients."""
        return Gradients(self)

    @property
    def adjoints(self):
        """The same as ``gradients``."""
        return self.gradients

    def get_adjoint(self, a):
        """The gradient of an argument of a launch: of an array with a gradient that gradient, which zero() sets to zero from
        now on; of a struct a struct with the gradients of its arrays; None of all others.
        """
        if isinstance(a, StructInstance):
            made = type(a)()
            for name, kind in type(a)._wp_fields_.items():
                value = getattr(a, name)
                is_part = isinstance(kind, ArrayType) or isinstance(value, StructInstance)
                setattr(made, name, self.get_adjoint(value) if is_part else value)
            return made
        if not isinstance(a, _weft.Array) or not a.requires_grad:
            return None
        self.native.note(a)
        return a.grad

    def zero(self):
        """Sets the gradients of all recorded arrays to zero."""
        self.native.zero()
        for array in self.native.arrays():
            gradient = array.present_gradient()
            if gradient is not None:
                gradient.zero_()

    def leave_to_graph(self):
        """Forgets a record that a capture holds together with the way back, but not its arrays: what is launched and captured
        later may change these, without a thought for a way back that only the graph goes.
        """
        launches, arrays = self.launches, self.native.arrays()
        self.native.reset()
        for array in arrays:
            self.native.note(array)
        self.launches_, self.is_captured, self.capture = launches, True, None

    def reset(self):
        """Forgets the record, and sets the gradients of its arrays to zero."""
        self.zero()
        self.native.reset()
        self.is_empty, self.is_captured, self.capture = True, False, None
        self.launches_.clear()
        self.scopes.clear()
        self.loss = None

    def record_func(self, backward, arrays):
        """Lets a function of Python stand for work that the tape does not see: on the way back it is called in its
        place, and adds to the gradients of `arrays`. It may be called outside a `with` block, too.
        """
        self.record_backward(backward, list(arrays))
        self.launches.append(backward)

    def record_backward(self, backward, arrays):
        """Records a function of the way back, also where the tape does not record."""
        self.native.begin()
        self.note_capture()
        try:
            self.native.record_func(backward, arrays)
        finally:
            self.native.end()

    def record_launch(self, kernel, dim, max_blocks, inputs, outputs, device, block_dim=0, metadata=None):
        """Lets the way back go through a launch that was made, or is made, outside the tape.

        Cost: on the way back the launch runs again, on copies of its arrays.
        """
        inputs, outputs = list(inputs), list(outputs)

        def backward():
            copies = {}
            again = [copied(a, copies) for a in [*inputs, *outputs]]
            tape = Tape()
            with tape:
                _weft.launch(kernel, dim, again[: len(inputs)], again[len(inputs) :], device=device)
            pairs = [(a, copy) for a, copy in copies.values() if a.requires_grad]
            seeds = {copy: a.grad for a, copy in pairs if tape.native.computes(copy)}
            if seeds:
                tape.backward(grads=seeds)
            for a, copy in pairs:
                if copy in seeds:
                    a.grad.copy_from(copy.grad)
                else:
                    _weft.accumulate(a.grad, copy.grad)

        self.record_backward(backward, [a for a in arrays_of([*inputs, *outputs]) if a.requires_grad])
        self.launches.append([kernel, dim, max_blocks, inputs, outputs, device, block_dim, dict(metadata or {})])

    @property
    def launches(self):
        """The recorded launches, as lists of kernel, dim, max_blocks, inputs, outputs, device, block_dim and metadata, and the
        functions of record_func(), in their order. Copies are not among them. The list tells what was recorded: the way
        back is the same if a program changes it.
        """
        self.launches_.extend(map(described, self.native.take_launches()))
        return self.launches_

    def record_scope_begin(self, scope_name, metadata=None):
        """Begins a named part of the record, for visualize()."""
        self.scopes.append((len(self.launches), scope_name, dict(metadata or {})))

    def record_scope_end(self, remove_scope_if_empty=True):
        """Ends the part that began last; it is forgotten if nothing was launched in it.

        Errors: RuntimeError if none is open.
        """
        if sum(-1 if name is None else 1 for _, name, _ in self.scopes) == 0:
            raise RuntimeError("ended tape scope, but scope not present")
        count = len(self.launches)
        if remove_scope_if_empty and self.scopes[-1][0] == count and self.scopes[-1][1] is not None:
            self.scopes.pop()
        else:
            self.scopes.append((count, None, None))

    def visualize(
        self,
        filename=None,
        simplify_graph=True,
        hide_readonly_arrays=False,
        array_labels=None,
        choose_longest_node_name=True,
        ignore_graph_scopes=False,
        track_inputs=None,
        track_outputs=None,
        track_input_names=None,
        track_output_names=None,
        graph_direction="LR",
    ):
        r"""The recorded launches and their arrays as a graph in the language of Graphviz: ``dot -Tsvg tape.dot``. What a
        launch reads and writes is told by its `inputs` and `outputs`.

        \param filename  a file to which the text is written
        \param simplify_graph  shows launches that repeat each other once, with their number
        \param hide_readonly_arrays  leaves out arrays that are no launch's output
        \param array_labels  a dict of array to its label; others have the names of parameters, the longest one or the last
        \param ignore_graph_scopes  leaves out the parts of record_scope_begin()
        \param track_inputs, track_outputs  arrays that are shown in any case, with the names of the lists beside them
        \param graph_direction  "LR": from left to right; "TB": downwards
        """
        options = {
            "simplify": simplify_graph,
            "hide_read_only": hide_readonly_arrays,
            "labels": array_labels or {},
            "longest_names": choose_longest_node_name,
            "ignore_scopes": ignore_graph_scopes,
        }
        tracked = [
            (array, names[k] if k < len(names) else f"{what}_{k}")
            for what, arrays, names in (
                ("input", track_inputs or [], track_input_names or []),
                ("output", track_outputs or [], track_output_names or []),
            )
            for k, array in enumerate(arrays)
        ]
        text = draw(self.launches, self.scopes, tracked, graph_direction, **options)
        if filename is not None:
            with open(filename, "w") as file:
                file.write(text)
        return text


def described(launch):
    """A launch as Tape.launches lists it."""
    kernel, dim, device, block_dim, max_blocks, code, place, inputs, outputs = launch
    arrays = arrays_of([*inputs, *outputs])
    if device is None and arrays:
        device = arrays[0].device
    metadata = {}
    if code is not None:
        metadata["caller"] = {"file": code.co_filename, "lineno": line_of(code, place), "func": code.co_name}
    block_dim = 256 if block_dim is None else block_dim
    return [kernel, dim, max_blocks or 0, list(inputs), list(outputs), get_device(device), block_dim, metadata]


def line_of(code, place):
    """The line of an instruction, which is given as such before Python 3.11."""
    if sys.version_info < (3, 11):
        return place
    return next((line for begin, end, line in code.co_lines() if begin <= place < end), code.co_firstlineno)


def arrays_of(arguments):
    """The arrays among arguments, and in structs among them."""
    found = []
    for argument in arguments:
        if isinstance(argument, _weft.Array):
            found.append(argument)
        elif isinstance(argument, StructInstance):
            found += arrays_of(getattr(argument, name) for name in type(argument)._wp_fields_)
    return found


def copied(argument, copies):
    """An argument with copies of its arrays, which `copies` collects as pairs of an array and its copy, by identity."""
    if isinstance(argument, StructInstance):
        made = type(argument)()
        for name in type(argument)._wp_fields_:
            setattr(made, name, copied(getattr(argument, name), copies))
        return made
    if not isinstance(argument, _weft.Array):
        return argument
    if id(argument) not in copies:
        copies[id(argument)] = (argument, clone(argument))
    return copies[id(argument)][1]


class Gradients:
    """The gradients of a tape's arrays, looked up by array."""

    def __init__(self, tape):
        self.tape = tape

    def __getitem__(self, array):
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
