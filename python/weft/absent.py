"""What Warp has and the package has not, by name: what a program that asks for it is told."""

ABSENT = {
    "launch_tiled": "there are no tiles yet: a kernel whose threads share memory is written in C++",
    "bfloat16": "there are no numbers of type bfloat16: float16 and float32 are there",
    "grad": "kernels cannot ask for the gradient of a function: a tape computes it",
    "func_native": "there is no C++ in kernels of Python: the library takes kernels in C++",
    "sparse": "there are no sparse matrices yet",
    "fem": "there are no finite elements",
    "render": "there is no renderer yet",
    "fabricarray": "there is no memory of Omniverse",
    "fabricarrayarray": "there is no memory of Omniverse",
    "indexedfabricarray": "there is no memory of Omniverse",
    "indexedfabricarrayarray": "there is no memory of Omniverse",
    **dict.fromkeys(("Allocator", "ScopedAllocator", "CudaManagedAllocator"), "devices have one allocator of their own"),
    **dict.fromkeys(("get_device_allocator", "set_device_allocator", "set_cuda_allocator"), "devices have one allocator"),
    **dict.fromkeys(("capture_save", "capture_load"), "graphs are not kept in files"),
    "capture_debug_dot_print": "graphs are not drawn: Tape.visualize() draws what a tape recorded",
    **dict.fromkeys(("from_ipc_handle", "event_from_ipc_handle"), "nothing is shared between processes"),
    **dict.fromkeys(("map_cuda_device", "unmap_cuda_device", "RegisteredGLBuffer"), "devices are driven through Vulkan"),
    **dict.fromkeys(("get_cuda_kernel_properties", "get_cuda_max_cluster_dim"), "devices are driven through Vulkan"),
    **dict.fromkeys(("get_cuda_supported_archs", "get_suggested_block_size"), "devices are driven through Vulkan"),
    **dict.fromkeys(("compile_aot_module", "load_aot_module"), "kernels are compiled when they are first launched"),
    **dict.fromkeys(("ScopedMempoolAccess", "ScopedPeerAccess"), "no GPU uses the memory of another directly"),
    "DeterministicMode": "Tape(deterministic=True) makes gradients the same in each run",
    **dict.fromkeys(("Logger", "get_logger", "set_logger", "ScopedLogger", "ScopedLogLevel"), "the package keeps no log"),
    **dict.fromkeys(("print_memory_report", "ScopedMemoryTracker"), "memory is not counted by name"),
    "print_diagnostics": "get_devices() and their attributes tell what there is",
}
"""Names."""
BEGINNINGS = {
    "tile_": "there are no tiles yet: a kernel whose threads share memory is written in C++",
    "texture": "there are no textures: a Volume or an array is sampled",
    "Texture": "there are no textures: a Volume or an array is sampled",
    "bsr_": "there are no sparse matrices yet",
}
"""Beginnings of names."""
ENDS = {"_tiled": "there are no tiles yet: each thread asks for itself"}
"""Ends of names."""


def reason(name):
    """Why a name of Warp's is missing, as the end of a sentence; an empty text for names that are nobody's."""
    found = ABSENT.get(name) or next((text for start, text in BEGINNINGS.items() if name.startswith(start)), None)
    found = found or next((text for end, text in ENDS.items() if name.endswith(end)), None)
    return f": {found}" if found else ""


HANDLES = "devices are driven through Vulkan, or are the processor: there are no handles of CUDA's"
GENERATED = "kernels are traced, and there is no generated code"
FILES = "graphs are not kept in files, and have no parameters: they use the arrays that they were captured with"
PROCESSES = "nothing is shared between processes"
OVERWRITES = "a tape keeps the values that recorded work overwrites, so that reads and writes are not marked"

MEMBERS = {
    "array": {
        "ctype": "arrays are arguments of launches as they are",
        "ipc_handle": PROCESSES,
        "memory_kind": "the device tells where the elements lie",
        "deleter": "it is kept with the memory, which views share",
        "vars": GENERATED,
        **dict.fromkeys(("mark_init", "mark_read", "mark_write"), OVERWRITES),
    },
    "Device": {
        **dict.fromkeys(("context", "context_guard", "get_cuda_compile_arch", "get_cuda_output_format"), HANDLES),
        "captures": "is_capturing tells whether this thread captures",
        "runtime": "the runtime is the module weft._weft",
        **dict.fromkeys(("get_allocator", "default_allocator", "pinned_allocator"), "devices have one allocator of their own"),
        **dict.fromkeys(("memset", "memtile"), "arrays are filled by zero_() and fill_()"),
        "max_shared_memory_per_block": "there are no tiles yet, which would use it",
    },
    "Event": {"cuda_event": HANDLES, "Flags": HANDLES, "ipc_handle": PROCESSES},
    "Graph": {
        **dict.fromkeys(("get_param", "get_param_ptr", "params", "set_param", "is_loaded", "apic", "apic_state"), FILES),
        **dict.fromkeys(("graph", "graph_exec", "capture_id", "module_execs"), HANDLES),
    },
    "Kernel": {
        **dict.fromkeys(("adj", "get_mangled_name", "sig", "return_annotation", "uses_warp_entry_point_abi"), GENERATED),
        "grid_stride": "a launch has a thread for each element, however many there are",
        "hash": "native_kernel().ir_hash() is the hash of what the kernel does",
    },
    "Launch": {
        **dict.fromkeys(("hooks", "module_exec", "params_addr", "fwd_args", "adj_args"), GENERATED),
        **dict.fromkeys(("cluster_dim", "grid_stride"), "the device groups threads as it likes"),
        "bounds": "dim has the dimensions",
    },
    "Module": {
        **dict.fromkeys(("loader", "execs", "hashers", "failed_builds", "cpu_exec_id", "resolved_options"), GENERATED),
        **dict.fromkeys(("get_kernel_hooks", "get_module_identifier", "resolve_options", "increment_id"), GENERATED),
        **dict.fromkeys(("register_function", "register_kernel", "register_struct"), "decorators add to modules"),
        **dict.fromkeys(("references", "dependents", "mark_modified"), "what changes is traced again at the next launch"),
        **dict.fromkeys(("defer_reference_scan", "has_unresolved_static_expressions"), "kernels are read when they are traced"),
    },
    "Stream": {"cuda_stream": HANDLES, "__cuda_stream__": HANDLES},
}
"""Members of Warp's classes that the package's lack."""


class Missing:
    """Stands for a member that is not there: whoever asks an object for it is told why."""

    def __init__(self, name, reason):
        self.name = name
        self.reason = reason

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}: {self.reason}")


def tells_what_is_missing(cls):
    """Has a class say why it lacks members that Warp's class of the same name has (decorator)."""
    for name, reason in MEMBERS[cls.__name__].items():
        setattr(cls, name, Missing(name, reason))
    return cls
