"""Profiles: how long scopes of the program take, and how long devices spend on each kernel."""

import sys
from typing import NamedTuple

from .. import _weft
from . import device as devices
from .module import modules_


class KernelTime(NamedTuple):
    """All launches of one kernel on one device, or of its adjoint ("name (adjoint)"); or the device's copies ("copy") or
    fills ("fill"); or launches of graphs that are measured as a whole. Times are in seconds.
    """

    name: str
    device: str
    count: int
    total: float
    min: float
    max: float
    share: float
    """Of everything that was measured on the device; 1 is all of it."""


class ScopeTime(NamedTuple):
    """All scopes of one name within scopes of the same names. Times are in seconds."""

    path: str
    """Names from the outermost scope on: "step/forces"."""
    depth: int
    count: int
    host: float
    """From beginning to end."""
    device: float
    """Of the work that was launched in it, other scopes inside it included."""


class Operation(NamedTuple):
    """One operation of a device. Moments are seconds from the profiler's beginning."""

    name: str
    device: str
    stream: int
    scope: int
    """The scope that launched it, an index of `timers`; -1 for none."""
    launched: float
    begin: float
    end: float


class Span(NamedTuple):
    """One scope. Moments are seconds from the profiler's beginning."""

    name: str
    parent: int
    """The scope around it, an index of `timers`; -1 for none."""
    thread: int
    begin: float
    end: float


class Profiler:
    r"""A `with` block in which all work of some devices is measured, on all streams, and all scopes: Timer, ScopedTimer.

    After the block the profiler has `kernels` (KernelTime, the one that took longest first), `scopes` (ScopeTime),
    `operations`, `timers` and `seconds`; table() shows the first two, and save_trace() writes all of it for
    chrome://tracing and ui.perfetto.dev. Each measured operation runs by itself, so that overlap does not show.

    \param devices  one device or several; by default all that were used so far, and the current one
    \param whole_graphs  measures each launch of a graph as one operation: its true time, but not its share by kernel
    Errors: Error while another profiler measures, and for a device without a clock; RuntimeError for results before the
    end of the block.
    """

    def __init__(self, devices=None, whole_graphs=False):
        self.devices = devices_of(devices)
        self.whole_graphs = whole_graphs
        self.native = None
        self.profile_ = None

    def __enter__(self):
        self.native = _weft.Profiler([d.native for d in self.devices], self.whole_graphs)
        return self

    def __exit__(self, kind, error, trace):
        native, self.native = self.native, None
        self.profile_ = native.stop()

    @property
    def profile(self):
        """The library's measurements. Errors: RuntimeError before the end of the block."""
        if self.profile_ is None:
            raise RuntimeError("a profiler has results after its `with` block")
        return self.profile_

    @property
    def kernels(self):
        """A KernelTime for each kernel on each device."""
        return [KernelTime(*row) for row in self.profile.kernels]

    @property
    def scopes(self):
        """A ScopeTime for each path of scopes, each before those inside it."""
        return [ScopeTime(*row) for row in self.profile.scopes]

    @property
    def operations(self):
        """Every Operation, stream by stream, in order."""
        return [Operation(*row) for row in self.profile.operations]

    @property
    def timers(self):
        """Every Span, in the order in which they began."""
        return [Span(*row) for row in self.profile.timers]

    @property
    def seconds(self):
        """The time from the profiler's beginning to its end."""
        return self.profile.seconds

    def table(self):
        """The kernels and the scopes as a text in columns."""
        return self.profile.table()

    def trace(self):
        """Everything in the Trace Event Format, as a text."""
        return self.profile.trace()

    def save_trace(self, path):
        """Writes trace() to a file, and makes folders that do not exist. Errors: Error if it cannot be written."""
        self.profile.save_trace(str(path))


class Timer:
    """A `with` block with a name: a scope of a profile. Without a Profiler it does next to nothing."""

    def __init__(self, name):
        self.native = _weft.Timer(str(name))

    def __enter__(self):
        self.native.enter()
        return self

    def __exit__(self, kind, error, trace):
        self.native.exit()


def devices_of(given):
    """The devices of an argument: one, several, or None for those that were used so far and the current one."""
    if given is None:
        return list(dict.fromkeys([*devices.devices_.values(), devices.get_device()]))
    if isinstance(given, (list, tuple)):
        return [devices.get_device(d) for d in given]
    return [devices.get_device(given)]


# By single activities, as Warp has them

TIMING_KERNEL = 1
"""Launches of the program's kernels."""
TIMING_KERNEL_BUILTIN = 2
"""Launches of the library's kernels."""
TIMING_MEMCPY = 4
"""Copies on a device."""
TIMING_MEMSET = 8
"""Fills."""
TIMING_GRAPH = 16
"""Launches of graphs, each as a whole; without it, what they launch is measured one by one."""
TIMING_ALL = 0xFFFFFFFF
"""All of them."""


class TimingResult:
    """The time of one activity."""

    def __init__(self, device, name, filter, elapsed):
        self.device = device
        """The Device that it ran on."""
        self.name = name
        """What it is: "forward kernel saxpy", "memset", ..."""
        self.filter = filter
        """The kind of activity: one of the TIMING_ constants."""
        self.elapsed = elapsed
        """Its time in milliseconds."""

    def __repr__(self):
        return f"TimingResult({self.elapsed:.6f} ms, {self.device.alias}, {self.name!r})"


measuring_ = []
"""The profiler between timing_begin() and timing_end(), and the activities that are wanted."""


def timing_begin(cuda_filter=TIMING_ALL, synchronize=True):
    r"""Begins to measure activities of all devices that were used so far, of the processor too.

    \param cuda_filter  a sum of TIMING_ constants
    \param synchronize  waits for earlier work; the profiler does in any case
    Errors: RuntimeError if measuring has begun already, and while a Profiler measures.
    """
    if measuring_:
        raise RuntimeError("timing_begin() is called twice: call timing_end() first")
    profiler = Profiler(whole_graphs=bool(cuda_filter & TIMING_GRAPH))
    profiler.__enter__()
    measuring_.append((profiler, cuda_filter))


def timing_end(synchronize=True):
    """Ends to measure, and waits for the work. Returns a list of TimingResult, stream by stream, in order.

    Errors: RuntimeError if measuring has not begun.
    """
    if not measuring_:
        raise RuntimeError("timing_end() is called without timing_begin()")
    profiler, wanted = measuring_.pop()
    profiler.__exit__(None, None, None)
    on = {device.alias: device for device in profiler.devices}
    keys = {key for module in modules_.values() for key in module.kernels}
    results = []
    for operation in profiler.operations:
        kind, name = activity(operation.name, keys)
        if kind & wanted:
            results.append(TimingResult(on[operation.device], name, kind, (operation.end - operation.begin) * 1.0e3))
    return results


def activity(name, keys):
    """The kind of an operation, and what it is called, from its name in a profile and the names of the program's kernels."""
    kernel = name.removesuffix(" (adjoint)")
    if kernel in keys:
        return TIMING_KERNEL, f"{'forward' if kernel == name else 'backward'} kernel {kernel}"
    if name == "copy":
        return TIMING_MEMCPY, "memcpy DtoD"
    if name == "fill":
        return TIMING_MEMSET, "memset"
    if name.startswith("graph of "):
        return TIMING_GRAPH, name
    return TIMING_KERNEL_BUILTIN, f"builtin kernel {name}"


def timing_print(results, indent=""):
    """Prints results of timing_end(): one by one, and summed up by activity and by device."""
    if not results:
        sys.stdout.write("No activity\n")
        return
    width = max(len("Activity"), *(len(r.name) for r in results)) + 1
    rule = f"{indent}----------------+---------+{'-' * width}"
    lines = [f"{indent}Timeline:", rule, f"{indent}Time            | Device  | Activity", rule]
    lines += [f"{indent}{r.elapsed:12.6f} ms | {r.device.alias:7s} | {r.name}" for r in results]
    for title, key in (("Activity", lambda r: r.name), ("Device", lambda r: r.device.alias)):
        sums = {}
        for r in results:
            count, elapsed = sums.get(key(r), (0, 0.0))
            sums[key(r)] = (count + 1, elapsed + r.elapsed)
        lines += ["", f"{indent}{title} summary:", rule, f"{indent}Total time      | Count   | {title}", rule]
        lines += [f"{indent}{elapsed:12.6f} ms | {count:7d} | {name}" for name, (count, elapsed) in sums.items()]
    sys.stdout.write("\n".join(lines) + "\n")
