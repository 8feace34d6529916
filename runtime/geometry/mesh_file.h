// Triangle meshes from files and to files: OBJ, PLY and STL.
#pragma once
#include <string>

#include "../../frontend/support/loc.h"
#include "mesh_data.h"

namespace weft {

/// Reads a mesh; the ending of the path, in upper or lower case, says how: .obj, .ply or .stl.
///
/// The points are those of the file, in its order, of OBJ and PLY; an STL file repeats the points of each triangle, and
/// equal ones become one. Polygons are cut into triangles, and triangle strips of PLY too. Any polygon that does not
/// cross itself is covered exactly once; one that does gives triangles of which some lie backwards. Everything else in
/// a file (normals, colours, textures, groups, faces of fewer than three corners) is passed over. PLY may be text or
/// binary of either byte order, STL text or binary; lines of text end with LF, CR LF or CR. Triangles without area are
/// kept, and so are points that none uses. Errors: Error(invalid_argument) for another ending. Error(io), which names
/// the file and the reason, and the line where there are lines, when it cannot be read to its end, is no regular file,
/// is damaged, has coordinates that are not finite numbers of float32, faces with points that are not there, a polygon
/// of more than 128 corners that crosses itself, or no triangle at all. Error(out_of_memory) when the mesh does not
/// fit. Cost: about the size of the file in memory, besides the mesh; time by its size, and for polygons by corners
/// times their logarithm in practice.
MeshData load_mesh(const std::string& path, Loc loc = Loc::here());

/// Writes a mesh so that load_mesh() reads the same points and indices (of STL: the same triangles). .obj is text, .ply
/// and .stl are binary. A file of that name is replaced, and folders are made that are not there.
/// Errors: Error(invalid_argument) for another ending, for indices that are not three for each triangle or that lie out
/// of range, and for coordinates that are not finite; Error(io) when the file cannot be written, Error(out_of_memory)
/// when its content does not fit. A file that cannot be written is left as it was.
void save_mesh(const std::string& path, const MeshData& mesh, Loc loc = Loc::here());

}  // namespace weft
