// Drops of a fountain, simulated by weft in the vertex buffer of a renderer.
#pragma once
#include <weft/runtime/kernel_spirv.h>

#include "plain/show.h"

/// A guest that records the steps into the command buffers of the frames.
Guest fountain_guest();

/// The step alone, exported: its arguments are vertices, velocity, first_velocity, age, dt.
weft::SpirvKernel exported_fountain();
