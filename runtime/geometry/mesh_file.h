// Reads and writes triangle meshes: OBJ, PLY and STL.
#pragma once
#include <string>

#include "../../frontend/support/loc.h"
#include "mesh_data.h"

namespace weft {

/// Reads a mesh. The ending of the path, in upper or lower case, chooses the format: .obj, .ply or .stl.
///
/// OBJ and PLY keep the points of the file in their order; STL repeats the points of each triangle, and equal ones
/// become one. Polygons are cut into triangles, and so are triangle strips of PLY. Any polygon that does not cross
/// itself is covered exactly once; one that does gives some triangles that lie backwards. Everything else in a file
/// (normals, colours, textures, groups, faces of fewer than three corners) is ignored. PLY may be text or binary of
/// either byte order, STL text or binary; lines of text end with LF, CR LF or CR. Triangles without area are kept, and
/// so are unused points.
///
/// Errors: Error(invalid_argument) for another ending; Error(io), which names the file, the reason and the line, for a
/// file that cannot be read to its end or does not hold a mesh; Error(out_of_memory) when the mesh does not fit. See
/// docs/geometry.md.
/// Cost: memory of about the file's size in addition to the mesh; time by the file's size, and for polygons in practice
/// by corners times their logarithm.
MeshData load_mesh(const std::string& path, Loc loc = Loc::here());

/// Writes a mesh so that load_mesh() reads the same points and indices (from STL the same triangles). .obj is text,
/// .ply and .stl are binary. Replaces a file of that name, and makes folders that do not exist.
/// Errors: Error(invalid_argument) for another ending, for indices that are not three for each triangle or that lie out
/// of range, and for coordinates that are not finite; Error(io) when the file cannot be written, Error(out_of_memory)
/// when its content does not fit. A file that cannot be written stays as it was.
void save_mesh(const std::string& path, const MeshData& mesh, Loc loc = Loc::here());

}  // namespace weft
