// <weft/volume.h>: sparse volumes, and their values in kernels.
#pragma once

#include "volume.h"
#include "volume_codec.h"
#include "volume_from.h"
#include "volume_info.h"
#include "volume_query.h"
#include "volume_ray.h"
#include "volume_surface.h"
#include "volume_value.h"
