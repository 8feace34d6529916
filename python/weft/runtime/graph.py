"""Graphs: work that is captured once and launched many times."""

import threading

from .. import _weft
from .device import get_device
from .stream import Stream

local_ = threading.local()


class Graph:
    """Captured work. Launch it with capture_launch()."""

    def __init__(self, native, device):
        self.native = native
        self.device = device

    def __len__(self):
        return self.native.size


def captures():
    """The captures of this thread that are open."""
    if not hasattr(local_, "captures"):
        local_.captures = []
    return local_.captures


def capture_begin(device=None, stream=None, force_module_load=None, external=False, **_):
    """Collects this thread's later work on a device in a graph, until capture_end(). Nothing runs meanwhile.

    Errors: RuntimeError if a capture is open.
    """
    if captures():
        raise RuntimeError("Graph capture already in progress")
    target = stream.device if isinstance(stream, Stream) else get_device(device)
    capture = _weft.Capture(target.native)
    capture.begin()
    captures().append((capture, target))


def capture_end(device=None, stream=None):
    """Ends the capture. Returns its graph. Errors: RuntimeError if none is open."""
    if not captures():
        raise RuntimeError("Graph capture is not active on this stream")
    capture, target = captures().pop()
    return Graph(capture.end(), target)


def capture_launch(graph, stream=None):
    """Launches a graph, on a stream if one is given."""
    if stream is not None and stream.device != graph.device:
        raise RuntimeError(f"Cannot launch graph from device {graph.device} on stream from device {stream.device}")
    graph.native.launch(None if stream is None else stream.native)


class ScopedCapture:
    """A `with` block whose work becomes the graph ``capture.graph``. If the block raises, nothing is kept."""

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
        capture, _ = captures().pop()
        capture.abandon()
