"""Structures in kernels, which are named by their ids: queries of meshes, trees and grids, values of volumes."""
