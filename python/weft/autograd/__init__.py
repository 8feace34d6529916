"""Jacobians of kernels and functions, by their adjoints and by finite differences, and whether the two agree."""

from .checks import gradcheck as gradcheck
from .checks import gradcheck_tape as gradcheck_tape
from .jacobians import jacobian as jacobian
from .jacobians import jacobian_fd as jacobian_fd
from .plots import FunctionMetadata as FunctionMetadata
from .plots import jacobian_plot as jacobian_plot

__all__ = ["gradcheck", "gradcheck_tape", "jacobian", "jacobian_fd", "jacobian_plot"]
