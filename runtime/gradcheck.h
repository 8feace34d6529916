// gradcheck(): compares the adjoint of a kernel with differences of what the kernel computes.
#pragma once
#include <optional>

#include "launch.h"
#include "tape.h"

namespace weft {

/// The options of gradcheck(). Zeros stand for values that suit the type: a step of 0.001 and a tolerance of 0.01 for
/// float, 6e-6 and 1e-6 for double, 0.05 and 0.1 for half.
struct GradcheckOptions {
  double step = 0;         ///< by how much an element is moved to each side; relative for elements beyond 1
  double tolerance = 0;    ///< of the difference, relative to the larger of 1 and the derivative
  int elements = 64;       ///< at most so many scalars of each array are tried, evenly spread
  std::uint64_t seed = 1;  ///< of the random numbers that weight the outputs
};

/// The result of gradcheck().
struct GradcheckResult {
  bool passed = false;
  double worst = 0;     ///< the largest difference, in units of the tolerance
  std::string message;  ///< where the largest difference is, and both derivatives there
  explicit operator bool() const { return passed; }
};

namespace detail {

/// The arguments of a launch in order, as copies that may be changed; null for values.
class GradientCheck {
 public:
  template <class A>
  A copy(const A& value) {
    arrays_.emplace_back();
    return value;
  }
  template <class T, int N>
  Array<T, N> copy(const Array<T, N>& array) {
    Array<T, N> copied;
    if (add(array, Layout<T>::leaves))
      static_cast<ArrayBase&>(copied) = *arrays_.back().copy;
    else if (!array.is_null())
      arrays_.back().copy = copied = array.clone();
    return copied;
  }
  GradcheckResult run(const ir::Module& kernel, const std::function<void()>& launch, const GradcheckOptions& options);

 private:
  struct Argument {
    std::optional<ArrayBase> original, copy;  ///< none for a value
    std::span<const Leaf> leaves;
    bool again = false;  ///< whether an earlier argument is the same array
  };
  /// \return whether the array was given before; its copy is set then
  bool add(const ArrayBase& array, std::span<const Leaf> leaves);
  std::vector<Argument> arrays_;
};

}  // namespace detail

/// Compares the gradients that a tape computes for one launch of a kernel with central differences, for each array of
/// real numbers among the arguments. The differentiated quantity is the sum of everything that the kernel writes,
/// weighted by random numbers. The arguments are copied and stay as they are. For tests of kernels, best with arrays of
/// double.
///
///     EXPECT_TRUE(gradcheck(energy, n, x, total)) << gradcheck(energy, n, x, total).message;
///
/// A kernel that is not smooth (abs at 0) may fail without a mistake, because differences are no derivative there.
/// Errors: those of launch() and Tape::record(): Error(not_differentiable) for a kernel without a derivative.
/// Cost: two launches for each scalar that is tried, with transfers of all that is written.
template <class... P, class... A>
GradcheckResult gradcheck(const GradcheckOptions& options, const Kernel<P...>& kernel, const detail::Threads& threads,
                          const A&... args) {
  static_assert(((detail::Parameter<P>::parts == 1 && !detail::SpreadStruct<A>)&&...),
                "weft::gradcheck: the arguments are arrays and values, not indexed arrays or structs that hold arrays");
  return detail::called_from(threads.loc, [&] {
    detail::GradientCheck check;
    const std::tuple<A...> copies{check.copy(args)...};
    return check.run(
        kernel.trace(), [&] { std::apply([&](const A&... a) { launch(kernel, threads, a...); }, copies); }, options);
  });
}
/// Compares with the default options.
template <class... P, class... A>
GradcheckResult gradcheck(const Kernel<P...>& kernel, const detail::Threads& threads, const A&... args) {
  return gradcheck(GradcheckOptions(), kernel, threads, args...);
}

}  // namespace weft
