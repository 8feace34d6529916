"""What programs for Warp say about CUDA's memory pools, peers and versions, and about caches of kernels.

Memory of devices is always pooled and compiled kernels are found by their content, so that nothing here has to act: the
functions check the names of devices, and are there so that programs which call them run.
"""

from .device import get_device, is_peer_access_supported


def set_mempool_enabled(device, enable):
    """Does nothing: memory is pooled on all devices. Errors: ValueError for a name that no device has."""
    get_device(device)


def set_mempool_release_threshold(device, threshold):
    """Does nothing: the library decides how much freed memory it keeps. Errors: ValueError for a name that no device has."""
    get_device(device)


def get_mempool_release_threshold(device=None):
    """0: freed memory is kept for no given amount. Errors: ValueError for a name that no device has."""
    get_device(device)
    return 0


def set_mempool_access_enabled(target_device, peer_device, enable):
    """Does nothing for a device and itself. Errors: RuntimeError where a device should use another's memory."""
    refuse_peers(target_device, peer_device, enable)


def set_peer_access_enabled(target_device, peer_device, enable):
    """Does nothing for a device and itself. Errors: RuntimeError where a device should use another's memory."""
    refuse_peers(target_device, peer_device, enable)


def refuse_peers(target, peer, enable):
    """Refuses what no device does: to use the memory of another one."""
    if enable and get_device(target) != get_device(peer) and not is_peer_access_supported(target, peer):
        raise RuntimeError(f"{get_device(peer)} cannot use the memory of {get_device(target)}: copy the arrays")


class ScopedMempool:
    """A `with` block of programs that turn pools on or off in it, which changes nothing."""

    def __init__(self, device, enable):
        get_device(device)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        """Nothing was changed."""


def get_cuda_driver_version():
    """None: there is no CUDA, on GPUs of any vendor."""
    return


def get_cuda_toolkit_version():
    """None, likewise."""
    return


def clear_kernel_cache():
    """Does nothing: a kernel that was changed is another kernel. WEFT_CACHE=0 in the environment keeps none on disk."""


def clear_lto_cache():
    """Does nothing: nothing is linked at run time."""
