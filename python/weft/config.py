"""Settings of the package. Set them before the kernels that they concern are first launched."""

import os
import sys
from types import ModuleType

version = "0"
"""The version of the package; set when it is imported."""

mode = "release"
"""``"debug"`` checks indices and numbers in kernels; reports name the line of the kernel."""
verify_fp = False
"""Checks that kernels store no NaN and no infinity."""
max_unroll = 16
"""The most iterations of a loop over known numbers that is unrolled."""
enable_backward = True
"""Kept for programs that set it: adjoints are made when a tape first needs them."""
fuse_fp = True
"""Contracts products and sums to one rounding where the device can."""
verbose = False
"""Kept for programs that set it: see ``print_launches``, and ``weft-kernels`` for what is in the cache."""
quiet = False
"""Kept for programs that set it: the package prints nothing by itself."""
verify_cuda = False
"""Waits for the device after each launch, so that an error shows at the launch that made it."""
print_launches = False
"""Prints each launch."""
verify_autograd_array_access = False
"""Kept for programs that set it: a tape always knows which elements were overwritten."""
kernel_cache_dir: str | None = None
"""The folder of compiled kernels; None: the library's. Devices that are open keep the one that they have."""
cache_kernels = True
"""Keeps compiled kernels on disk. Devices that are open go on as they are."""
fast_math = False
"""Kept for programs that set it; see ``fuse_fp``."""
lineinfo = False
"""Kept for programs that set it: places in the source are always known."""
log_level = 20
"""The least level of messages that are printed: LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR."""
block_dim: int | None = None
"""Kept for programs that set it: the library chooses the threads of a workgroup."""
track_memory = False
verbose_warnings = False
enable_vector_component_overwrites = True
"""Kept for programs that set it: components may always be assigned again."""

# Kept for programs that set them: they concern compilers, drivers and modes that the library does not have.
optimization_level: int | None = None
legacy_scalar_return_types = False
llvm_cuda = False
cuda_output: str | None = None
ptx_target_arch: str | None = None
cuda_arch_suffix: str | None = None
line_directives = True
compile_time_trace = False
default_grid_stride = True
enable_mathdx_gemm = True
enable_mathdx_solver = True
enable_mathdx_fft = True
cpu_compiler_flags: str | None = None
enable_graph_capture_module_load_by_default = True
enable_mempools_at_init = True
enable_tiles_in_stack_memory = True
use_precompiled_headers = True
legacy_cpu_linker = False
load_module_max_workers = 0
deterministic: bool | None = None
deterministic_max_records = 0
deterministic_debug = False
launch_array_access_mode: str | None = None


class Settings(ModuleType):
    """The module's class: some settings have an effect when they are set."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in ("print_launches", "verify_cuda"):
            from .runtime.watching import watch_launches

            watch_launches()
        elif name == "kernel_cache_dir" and value is not None:
            os.environ["WEFT_CACHE_DIR"] = str(value)
        elif name == "cache_kernels":
            os.environ["WEFT_CACHE"] = "1" if value else "0"


sys.modules[__name__].__class__ = Settings
