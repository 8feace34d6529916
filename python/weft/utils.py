"""Tools beside kernels: timers."""

import sys
import time

from .runtime import device


class ScopedTimer:
    r"""A `with` block whose time is printed, and kept in ``elapsed`` (milliseconds).

    \param synchronize  waits for the devices before and after, so that the time is that of their work
    \param dict  a dict of name to a list of times, to which the time is added
    \param use_nvtx  kept for programs that set it
    """

    indent = -1
    enabled = True

    def __init__(
        self,
        name,
        active=True,
        print=True,
        detailed=False,
        dict=None,
        use_nvtx=False,
        color="rapids",
        synchronize=False,
        cuda_filter=0,
        report_func=None,
        skip_tape=False,
    ):
        self.name = name
        self.active = active and self.enabled
        self.print = print
        self.dict = dict
        self.synchronize = synchronize
        self.report_func = report_func
        self.elapsed = 0.0
        self.start = 0.0

    def __enter__(self):
        if self.active:
            if self.synchronize:
                device.synchronize()
            ScopedTimer.indent += 1
            self.start = time.perf_counter_ns()
        return self

    def __exit__(self, kind, error, trace):
        if not self.active:
            return
        if self.synchronize:
            device.synchronize()
        self.elapsed = (time.perf_counter_ns() - self.start) / 1.0e6
        if self.dict is not None:
            self.dict.setdefault(self.name, []).append(self.elapsed)
        if self.report_func is not None:
            self.report_func([], "\t" * ScopedTimer.indent)
        elif self.print:
            sys.stdout.write(f"{chr(9) * ScopedTimer.indent}{self.name} took {self.elapsed:.2f} ms\n")
        ScopedTimer.indent -= 1
