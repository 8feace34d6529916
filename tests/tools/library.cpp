// A shared library with kernels at namespace scope, for the test of weft-kernels.
#include <weft/weft.h>

using namespace weft;

namespace {

const auto saxpy = kernel("saxpy", [](Arr<const float> x, Arr<float> y, Float a) { y[tid()] += a * x[tid()]; });

const auto halves = kernel("halves of doubles", [](Arr<double> x) { x[tid()] *= 0.5; });

// A second kernel of the same name.
const auto other = kernel("saxpy", [](Arr<const vec3> x, Arr<vec3> y, Float a) { y[tid()] += x[tid()] * a; });

const auto prints = kernel("prints", [](Arr<float> x) { print("x is", x[tid()]); });

}  // namespace
