"""Structures that kernels find by their ids: meshes, hierarchies of boxes, hash grids, volumes."""
