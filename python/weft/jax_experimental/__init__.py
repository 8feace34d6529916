"""Functions for JAX, by the names that earlier documents give them."""

from ..interop.jax_callable import JaxCallableGraphMode as GraphMode  # noqa: F401
from ..interop.jax_callable import JaxCallableGraphMode as JaxCallableGraphMode
from ..interop.jax_callable import JaxModulePreloadMode as JaxModulePreloadMode
from ..interop.jax_callable import clear_jax_callable_graph_cache as clear_jax_callable_graph_cache
from ..interop.jax_callable import jax_callable as jax_callable
from ..interop.jax_callable import register_ffi_callback as register_ffi_callback
from ..interop.jax_kernel import jax_kernel as jax_kernel
