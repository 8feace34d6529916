"""Plots of Jacobians, by matplotlib, which is loaded when the first one is drawn."""

import inspect
from dataclasses import dataclass

import numpy as np

from ..runtime.kernel import Kernel
from ..types.annotations import ArrayType, is_concrete

FLOOR = 1e-8
"""What is added to sizes before their logarithms are shown."""


@dataclass
class FunctionMetadata:
    """The names and types of inputs and outputs of a kernel or a function, for plots. Types of all but arrays are None."""

    key: str | None = None
    input_labels: list | None = None
    output_labels: list | None = None
    input_strides: list | None = None
    output_strides: list | None = None
    input_dtypes: list | None = None
    output_dtypes: list | None = None

    @property
    def is_empty(self):
        """Whether nothing is known yet."""
        return self.key is None

    def input_is_array(self, i):
        """Whether input i is an array."""
        return self.input_dtypes[i] is not None

    def output_is_array(self, i):
        """Whether output i is an array."""
        return self.output_dtypes[i] is not None

    def update_from_kernel(self, kernel, inputs):
        """Takes the names and types of a kernel's parameters, and of the inputs where parameters leave types open."""
        self.key = kernel.key
        first = len(inputs)
        self.input_labels = [name for name, _ in kernel.parameters[:first]]
        self.output_labels = [name for name, _ in kernel.parameters[first:]]
        kinds = [kind.dtype if isinstance(kind, ArrayType) else None for _, kind in kernel.parameters]
        self.input_dtypes = [
            kind if kind is None or is_concrete(kind) else getattr(value, "dtype", kind)
            for kind, value in zip(kinds, inputs)
        ]
        self.output_dtypes = kinds[first:]
        self.input_strides = [getattr(value, "strides", None) for value in inputs]
        self.output_strides = [None] * len(self.output_labels)

    def update_from_function(self, function, inputs, outputs=None):
        """Takes the names of a function's parameters, and the types of its inputs and of its outputs, which are numbered."""
        if outputs is None:
            outputs = function(*inputs)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        self.key = getattr(function, "__name__", type(function).__name__)
        self.input_labels = list(inspect.signature(function).parameters)[: len(inputs)]
        self.output_labels = [f"output_{i}" for i in range(len(outputs))]
        self.input_dtypes = [getattr(value, "dtype", None) for value in inputs]
        self.output_dtypes = [getattr(value, "dtype", None) for value in outputs]
        self.input_strides = [getattr(value, "strides", None) for value in inputs]
        self.output_strides = [getattr(value, "strides", None) for value in outputs]


def jacobian_plot(
    jacobians,
    kernel,
    inputs=None,
    show_plot=True,
    show_colorbar=True,
    scale_colors_per_submatrix=False,
    title=None,
    colormap="coolwarm",
    log_scale=False,
):
    r"""Shows Jacobians as images: a row for each output, a column for each input.

    \param jacobians  what jacobian() or jacobian_fd() gives
    \param kernel  the kernel, with its `inputs`, or a FunctionMetadata
    \param show_plot  opens the plot, and waits until it is closed
    \param scale_colors_per_submatrix  colours of each Jacobian by its own range, else by that of all
    \param log_scale  shows the logarithms of sizes
    \return  the figure of matplotlib; None without Jacobians
    Errors: ValueError for a kernel without inputs, and for Jacobians whose input or output has no name or type; ImportError
    without matplotlib.
    """
    metadata = metadata_of(kernel, inputs)
    columns = sorted({i for i, _ in jacobians})
    rows = sorted({j for _, j in jacobians})
    if not jacobians:
        return None
    matrices = {}
    for (i, j), made in jacobians.items():
        check_names(metadata, i, j)
        numbers = made.numpy()
        matrices[i, j] = shown_numbers(numbers.reshape(len(numbers), -1), log_scale)
    import matplotlib.pyplot as plt

    widths = [next(m.shape[1] for (i, _), m in matrices.items() if i == column) for column in columns]
    heights = [next(m.shape[0] for (_, j), m in matrices.items() if j == row) for row in rows]
    figure, axes = plt.subplots(
        len(rows),
        len(columns),
        figsize=(7, 7),
        layout="constrained",
        sharex="col",
        sharey="row",
        squeeze=False,
        gridspec_kw={"width_ratios": widths, "height_ratios": heights},
    )
    title = title or f"{metadata.key or 'unknown'} kernel Jacobian"
    figure.suptitle(title)
    if figure.canvas.manager is not None:
        figure.canvas.manager.set_window_title(title)
    common = range_of(matrices.values())
    image = None
    for row, j in enumerate(rows):
        for column, i in enumerate(columns):
            axis = axes[row, column]
            if (i, j) not in matrices:
                axis.axis("off")
                continue
            low, high = range_of([matrices[i, j]]) if scale_colors_per_submatrix else common
            image = draw_matrix(axis, matrices[i, j], low, high, colormap)
            if not any((i, below) in matrices for below in rows[row + 1 :]):
                axis.set_xlabel(metadata.input_labels[i])
            if not any((left, j) in matrices for left in columns[:column]):
                axis.set_ylabel(metadata.output_labels[j])
            if show_colorbar and scale_colors_per_submatrix:
                figure.colorbar(image, ax=axis, pad=0.02)
    if show_colorbar and not scale_colors_per_submatrix:
        figure.colorbar(image, ax=axes, pad=0.02)
    if show_plot:
        plt.show()
    return figure


def metadata_of(kernel, inputs):
    """The names and types of what was derived. Errors: ValueError for something else, and for a kernel without inputs."""
    if isinstance(kernel, FunctionMetadata):
        return kernel
    if not isinstance(kernel, Kernel):
        raise ValueError("Invalid kernel argument: must be a Warp kernel or a FunctionMetadata object")
    if inputs is None:
        raise ValueError("inputs must be provided when kernel is a Warp kernel")
    made = FunctionMetadata()
    made.update_from_kernel(kernel, inputs)
    return made


def check_names(metadata, i, j):
    """Refuses a Jacobian whose input or output has no name, or whose input is no array. Errors: ValueError."""
    for what, number, labels in (("input", i, metadata.input_labels), ("output", j, metadata.output_labels)):
        labels = labels or []
        if not 0 <= number < len(labels):
            raise ValueError(f"Jacobian {what} index {number}: there are names of {len(labels)} {what}s")
        if labels[number] is None:
            raise ValueError(f"Jacobian {what} index {number}: missing label")
    dtype = (metadata.input_dtypes or [])[i : i + 1]
    if not dtype or dtype[0] is None:
        raise ValueError(f"Jacobian input index {i}: missing array dtype")
    if not is_concrete(dtype[0]):
        raise ValueError(f"Jacobian input index {i}: the type of the array has no component count")


def shown_numbers(numbers, log_scale):
    """What an image shows of a Jacobian."""
    return np.log10(np.abs(numbers) + FLOOR) if log_scale else numbers


def range_of(matrices):
    """The least and the greatest number, without those that are not known; 0 and 0 if none is."""
    known = [m[~np.isnan(m)] for m in matrices]
    known = [m for m in known if m.size]
    return (min(m.min() for m in known), max(m.max() for m in known)) if known else (0.0, 0.0)


def draw_matrix(axis, numbers, low, high, colormap):
    """Draws a Jacobian as an image. Returns the image."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    extent = [0, numbers.shape[1], 0, numbers.shape[0]]
    image = axis.imshow(
        numbers, cmap=colormap, aspect="auto", interpolation="nearest", extent=extent, vmin=low, vmax=high
    )
    axis.grid(color="black", linewidth=1.0)
    return image
