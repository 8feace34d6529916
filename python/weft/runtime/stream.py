"""Streams and events."""

import threading
import time

from .. import _weft
from ..absent import tells_what_is_missing
from .device import get_device

local_ = threading.local()


@tells_what_is_missing
class Event:
    """A moment in the work of a stream, to which others can wait."""

    def __init__(self, device=None, enable_timing=False, **_):
        self.device = get_device(device)
        self.enable_timing = enable_timing
        self.native = None
        self.reached = None

    @property
    def is_complete(self):
        """Whether the work before the event is done; True if nothing was recorded."""
        return self.native is None or self.native.done()


@tells_what_is_missing
class Stream:
    """A queue of work on one device, beside others of it."""

    def __init__(self, device=None, priority=0, native=None, **_):
        self.device = get_device(device)
        self.priority = priority
        self.native = self.device.native.create_stream(priority < 0) if native is None else native
        self.event_ = None

    @property
    def cached_event(self):
        """An event of the stream, the same one each time."""
        if self.event_ is None:
            self.event_ = Event(self.device)
        return self.event_

    def record_event(self, event=None, external=False):
        """Records a moment; in a new event if none is given."""
        event = Event(self.device) if event is None else event
        event.native = self.native.record()
        if event.enable_timing:
            event.native.wait()
            event.reached = time.perf_counter()
        return event

    def wait_event(self, event, external=False):
        """Has later work of the stream wait for an event."""
        if event.native is not None:
            self.native.wait(event.native)

    def wait_stream(self, other_stream, event=None, external=False):
        """Has later work of the stream wait for all work of another so far."""
        self.wait_event(other_stream.record_event(event))

    @property
    def is_complete(self):
        """Whether all work of the stream is done."""
        return self.native.record().done()

    @property
    def is_blocking(self):
        """False: no stream waits for another unless it is told to."""
        return False

    @property
    def is_capturing(self):
        """Whether work of this thread is being captured."""
        return _weft.is_capturing()

    def __eq__(self, other):
        return isinstance(other, Stream) and self.native == other.native

    def __hash__(self):
        return hash(self.native)


def streams_of_thread():
    """This thread's chosen streams, by device."""
    if not hasattr(local_, "streams"):
        local_.streams = {}
    return local_.streams


def current_stream(device):
    """The stream that this thread's work on a device goes to."""
    chosen = streams_of_thread().get(device)
    if chosen is not None:
        return chosen
    if device.stream_ is None:
        device.stream_ = Stream(device, native=device.native.stream())
    return device.stream_


def get_stream(device=None):
    """The stream that this thread's work on a device goes to."""
    return current_stream(get_device(device))


def set_stream(stream, device=None, sync=False):
    """Sends this thread's later work on a device to a stream, with `sync` after the earlier work of the present one."""
    device = stream.device if device is None else get_device(device)
    if stream.device != device:
        raise RuntimeError(f"the stream is of device {stream.device}, not {device}")
    if sync:
        stream.wait_stream(current_stream(device))
    scopes = scopes_of_thread()
    before = scopes.pop(device, None)
    if before is not None:
        before.exit()
    scope = _weft.StreamScope(stream.native)
    scope.enter()
    scopes[device] = scope
    streams_of_thread()[device] = stream


def scopes_of_thread():
    """The module's scopes that set_stream() has opened, by device."""
    if not hasattr(local_, "scopes"):
        local_.scopes = {}
    return local_.scopes


def wait_stream(other_stream, event=None, external=False):
    """Has the current stream of the other's device wait for all work of the other so far."""
    current_stream(other_stream.device).wait_stream(other_stream, event, external)


def record_event(event=None, external=False):
    """Records a moment of the current stream."""
    device = event.device if event is not None else get_device()
    return current_stream(device).record_event(event, external)


def wait_event(event, external=False):
    """Has the current stream wait for an event."""
    current_stream(event.device).wait_event(event, external)


def synchronize_stream(stream_or_device=None):
    """Waits for all work of a stream."""
    stream = stream_or_device if isinstance(stream_or_device, Stream) else get_stream(stream_or_device)
    stream.native.synchronize()


def synchronize_event(event):
    """Waits for an event."""
    if event.native is not None:
        event.native.wait()


def get_event_elapsed_time(start_event, end_event, synchronize=True):
    """The milliseconds between two events that were made with ``enable_timing``.

    Errors: RuntimeError for events that have no times.
    """
    if start_event.reached is None or end_event.reached is None:
        raise RuntimeError("both events are recorded, and made with enable_timing=True")
    return (end_event.reached - start_event.reached) * 1.0e3


class ScopedStream:
    r"""A `with` block in which this thread's work goes to a stream.

    \param sync_enter  has the stream wait for the one before
    \param sync_exit  has the one before wait for the stream
    """

    def __init__(self, stream, sync_enter=True, sync_exit=False):
        self.stream = stream
        self.device = None if stream is None else stream.device
        self.sync_enter = sync_enter
        self.sync_exit = sync_exit
        self.saved_stream = None
        self.device_before = None

    def __enter__(self):
        if self.stream is None:
            return None
        self.device_before = _weft.current_device()
        self.device.make_current()
        self.saved_stream = current_stream(self.device)
        set_stream(self.stream, self.device, self.sync_enter)
        return self.stream

    def __exit__(self, kind, error, trace):
        if self.stream is None:
            return
        set_stream(self.saved_stream, self.device, self.sync_exit)
        _weft.set_current_device(self.device_before)
