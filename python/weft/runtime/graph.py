"""Graphs: work that is captured once and launched many times."""

import threading

from .. import _weft
from ..absent import tells_what_is_missing
from ..language.builtin import Builtin
from ..types.scalars import int32
from .array import array
from .creation import zeros
from .device import get_device
from .kernel import kernel
from .stream import Stream

where = Builtin("where")

local_ = threading.local()


@tells_what_is_missing
class Graph:
    """Captured work. Launch it with capture_launch()."""

    def __init__(self, native, device):
        self.native = native
        self.device = device

    def __len__(self):
        return self.native.size


class OpenCapture:
    """A capture that has begun: the module's, its device, and the tapes that went back in it through what it holds."""

    def __init__(self, native, device):
        self.native = native
        self.device = device
        self.tapes = []


def captures():
    """The captures of this thread that are open."""
    if not hasattr(local_, "captures"):
        local_.captures = []
    return local_.captures


def open_capture():
    """This thread's innermost capture; None if there is none."""
    return captures()[-1] if captures() else None


def capture_begin(device=None, stream=None, force_module_load=None, external=False, **_):
    """Collects this thread's later work on a device in a graph, until capture_end(). Nothing runs meanwhile.

    Errors: RuntimeError if a capture is open.
    """
    if captures():
        raise RuntimeError("Graph capture already in progress")
    target = stream.device if isinstance(stream, Stream) else get_device(device)
    capture = _weft.Capture(target.native)
    capture.begin()
    captures().append(OpenCapture(capture, target))


def capture_end(device=None, stream=None):
    """Ends the capture. Returns its graph. Errors: RuntimeError if none is open."""
    if not captures():
        raise RuntimeError("Graph capture is not active on this stream")
    capture = captures().pop()
    graph = Graph(capture.native.end(), capture.device)
    for tape in dict.fromkeys(capture.tapes):
        tape.leave_to_graph()
    return graph


def capture_launch(graph, stream=None):
    """Launches a graph, on a stream if one is given."""
    if stream is not None and stream.device != graph.device:
        raise RuntimeError(f"Cannot launch graph from device {graph.device} on stream from device {stream.device}")
    graph.native.launch(None if stream is None else stream.native)


class ScopedCapture:
    """A `with` block whose work becomes the graph ``capture.graph``. If the block raises, there is no graph."""

    def __init__(self, device=None, stream=None, force_module_load=None, external=False, **_):
        self.device = device
        self.stream = stream
        self.graph = None
        self.active = False

    def __enter__(self):
        capture_begin(self.device, self.stream)
        self.active = True
        return self

    def __exit__(self, kind, error, trace):
        if not self.active:
            return
        self.active = False
        if kind is None:
            self.graph = capture_end(self.device, self.stream)
            return
        captures().pop().native.abandon()


def is_conditional_graph_supported():
    """False: graphs hold conditions, and loops whose most rounds are given; programs that ask need loops without."""
    return False


def work_of(body, keywords):
    """A function that does what a body stands for: a function with its arguments, or a graph, whose work is repeated."""
    if isinstance(body, Graph):
        if _weft.is_capturing():
            raise RuntimeError("a graph inside a captured condition is given as the function that was captured")
        return lambda: body.native.launch(None)
    if not callable(body):
        raise TypeError(f"the body of a condition is a function or a graph, not a {type(body).__name__}")
    return lambda: body(**keywords)


def flag_of(condition):
    """The condition as the module takes it. Errors: RuntimeError for what is no array with one int32."""
    if not isinstance(condition, _weft.Array) or condition.size != 1 or condition.dtype is not int32:
        raise RuntimeError("the condition is an array with a single int32 element")
    return condition if condition.ndim == 1 else condition.flatten()


def capture_if(condition, on_true=None, on_false=None, stream=None, **keywords):
    r"""Does work if a number on the device is not zero, and other work if it is. While a graph is captured the question is
    part of the graph; else it is asked now.

    \param condition  an array with one int32
    \param on_true, on_false  functions, which are called with `keywords`, or, outside a capture, graphs
    Errors: RuntimeError for another condition.
    """
    flag = flag_of(condition)
    if on_true is None and on_false is None:
        raise RuntimeError("capture_if() needs work for at least one of the two cases")
    if not _weft.is_capturing():
        chosen = on_true if int(flag.numpy()[0]) else on_false
        if chosen is not None:
            work_of(chosen, keywords)()
        return
    if on_false is not None:
        # Asked before the first work, which may change the number.
        opposite = zeros(1, dtype=int32, device=condition.device)
        _weft.launch(negate, 1, [flag, opposite], device=condition.device)
    if on_true is not None:
        _weft.graph_if(flag, work_of(on_true, keywords))
    if on_false is not None:
        _weft.graph_if(opposite, work_of(on_false, keywords))


def capture_while(condition, while_body, stream=None, limit=None, **keywords):
    r"""Repeats work while a number on the device is not zero. While a graph is captured the loop is part of the graph; else
    it runs now, and each round waits for the number.

    \param condition  an array with one int32, which the work changes
    \param while_body  a function, which is called with `keywords`, or, outside a capture, a graph
    \param limit  the most rounds, which a capture must know: the graph has room for so many
    Errors: RuntimeError for another condition, and in a capture without a limit.
    """
    flag = flag_of(condition)
    work = work_of(while_body, keywords)
    if _weft.is_capturing():
        if limit is None:
            raise RuntimeError("capture_while() in a capture needs limit=, the most rounds that the loop can have")
        _weft.graph_while(flag, limit, work)
        return
    rounds = 0
    while int(flag.numpy()[0]) and (limit is None or rounds < limit):
        work()
        rounds += 1


@kernel
def negate(flag: array(dtype=int), opposite: array(dtype=int)):
    """1 for 0, and 0 for all else."""
    opposite[0] = where(flag[0] == 0, 1, 0)
