"""Pythons that the package does not run on: they are refused by name, before anything else is loaded."""

import sys


def check_interpreter():
    """Refuses a Python without the global interpreter lock, as the module takes it for granted.

    Errors: ImportError.
    """
    if not hasattr(sys, "_is_gil_enabled"):  # before Python 3.13 there was none
        return
    import sysconfig

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        version = sys.version.partition(" ")[0]
        raise ImportError(
            f"weft does not support free-threaded builds of Python ({version}t): use the usual build of the same version"
        )


check_interpreter()
