// The whole of weft for a program: kernels, devices, arrays, launches.
#pragma once

// X11's headers define Bool as a macro. weft's names are compiled without it and it is put back afterwards: a program
// that includes both writes Var<bool> where the macro hides weft::Bool.
#pragma push_macro("Bool")
#undef Bool

#include "../frontend/edsl/names.h"
#include "../frontend/support/error.h"
#include "array.h"
#include "device.h"
#include "launch.h"

#pragma pop_macro("Bool")
