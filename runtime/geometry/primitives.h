// Geometry without trees: rays, closest points, overlaps of single triangles, edges and boxes; on the host and in
// kernels.
#pragma once
#include "closest.h"
#include "overlap.h"
#include "ray.h"
