// The whole of weft for a program: kernels, devices, arrays, launches.
#pragma once

// X11's headers define Bool as a macro. weft's names are compiled without it and it is put back afterwards: a program
// that includes both writes Var<bool> where the macro hides weft::Bool.
#pragma push_macro("Bool")
#undef Bool

// In this order the compiler's messages about mistakes in kernels name few headers.
// clang-format off
#include "../frontend/edsl/var.h"
#include "../frontend/edsl/vec_var.h"
#include "../frontend/edsl/mat_var.h"
#include "../frontend/edsl/arr.h"
#include "../frontend/edsl/mismatch.h"
#include "../frontend/edsl/vector.h"
#include "../frontend/edsl/function_mismatch.h"
#include "../frontend/edsl/matrix.h"
#include "../frontend/edsl/quaternion.h"
#include "../frontend/edsl/transform.h"
#include "../frontend/edsl/atomic.h"
#include "../frontend/edsl/group.h"
#include "../frontend/edsl/names.h"
#include "../frontend/edsl/linalg.h"
#include "../frontend/edsl/special.h"
#include "../frontend/edsl/random.h"
#include "../frontend/edsl/noise.h"
#include "../frontend/edsl/search.h"
#include "../frontend/edsl/report.h"
#include "../frontend/edsl/indexed_arr.h"
#include "../frontend/edsl/detach.h"
#include "../frontend/edsl/func_derivatives.h"
// clang-format on
#include "../frontend/support/error.h"
#include "array.h"
#include "array_create.h"
#include "device.h"
#include "gradcheck.h"
#include "indexed_array.h"
#include "jacobian.h"
#include "kernel_spirv.h"
#include "launch.h"
#include "report.h"
#include "tape.h"

#pragma pop_macro("Bool")
