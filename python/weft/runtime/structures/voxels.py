"""Points that say which voxels a volume has, and the transforms between voxels and world space."""

import numpy as np

from ...types import composites, scalars
from ...types.named import NAMED
from ..array import array
from ..device import of_native

vec3i = NAMED["vec3i"]
# Voxels along the sides of leaves, and of the nodes above them, as shifts.
SIDES = {"leaf": 3, "lower": 7, "upper": 12}


def three(size):
    """The sides of a voxel as three numbers. Errors: ValueError for sides that are not positive and finite; TypeError for what
    are no numbers.
    """
    if size is None or isinstance(size, (str, bytes)):
        raise TypeError(f"voxel_size is a number or three, not {size!r}")
    sides = np.broadcast_to(np.asarray(size, dtype=np.float64), (3,)).copy()
    if not np.all(sides > 0) or not np.all(np.isfinite(sides)):
        raise ValueError(f"voxel_size must be positive and finite, got {size}")
    return sides


def matrix_of(voxel_size, transform):
    """The matrix from index to world space. Errors: ValueError for both or neither of the two."""
    if (voxel_size is None) == (transform is None):
        raise ValueError("either voxel_size or transform must be given")
    if transform is None:
        return np.diag(three(voxel_size))
    return np.asarray(transform, dtype=np.float64).reshape(3, 3)


def type_of_background(given, numbers):
    """The type of values for a background: that of a value of the package; bare integers are int32, other numbers float32,
    three numbers vec3, four vec4.
    """
    if isinstance(given, (scalars.Scalar, composites.Composite)):
        return type(given)
    if numbers.size == 1:
        return scalars.int32 if isinstance(given, (int, np.integer)) and not isinstance(given, bool) else scalars.float32
    if numbers.size in (3, 4):
        return NAMED[f"vec{numbers.size}f"]
    raise ValueError(f"a background has 1, 3 or 4 numbers, not {numbers.size}")


def voxels_of(points, matrix, translation, mask=None):
    r"""The voxels (vec3i) of an array of voxels, or of points of world space.

    \param mask  an array of numbers, 0 for points that do not count
    Errors: TypeError for what is no array; RuntimeError for elements that are no points, and for another number of masks.
    """
    if not hasattr(points, "native_device"):
        raise TypeError("the points of a volume are an array")
    if points.dtype is vec3i and mask is None:
        return points.contiguous()
    numbers = points.numpy()
    if numbers.ndim != 2 or numbers.shape[1] != 3:
        raise RuntimeError(f"the points of a volume are vec3i or vec3, or rows of three, not {points.shape} of {points.dtype}")
    if mask is not None:
        if mask.shape != (len(numbers),):
            raise RuntimeError(f"point_mask has the shape {mask.shape}, and there are {len(numbers)} points")
        numbers = numbers[mask.numpy() != 0]
    if not np.issubdtype(numbers.dtype, np.integer):
        numbers = np.floor((numbers - translation) @ np.linalg.inv(matrix).T + 0.5)
    return array(numbers.astype(np.int32), dtype=vec3i, device=of_native(points.native_device))


def nodes_of(voxels):
    """The numbers of leaves, lower and upper nodes in which voxels (an array of NumPy's) lie."""
    return tuple(len(np.unique(voxels >> side, axis=0)) for side in SIDES.values())
