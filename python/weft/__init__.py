"""weft: kernels written in Python that run on any vendor's GPU, and on the processor without one.

A kernel is a function with ``@wp.kernel``; ``wp.launch`` runs it for each thread; ``wp.array`` holds its data; ``wp.Tape``
computes gradients. Programs for Warp run with ``import weft as wp``.
"""

import sys as _sys

from . import supported as _supported  # noqa: F401  (first: it refuses interpreters)
from . import _weft  # noqa: I001
from . import config as config
from . import types as types
from ._weft import Error as Error
from ._weft import launch as launch
from .absent import reason as _reason
from .interop.dlpack import from_dlpack as from_dlpack
from .interop.dlpack import to_dlpack as to_dlpack
from .interop.jax import device_from_jax as device_from_jax
from .interop.jax import device_to_jax as device_to_jax
from .interop.jax import dtype_from_jax as dtype_from_jax
from .interop.jax import dtype_to_jax as dtype_to_jax
from .interop.jax import from_jax as from_jax
from .interop.jax import to_jax as to_jax
from .interop.jax_callable import JaxCallableGraphMode as JaxCallableGraphMode
from .interop.jax_callable import JaxModulePreloadMode as JaxModulePreloadMode
from .interop.jax_callable import clear_jax_callable_graph_cache as clear_jax_callable_graph_cache
from .interop.jax_callable import jax_callable as jax_callable
from .interop.jax_callable import register_ffi_callback as register_ffi_callback
from .interop.jax_kernel import jax_kernel as jax_kernel
from .interop.paddle import device_from_paddle as device_from_paddle
from .interop.paddle import device_to_paddle as device_to_paddle
from .interop.paddle import dtype_from_paddle as dtype_from_paddle
from .interop.paddle import dtype_to_paddle as dtype_to_paddle
from .interop.paddle import from_paddle as from_paddle
from .interop.paddle import stream_from_paddle as stream_from_paddle
from .interop.paddle import to_paddle as to_paddle
from .interop.torch import device_from_torch as device_from_torch
from .interop.torch import device_to_torch as device_to_torch
from .interop.torch import dtype_from_torch as dtype_from_torch
from .interop.torch import dtype_to_torch as dtype_to_torch
from .interop.torch import from_torch as from_torch
from .interop.torch import stream_from_torch as stream_from_torch
from .interop.torch import stream_to_torch as stream_to_torch
from .interop.torch import to_torch as to_torch
from .language.builtin import Builtin as _Builtin
from .language.derivatives import func_grad as func_grad
from .language.derivatives import func_replay as func_replay
from .language.errors import CodegenAttributeError as WarpCodegenAttributeError  # noqa: F401
from .language.errors import CodegenError as WarpCodegenError  # noqa: F401
from .language.errors import CodegenIndexError as WarpCodegenIndexError  # noqa: F401
from .language.errors import CodegenKeyError as WarpCodegenKeyError  # noqa: F401
from .language.errors import CodegenTypeError as WarpCodegenTypeError  # noqa: F401
from .language.errors import CodegenValueError as WarpCodegenValueError  # noqa: F401
from .language.structures.queries import MeshQueryPoint as MeshQueryPoint
from .language.structures.queries import MeshQueryRay as MeshQueryRay
from .language.structures.volumes import VolumeRay as VolumeRay
from .names import FUNCTIONS as _FUNCTIONS
from .runtime import conversion as _conversion  # noqa: F401
from .runtime import ending as _ending  # noqa: F401
from .runtime import formats as _formats
from .runtime.arithmetic import add_operators as _add_operators
from .runtime.array import array as array
from .runtime.array import array1d as array1d
from .runtime.array import array2d as array2d
from .runtime.array import array3d as array3d
from .runtime.array import array4d as array4d
from .runtime.array import clone as clone
from .runtime.array import copy as copy
from .runtime.creation import empty as empty
from .runtime.creation import empty_like as empty_like
from .runtime.creation import from_numpy as from_numpy
from .runtime.creation import from_ptr as from_ptr
from .runtime.creation import full as full
from .runtime.creation import full_like as full_like
from .runtime.creation import ones as ones
from .runtime.creation import ones_like as ones_like
from .runtime.creation import zeros as zeros
from .runtime.creation import zeros_like as zeros_like
from .runtime.device import Device as Device
from .runtime.device import ScopedDevice as ScopedDevice
from .runtime.device import can_access as can_access
from .runtime.device import get_cuda_device as get_cuda_device
from .runtime.device import get_cuda_device_count as get_cuda_device_count
from .runtime.device import get_cuda_devices as get_cuda_devices
from .runtime.device import get_device as get_device
from .runtime.device import get_devices as get_devices
from .runtime.device import get_preferred_device as get_preferred_device
from .runtime.device import is_cpu_available as is_cpu_available
from .runtime.device import is_cuda_available as is_cuda_available
from .runtime.device import is_device_available as is_device_available
from .runtime.device import is_mempool_access_enabled as is_mempool_access_enabled
from .runtime.device import is_mempool_access_supported as is_mempool_access_supported
from .runtime.device import is_mempool_enabled as is_mempool_enabled
from .runtime.device import is_mempool_supported as is_mempool_supported
from .runtime.device import is_peer_access_enabled as is_peer_access_enabled
from .runtime.device import is_peer_access_supported as is_peer_access_supported
from .runtime.device import set_device as set_device
from .runtime.device import synchronize as synchronize
from .runtime.device import synchronize_device as synchronize_device
from .runtime.function import Function as Function
from .runtime.function import func as func
from .runtime.graph import Graph as Graph
from .runtime.graph import ScopedCapture as ScopedCapture
from .runtime.graph import capture_begin as capture_begin
from .runtime.graph import capture_end as capture_end
from .runtime.graph import capture_if as capture_if
from .runtime.graph import capture_launch as capture_launch
from .runtime.graph import capture_while as capture_while
from .runtime.graph import is_conditional_graph_supported as is_conditional_graph_supported
from .runtime.indexed import indexedarray as indexedarray
from .runtime.indexed import indexedarray1d as indexedarray1d
from .runtime.indexed import indexedarray2d as indexedarray2d
from .runtime.indexed import indexedarray3d as indexedarray3d
from .runtime.indexed import indexedarray4d as indexedarray4d
from .runtime.kernel import Kernel as Kernel
from .runtime.kernel import kernel as kernel
from .runtime.kernel import overload as overload
from .runtime.mapping import map as map  # noqa: A004
from .runtime.module import Module as Module
from .runtime.module import force_load as force_load
from .runtime.module import get_module as get_module
from .runtime.module import get_module_options as get_module_options
from .runtime.module import load_module as load_module
from .runtime.module import set_module_options as set_module_options
from .runtime.pools import ScopedMempool as ScopedMempool
from .runtime.pools import clear_kernel_cache as clear_kernel_cache
from .runtime.pools import clear_lto_cache as clear_lto_cache
from .runtime.pools import get_cuda_driver_version as get_cuda_driver_version
from .runtime.pools import get_cuda_toolkit_version as get_cuda_toolkit_version
from .runtime.pools import get_mempool_release_threshold as get_mempool_release_threshold
from .runtime.pools import set_mempool_access_enabled as set_mempool_access_enabled
from .runtime.pools import set_mempool_enabled as set_mempool_enabled
from .runtime.pools import set_mempool_release_threshold as set_mempool_release_threshold
from .runtime.pools import set_peer_access_enabled as set_peer_access_enabled
from .runtime.profile import TIMING_ALL as TIMING_ALL
from .runtime.profile import TIMING_GRAPH as TIMING_GRAPH
from .runtime.profile import TIMING_KERNEL as TIMING_KERNEL
from .runtime.profile import TIMING_KERNEL_BUILTIN as TIMING_KERNEL_BUILTIN
from .runtime.profile import TIMING_MEMCPY as TIMING_MEMCPY
from .runtime.profile import TIMING_MEMSET as TIMING_MEMSET
from .runtime.profile import Profiler as Profiler
from .runtime.profile import Timer as Timer
from .runtime.profile import TimingResult as TimingResult
from .runtime.profile import timing_begin as timing_begin
from .runtime.profile import timing_end as timing_end
from .runtime.profile import timing_print as timing_print
from .runtime.recorded import Launch as Launch
from .runtime.stream import Event as Event
from .runtime.stream import ScopedStream as ScopedStream
from .runtime.stream import Stream as Stream
from .runtime.stream import get_event_elapsed_time as get_event_elapsed_time
from .runtime.stream import get_stream as get_stream
from .runtime.stream import record_event as record_event
from .runtime.stream import set_stream as set_stream
from .runtime.stream import synchronize_event as synchronize_event
from .runtime.stream import synchronize_stream as synchronize_stream
from .runtime.stream import wait_event as wait_event
from .runtime.stream import wait_stream as wait_stream
from .runtime.structures.geometry import Bvh as Bvh
from .runtime.structures.geometry import BvhQuery as BvhQuery
from .runtime.structures.geometry import HashGrid as HashGrid
from .runtime.structures.geometry import HashGridQuery as HashGridQuery
from .runtime.structures.geometry import Mesh as Mesh
from .runtime.structures.geometry import MeshQuery as MeshQuery
from .runtime.structures.geometry import MeshQueryAABB as MeshQueryAABB
from .runtime.structures.geometry import is_cubql_available as is_cubql_available
from .runtime.structures.marching_cubes import MarchingCubes as MarchingCubes
from .runtime.structures.mesh_data import MeshData as MeshData
from .runtime.structures.mesh_data import load_mesh as load_mesh
from .runtime.structures.mesh_data import save_mesh as save_mesh
from .runtime.structures.volume import Volume as Volume
from .runtime.tape import Tape as Tape
from .types.annotations import fixedarray as fixedarray
from .types.annotations import ref as ref
from .types.matrices import matrix as mat  # noqa: F401
from .types.matrices import matrix_from_cols as matrix_from_cols
from .types.matrices import matrix_from_rows as matrix_from_rows
from .types.named import NAMED as _NAMED
from .types.numpy_types import dtype_from_numpy as dtype_from_numpy
from .types.numpy_types import dtype_to_numpy as dtype_to_numpy
from .types.patterns import Float as Float
from .types.patterns import Int as Int
from .types.patterns import Scalar as Scalar
from .types.quaternions import quaternion as quaternion
from .types.quaternions import transformation as transformation
from .types.scalars import SCALARS as _SCALARS
from .types.scalars import bool as bool  # noqa: A004
from .types.scalars import uint64 as handle
from .types.structs import struct as struct
from .types.vectors import vector as vec  # noqa: F401
from .utils import ScopedTimer as ScopedTimer
from .utils import transform_expand as transform_expand

__version__ = config.version = _weft.version

for _scalar in _SCALARS:
    globals()[_scalar.__name__] = _scalar
globals().update(_NAMED)

for _name in _FUNCTIONS:
    if _name not in globals():
        globals()[_name] = _Builtin(_name)

LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR = 10, 20, 30, 40

PI = pi = 3.14159265358979323846
TAU = tau = 2.0 * PI
HALF_PI = half_pi = 0.5 * PI
E = e = 2.71828182845904523536
LOG2E = log2e = 1.44269504088896340736
LOG10E = log10e = 0.43429448190325182765
LN2 = ln2 = 0.69314718055994530942
LN10 = ln10 = 2.30258509299404568402
PHI = phi = 1.61803398874989484820
INF = inf = float("inf")
NAN = nan = float("nan")


def __getattr__(name):
    """``wp.float`` and ``wp.int``, which are no names of the package that ``import *`` would bring."""
    if name in ("float", "int"):
        return float32 if name == "float" else int32  # noqa: F821
    raise AttributeError(f"module 'weft' has no attribute {name!r}{_reason(name)}")


def constant(x):
    """A constant for kernels: the value itself, which kernels see as any number or value of Python's that they name.

    Errors: TypeError for what kernels cannot hold.
    """
    from .language.statics import unsupported

    if isinstance(x, (tuple, list)):
        raise TypeError(f"Invalid constant type: {type(x)}")
    reason = unsupported(x)
    if reason:
        raise TypeError(f"Invalid constant: {reason}")
    return x


def init():
    """Does nothing: the package is ready when it is imported. Programs that call it are welcome to."""


def _show(line):
    """Writes a line that a kernel printed."""
    line = _formats.rewritten(line)
    _sys.stdout.write(line if line.endswith("\n") else line + "\n")


_weft.set_print_sink(_show)
_add_operators(array)
_add_operators(indexedarray)

from . import algorithms as algorithms  # noqa: E402
from . import shapes as shapes  # noqa: E402
from .math import norm_huber as norm_huber  # noqa: E402
from .math import norm_l1 as norm_l1  # noqa: E402
from .math import norm_l2 as norm_l2  # noqa: E402
from .math import norm_pseudo_huber as norm_pseudo_huber  # noqa: E402
from .math import quat_between_vectors as quat_between_vectors  # noqa: E402
from .math import quat_from_euler as quat_from_euler  # noqa: E402
from .math import quat_to_euler as quat_to_euler  # noqa: E402
from .math import quat_to_rpy as quat_to_rpy  # noqa: E402
from .math import quat_twist as quat_twist  # noqa: E402
from .math import quat_twist_angle as quat_twist_angle  # noqa: E402
from .math import quat_twist_angle_signed as quat_twist_angle_signed  # noqa: E402
from .math import smooth_normalize as smooth_normalize  # noqa: E402
from .math import transform_twist as transform_twist  # noqa: E402
from .math import transform_wrench as transform_wrench  # noqa: E402
from .math import velocity_at_point as velocity_at_point  # noqa: E402
