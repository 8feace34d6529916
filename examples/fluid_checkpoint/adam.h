// Adam: gradient descent with a rate of its own for each number (Kingma and Ba, 2015).
#pragma once
#include <weft/weft.h>

/// Improves an array of densities, which are never negative, by its gradient.
class Adam {
 public:
  explicit Adam(const weft::Array<float, 2>& values);

  /// Moves the values against values.grad().
  /// \param rate  the approximate change of a number
  void step(float rate);

 private:
  weft::Array<float, 2> values_, mean_, square_;
  int steps_ = 0;
};
