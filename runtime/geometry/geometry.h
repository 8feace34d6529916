// <weft/geometry.h>: meshes, hierarchies of boxes, hash grids, and tests of shapes.
#pragma once

#include "bvh.h"
#include "bvh_query.h"
#include "hash_grid.h"
#include "hash_grid_query.h"
#include "mesh.h"
#include "mesh_file.h"
#include "mesh_query.h"
#include "mesh_shapes.h"
#include "primitives.h"
#include "spatial_order.h"
