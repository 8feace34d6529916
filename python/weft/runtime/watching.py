"""What settings of the package do after each launch: print it, or wait for it."""

from .. import _weft, config


def watch_launches():
    """Has launches watched as the settings say now. Without a setting, a launch costs nothing more."""
    _weft.set_launch_watcher(after_launch if config.print_launches or config.verify_cuda else None)


def after_launch(kernel, dim):
    """Prints a launch, and waits for it, so that its errors show here."""
    if config.print_launches:
        print(f"launch of {kernel.key}, {dim if isinstance(dim, int) else tuple(dim)} threads")
    if config.verify_cuda:
        from .device import synchronize

        synchronize()
