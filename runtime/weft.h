// <weft/weft.h>: everything that most programs need: kernels, devices, arrays, launches, gradients.
#pragma once

// X11's headers define Bool as a macro, so weft's names are compiled without the macro, which is put back afterwards. A
// program that includes both writes Var<bool> where the macro hides weft::Bool.
#pragma push_macro("Bool")
#undef Bool

// This order keeps the compiler's messages about mistakes in kernels short: they name few headers.
// clang-format off
#include "../frontend/language/var.h"
#include "../frontend/language/vec_var.h"
#include "../frontend/language/mat_var.h"
#include "../frontend/language/arr.h"
#include "../frontend/library/mismatch.h"
#include "../frontend/library/vector.h"
#include "../frontend/library/function_mismatch.h"
#include "../frontend/library/matrix.h"
#include "../frontend/library/quaternion.h"
#include "../frontend/library/transform.h"
#include "../frontend/language/atomic.h"
#include "../frontend/kernels/group.h"
#include "../frontend/kernels/names.h"
#include "../frontend/library/linalg.h"
#include "../frontend/library/special.h"
#include "../frontend/library/random.h"
#include "../frontend/library/noise.h"
#include "../frontend/library/search.h"
#include "../frontend/language/report.h"
#include "../frontend/kernels/indexed_arr.h"
#include "../frontend/language/detach.h"
#include "../frontend/kernels/func_derivatives.h"
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
