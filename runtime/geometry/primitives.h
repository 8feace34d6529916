// Geometry without trees: rays, closest points, overlaps of single triangles, edges and boxes; on the host and in
// kernels.
#pragma once
#include "shapes/closest.h"
#include "shapes/overlap.h"
#include "shapes/ray.h"
