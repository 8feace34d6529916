// The kernel of Adam's step.
#include "adam.h"

#include <cmath>

using namespace weft;

namespace {

constexpr float kMeanDecay = 0.9f, kSquareDecay = 0.99f;

// The means start at 0, for which `mean_scale` and `square_scale` correct.
auto adam_kernel = kernel("adam", [](Arr<float, 2> x, Arr<const float, 2> gradient, Arr<float, 2> mean,
                                     Arr<float, 2> square, Float rate, Float mean_scale, Float square_scale) {
  auto [i, j] = tid<2>();
  Float g = gradient(i, j);
  Float m = kMeanDecay * mean(i, j) + (1 - kMeanDecay) * g;
  Float s = kSquareDecay * square(i, j) + (1 - kSquareDecay) * g * g;
  mean(i, j) = m;
  square(i, j) = s;
  x(i, j) = max(x(i, j) - rate * m * mean_scale / (sqrt(s * square_scale) + 1e-12f), 0);
});

}  // namespace

Adam::Adam(const Array<float, 2>& values)
    : values_(values),
      mean_(zeros<float, 2>(values.device(), values.extent())),
      square_(zeros<float, 2>(values.device(), values.extent())) {}

void Adam::step(float rate) {
  ++steps_;
  const float mean_scale = 1 / (1 - std::pow(kMeanDecay, float(steps_)));
  const float square_scale = 1 / (1 - std::pow(kSquareDecay, float(steps_)));
  launch(adam_kernel, values_.extent(), values_, values_.grad(), mean_, square_, rate, mean_scale, square_scale);
}
