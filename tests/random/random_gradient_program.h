// Random programs that have gradients: launches of wide bodies, copies and fills over arrays that they share.
#pragma once
#include <vector>

#include "random_gradient_body.h"

namespace weft::test {

/// The steps of a program and its first values; its number decides all of it.
struct GradientProgram {
  explicit GradientProgram(std::uint64_t seed);

  /// One launch, copy or fill. Arrays are given by their numbers.
  struct Step {
    enum class Kind : std::uint8_t { launch, copy, fill };
    enum class View : std::uint8_t { whole, strided, of_vectors };  ///< the view that is given as x
    Kind kind = Kind::launch;
    int kernel = 0;     ///< two launches may have the same kernel
    int roles[9] = {};  ///< the arrays in a random order, by purpose
    bool row_is_also = false, outs_are_one = false, transposed = false;
    View x = View::whole;
    int more = 0;    ///< an index of roles: the array that is given as `more`
    int points = 0;  ///< the one of the two arrays of vectors that is written
    int threads = 1;
    double shift = 0;
  };

  static constexpr int kArrays = 9, kVectorArrays = 2;
  /// The numbers that all arrays of a program hold, one array after another.
  static constexpr int kPointNumbers = GradientSizes::kThreads * GradientSizes::kPoints * 3;
  static constexpr int kPartNumbers = GradientSizes::kThreads * 6;
  static constexpr int kNumbers = kArrays * GradientSizes::kRows + kVectorArrays * kPointNumbers + kPartNumbers +
                                  2 * GradientSizes::kRows + GradientSizes::kOutputs;
  static constexpr int kNarrowFrom = kNumbers - 2 * GradientSizes::kRows - GradientSizes::kOutputs;

  std::uint64_t seed;
  std::vector<Step> steps;
  std::vector<std::uint64_t> kernels;  ///< their seeds
  NarrowUse narrow;
  bool deterministic = false;
  int turns = 1, states = 0;  ///< the steps are made `turns` times; states > 0: by Tape::checkpointed()
  std::uint32_t slots[2] = {1, 1};
  std::vector<double> numbers, weights;
  std::vector<int> counts, list;

 private:
  Step launch(std::mt19937_64& random);
};

/// A program as kernels with S for float32 and H for float16: float and half, or double twice for the twin.
template <class S, class H>
class GradientRun {
 public:
  explicit GradientRun(const GradientProgram& program, double noise = 0);

  /// The content of the arrays at the end.
  std::vector<double> values(const Device& device, const std::vector<double>& numbers) const;
  /// The gradients of the weighted sum of the final content by the first content; and the final content.
  struct Gradients {
    std::vector<double> of, values;
  };
  Gradients gradients(const Device& device, std::uint32_t slots) const;
  /// The kernels as text.
  std::string text() const;

 private:
  struct Arrays;
  static auto make_kernel(std::uint64_t seed, NarrowUse use, double noise);

  /// Makes a step. The shift differs by turn, because extrema that are equal in two turns have no differences.
  void step(const GradientProgram::Step& step, const Arrays& arrays, int turn) const;

  const GradientProgram& program_;
  std::vector<std::function<void(const GradientProgram::Step&, const Arrays&, int turn)>> launches_;
  std::vector<std::function<std::string()>> texts_;
};

extern template class GradientRun<double, double>;
extern template class GradientRun<float, half>;

}  // namespace weft::test
