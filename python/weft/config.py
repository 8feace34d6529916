"""Settings of the package. Set them before the kernels that they concern are first launched."""

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
"""Prints what is traced and compiled."""
quiet = False
"""Kept for programs that set it: the package prints nothing by itself."""
verify_cuda = False
"""Waits for the device after each launch, so that an error shows at the launch that made it."""
print_launches = False
"""Prints each launch."""
verify_autograd_array_access = False
"""Kept for programs that set it: a tape always knows which elements were overwritten."""
kernel_cache_dir = None
"""The folder of compiled kernels; None: the library's."""
cache_kernels = True
"""Keeps compiled kernels on disk."""
fast_math = False
"""Kept for programs that set it; see ``fuse_fp``."""
lineinfo = False
"""Kept for programs that set it: places in the source are always known."""
llvm_cuda = False
enable_graph_capture_module_load_by_default = True
enable_vector_component_overwrites = True
"""Kept for programs that set it: components may always be assigned again."""
