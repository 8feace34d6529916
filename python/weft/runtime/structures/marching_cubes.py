"""Surfaces of dense blocks of numbers."""

import numpy as np

from ... import _weft
from ...types import scalars


class MarchingCubes:
    """Makes triangles of the surfaces of blocks of nx * ny * nz numbers. After surface(), `verts` and `indices` have them.

    Points lie at (i, j, k), or between the two corners of the domain, if these are given.
    """

    def __init__(
        self,
        nx,
        ny,
        nz,
        max_verts=0,
        max_tris=0,
        device=None,
        domain_bounds_lower_corner=None,
        domain_bounds_upper_corner=None,
    ):
        self.verts = None
        self.indices = None
        self.device = device
        self.domain_bounds_lower_corner = domain_bounds_lower_corner
        self.domain_bounds_upper_corner = domain_bounds_upper_corner
        self.resize(nx, ny, nz)

    def resize(self, nx, ny, nz, max_verts=0, max_tris=0):
        """Changes the size of the blocks."""
        self.nx, self.ny, self.nz = nx, ny, nz

    def surface(self, field, threshold):
        """Finds the surface on which a block of numbers has the value `threshold`. Errors: ValueError for other blocks."""
        if tuple(field.shape) != (self.nx, self.ny, self.nz):
            raise ValueError(f"the field has the shape {tuple(field.shape)}, not {(self.nx, self.ny, self.nz)}")
        self.verts, self.indices = self.extract_surface_marching_cubes(
            field, threshold, self.domain_bounds_lower_corner, self.domain_bounds_upper_corner
        )

    @staticmethod
    def extract_surface_marching_cubes(
        field, threshold=0.0, domain_bounds_lower_corner=None, domain_bounds_upper_corner=None
    ):
        """The points and indices of a surface, see MarchingCubes."""
        if field.dtype is not scalars.float32 or field.ndim != 3:
            raise TypeError("the field is an array of three dimensions of float32")
        cells = np.maximum(np.array(field.shape) - 1, 1)
        lower = np.zeros(3) if domain_bounds_lower_corner is None else np.asarray(domain_bounds_lower_corner, dtype=float)
        upper = cells if domain_bounds_upper_corner is None else np.asarray(domain_bounds_upper_corner, dtype=float)
        scale = (upper - lower) / cells
        return _weft.surface_of_block(field, float(threshold), scale.tolist(), lower.tolist())
