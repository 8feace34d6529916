// Drops of a fountain, simulated by weft in the vertex buffer of a renderer.
#pragma once
#include <weft/runtime/kernel_spirv.h>

#include "plain/show.h"

/// Steps in the commands of the frames.
Guest fountain_guest();

/// The step alone: the arguments are vertices, velocity, first_velocity, age, dt.
weft::SpirvKernel exported_fountain();
