"""Devices: their names, the current one, and waiting for them."""

from .. import _weft
from ..absent import tells_what_is_missing

devices_ = {}


@tells_what_is_missing
class Device:
    """A device that runs kernels: the processor, or a GPU of any vendor.

    Programs name it by a string: "cpu", "vulkan:0", and, for programs that say so, "cuda" and "cuda:0" for the GPUs in
    their order. `native` is the module's device.
    """

    def __init__(self, native):
        self.native = native
        self.alias = native.name
        self.name = native.adapter
        self.is_cpu = not native.name.startswith("vulkan")
        self.is_gpu = native.is_gpu
        self.is_cuda = self.is_gpu
        self.ordinal = int(native.name.partition(":")[2]) if not self.is_cpu else -1
        self.is_uva = False
        self.is_primary = True
        self.is_mempool_supported = self.is_gpu
        self.is_mempool_enabled = self.is_gpu
        self.is_ipc_supported = False
        self.is_cubin_supported = False
        self.is_managed_memory_supported = False
        self.is_concurrent_managed_access_supported = False
        self.is_cpu_gpu_atomic_supported = False
        self.is_cpu_memory_access_from_gpu_supported = False
        self.is_gpu_memory_access_from_cpu_supported = False
        self.arch = 0
        self.sm_count = 0
        self.uuid = None
        self.pci_bus_id = None
        self.null_stream = None
        self.stream_ = None

    @property
    def total_memory(self):
        """The bytes of memory of the device."""
        return self.native.memory_bytes

    @property
    def free_memory(self):
        """The bytes of memory that are not known to be used: all, as drivers do not say."""
        return self.native.memory_bytes

    @property
    def is_capturing(self):
        """Whether work of this thread is being captured."""
        return _weft.is_capturing()

    @property
    def stream(self):
        """The stream that this thread's work on the device goes to."""
        from .stream import current_stream

        return current_stream(self)

    @stream.setter
    def stream(self, stream):
        self.set_stream(stream)

    def set_stream(self, stream, sync=True):
        """Sends this thread's later work on the device to a stream, with `sync` after the earlier work.

        Errors: RuntimeError for a stream of another device.
        """
        from .stream import set_stream

        set_stream(stream, self, sync)

    def make_current(self):
        """Makes the device the current one of this thread."""
        _weft.set_current_device(self.native)

    @property
    def has_context(self):
        """Whether the device is a GPU, which is open as long as it is used."""
        return self.is_gpu

    @property
    def has_stream(self):
        """True: every device has one."""
        return True

    def can_access(self, other):
        """Whether kernels of this device can use arrays of another."""
        return self == get_device(other)

    def __str__(self):
        return self.alias

    def __repr__(self):
        return f"'{self.alias}'"

    def _repr_html_(self):
        """What notebooks show."""
        from .showing import device_html

        return device_html(self)

    def __eq__(self, other):
        if isinstance(other, str):
            try:
                other = get_device(other)
            except (RuntimeError, ValueError):
                return False
        return isinstance(other, Device) and self.native == other.native

    def __hash__(self):
        return hash(self.native)


def of_native(native):
    """The device of the module's device."""
    made = devices_.get(native.name)
    if made is None or made.native != native:
        made = devices_[native.name] = Device(native)
    return made


def get_device(ident=None):
    """The device that a program names: a string, a Device, or None for the current one.

    Errors: ValueError for a name that no device has.
    """
    if ident is None:
        return of_native(_weft.current_device())
    if isinstance(ident, Device):
        return ident
    if isinstance(ident, _weft.Device):
        return of_native(ident)
    if isinstance(ident, str):
        known = devices_.get(ident)
        return known if known is not None else by_name(ident)
    raise RuntimeError(f"Unable to resolve device from argument of type {type(ident)}")


def by_name(name):
    """The device of a name that was not used so far."""
    if name == "cuda" or name.startswith("cuda:"):
        gpus = get_cuda_devices()
        number = int(name.partition(":")[2] or 0)
        if number >= len(gpus):
            raise ValueError(f"Invalid device identifier: {name}")
        return gpus[number]
    if name == "gpu":
        return get_preferred_device()
    if name.partition(":")[0] not in ("cpu", "reference", "vulkan"):
        raise ValueError(f"Invalid device identifier: {name}")
    return of_native(_weft.Device(name))


def device_from(device):
    """The module's device for an argument; None stays None, which means the current one."""
    return None if device is None else get_device(device).native


def get_devices():
    """All devices: the processor first, then GPUs."""
    names = [n for n in _weft.device_list() if n == "cpu" or n.startswith("vulkan")]
    found = [get_device(n) for n in sorted(names)]
    return [d for d in found if d.is_cpu or d.is_gpu]


def get_cuda_devices():
    """The GPUs, of any vendor."""
    found = [get_device(n) for n in _weft.device_list() if n.startswith("vulkan")]
    return [d for d in found if d.is_gpu]


def get_cuda_device_count():
    """The number of GPUs."""
    return len(get_cuda_devices())


def get_cuda_device(ordinal=None):
    """A GPU by its number; the current device, or the first GPU, if none is given. Errors: RuntimeError without GPUs."""
    gpus = get_cuda_devices()
    if not gpus:
        raise RuntimeError("there is no GPU")
    if ordinal is None:
        current = get_device()
        return current if current.is_gpu else gpus[0]
    return gpus[ordinal]


def get_preferred_device():
    """The device on which work runs fastest: a GPU if there is one."""
    return of_native(_weft.best_device())


def is_cpu_available():
    """Whether the processor is a device: where LLVM is installed."""
    return "cpu" in _weft.device_list()


def is_cuda_available():
    """Whether there is a GPU."""
    return bool(get_cuda_devices())


def is_device_available(device):
    """Whether a device is one of get_devices()."""
    return device in get_devices()


def set_device(ident):
    """Makes a device the current one of this thread."""
    _weft.set_current_device(get_device(ident).native)


def can_access(target, device):
    """Whether kernels of one device can use arrays of the other."""
    return get_device(target).can_access(device)


def synchronize():
    """Waits for all work on all devices that were used."""
    for device in list(devices_.values()):
        device.native.synchronize()
    if not devices_:
        _weft.current_device().synchronize()


def synchronize_device(device=None):
    """Waits for all work on a device."""
    get_device(device).native.synchronize()


def is_mempool_supported(device):
    """Whether a device keeps freed memory for later arrays: GPUs do."""
    return get_device(device).is_mempool_supported


def is_mempool_enabled(device):
    """The same: it cannot be turned off."""
    return get_device(device).is_mempool_enabled


def is_mempool_access_supported(target_device, peer_device):
    """Whether kernels of one device use the pooled memory of another: those of the same device do."""
    return get_device(target_device) == get_device(peer_device) and get_device(target_device).is_mempool_supported


def is_mempool_access_enabled(target_device, peer_device):
    """The same."""
    return is_mempool_access_supported(target_device, peer_device)


def is_peer_access_supported(target_device, peer_device):
    """Whether kernels of a GPU use the memory of another directly: none do."""
    get_device(target_device), get_device(peer_device)  # refuses names that no device has
    return False


def is_peer_access_enabled(target_device, peer_device):
    """The same."""
    return is_peer_access_supported(target_device, peer_device)


class ScopedDevice:
    """A `with` block in which a device is the current one."""

    def __init__(self, device):
        self.device = get_device(device)
        self.before = None

    def __enter__(self):
        self.before = _weft.current_device()
        _weft.set_current_device(self.device.native)
        return self.device

    def __exit__(self, kind, error, trace):
        _weft.set_current_device(self.before)
