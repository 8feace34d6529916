// Random bodies of kernels that have gradients: straight code, branches, loops with break and continue, early returns,
// in-place updates. Values stay small, so that differences are exact enough; everything is smooth except comparisons
// and kinks. A plain body uses four arrays of float64 and integers; a wide one uses the rest of the language, too.
#pragma once
#include <weft/weft.h>

#include <deque>
#include <functional>
#include <memory>
#include <random>

#include "random_gradient_narrow.h"

namespace weft::test {

/// The sizes that bodies expect of a launch and of their arrays.
struct GradientSizes {
  static constexpr int kThreads = 3;             ///< at most
  static constexpr int kInputs = 6;              ///< elements of x that are read
  static constexpr int kRow = 4;                 ///< elements that a thread owns
  static constexpr int kOutputs = 3;             ///< elements that all threads change
  static constexpr int kRows = kThreads * kRow;  ///< elements of arrays in which threads own theirs
  static constexpr int kPoints = 2;              ///< vectors that a thread owns
  static constexpr int kPicked = 4;              ///< elements seen through indices
};

template <template <class> class F = Host>
struct GradientPart {
  F<double> mass;
  F<vec3d> at;
  F<int> kind;
  F<std::array<double, 2>> weights;
};

struct PlainArrays {
  Arr<const double> x;    ///< read anywhere
  Arr<double> row;        ///< a thread reads and writes the elements that it owns
  Arr<double> out;        ///< added to
  Arr<const int> counts;  ///< by thread, 0 to 4
};

struct WideArrays {
  PlainArrays plain;
  Arr<const double, 2> grid;        ///< kThreads x kRow, read anywhere
  IndexedArr<const double> picked;  ///< read anywhere
  Arr<double, 2> table;             ///< kThreads x kRow, a thread reads and writes the row that it owns
  Arr<double> also;                 ///< used like plain.row, and may be the same array
  Arr<const double> more;           ///< own elements are read; may be the same array as plain.row, also or plain.x
  Arr<double> out2;                 ///< subtracted from; may be the same array as plain.out
  Arr<double> least, most;          ///< kOutputs each, by atomic_min and atomic_max
  Arr<vec3d> points;                ///< kPoints for each thread, read and written
  Arr<const vec3d> poles;           ///< kPoints * kThreads, read anywhere
  Arr<GradientPart<>> parts;        ///< one for each thread, read and written
  Double shift;
};

/// The narrow types in which a wide body computes, too: float32 and float16.
struct NarrowUse {
  bool single = false, half = false;
};

class GradientBody {
 public:
  GradientBody(std::uint64_t seed, const PlainArrays& arrays);
  GradientBody(std::uint64_t seed, const WideArrays& arrays, NarrowNumbers& narrow, NarrowUse use);

  /// Traces the body; once.
  void trace();

 private:
  using Function = std::function<std::tuple<Double, Double>(Double, Double, Int, Arr<double>)>;
  /// The body of a function, which has its parameters, but no other arrays and no Return().
  GradientBody(std::uint64_t seed, const Double& a, const Double& b, const Int& n, const Arr<double>& row);
  std::tuple<Double, Double> results();

  int pick(int n) { return int(random_() % std::uint64_t(n)); }
  bool chance(int one_in) { return pick(one_in) == 0; }
  double real() { return (double(random_() % 2000) - 1000) / 700; }
  Double& var() { return reals_[std::size_t(pick(int(reals_.size())))]; }
  Int& count() { return ints_[std::size_t(pick(int(ints_.size())))]; }
  /// An element of the row that the thread owns.
  Int place();

  Double leaf();
  Double expression(int depth);
  Bool condition();
  void block(int statements, int depth);
  void statement(int depth);
  void add_to_output(const Double& value);
  void leave(int depth);
  void deep();
  void nest(const Int& where, int k, int n);
  /// The body of a loop.
  void loop_block(int statements, int depth);
  void loop_block(int statements, int depth, const Int& counter);

  // The parts of wide bodies alone: random_gradient_wide.cpp.
  void draw_kinds();
  Double wide_expression(int depth);
  void wide_statement(int depth);
  void counted_loop(int depth);
  void while_loop(int depth);
  void extremum();
  void change_points();
  void change_part();
  void change_narrow();
  Vec3d vector(int depth);
  Int own_point();

  std::mt19937_64 random_;
  const PlainArrays* plain_ = nullptr;  ///< null in functions
  const WideArrays* wide_ = nullptr;    ///< null in plain bodies and in functions
  NarrowNumbers* narrow_ = nullptr;
  NarrowUse use_;
  Arr<double> row_;
  Int thread_;
  std::deque<Double> reals_;  // a deque, because a variable that moved would be another one
  std::deque<Int> ints_;
  std::deque<Vec3d> vectors_;
  std::unique_ptr<Vec<4, double>> buffer_;
  std::unique_ptr<Int> extrema_;  ///< the number that the thread has made
  std::vector<Function> functions_;
  int loops_ = 0;
  int budget_ = 1 << 20;  ///< statements that are left
  bool is_deep_ = false;  ///< at most one deep statement, because drivers take long for each
  int palette_[5];
  int expressions_[3], statements_[4];  ///< the kinds that a wide body uses
};

}  // namespace weft::test
