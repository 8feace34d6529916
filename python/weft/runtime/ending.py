"""The end of Python: devices finish what they were given, and what kernels printed is shown, while Python still can."""

import atexit
import sys

from .. import _weft
from .device import devices_


@atexit.register
def finish():
    """Waits for all devices that were used, and tells of errors, which nobody is left to catch."""
    for device in {*(known.native for known in devices_.values()), *_weft.used_devices()}:
        try:
            device.synchronize()
        except _weft.Error as error:
            if error.kind == "kernel fault":  # others: a device that is a parent's, after a fork; an open capture
                sys.stderr.write(f"weft: {error}\n")
    _weft.show_reports()
