// The steps of a program, drawn from its number, and its kernels over arrays of the types in which it computes.
#include "random_gradient_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../frontend/ir/module.h"

namespace weft::test {

using Sizes = GradientSizes;
using Step = GradientProgram::Step;

namespace {

/// The purposes of the arrays of a launch, as indices of Step::roles.
enum Role { kX, kGrid, kRowOf, kTable, kOut, kLeast, kMost, kSpare, kSpareOut };

int pick(std::mt19937_64& random, int n) { return int(random() % std::uint64_t(n)); }

double number(std::mt19937_64& random) { return double(pick(random, 20001) - 10000) / 9000; }

/// Numbers that float16 holds too, all of different size, because min, max and abs have kinks between equal ones.
std::vector<double> half_numbers(std::mt19937_64& random, int count) {
  std::vector<double> found;
  while (int(found.size()) < count) {
    const double v = double(pick(random, 2047) - 1023) / 1024;
    if (std::ranges::none_of(found, [&](double w) { return std::abs(w) == std::abs(v); })) found.push_back(v);
  }
  return found;
}

template <class T>
Double weighted(const Var<T>& a, const Var<T>& w) {
  if constexpr (std::is_same_v<T, GradientPart<>>)
    return a.mass * w.mass + dot(a.at, w.at) + a.weights[0] * w.weights[0] + a.weights[1] * w.weights[1];
  else if constexpr (std::is_same_v<T, vec3d>)
    return dot(a, w);
  else
    return Double(a) * Double(w);
}

/// Adds the elements to the loss, each times its weight.
template <class T>
void add_weighted(const Array<T>& a, const Array<T>& weights, const Array<double>& loss) {
  static const auto k = kernel("weighted", [](Arr<const T> a, Arr<const T> w, Arr<double> loss) {
    Int i = tid();
    atomic_add(loss[0], weighted<T>(Var<T>(a[i]), Var<T>(w[i])));
  });
  launch(k, int(a.shape(0)), a, weights, loss);
}

}  // namespace

Step GradientProgram::launch(std::mt19937_64& random) {
  Step s;
  if (!kernels.empty() && pick(random, 4) == 0) {
    s.kernel = pick(random, int(kernels.size()));
  } else {
    s.kernel = int(kernels.size());
    kernels.push_back(random());
  }
  std::iota(s.roles, s.roles + kArrays, 0);
  for (int k = kArrays - 1; k > 0; --k) std::swap(s.roles[k], s.roles[pick(random, k + 1)]);
  s.row_is_also = pick(random, 3) == 0;
  s.outs_are_one = pick(random, 2) == 0;
  s.transposed = pick(random, 5) == 0;
  s.x = pick(random, 3) != 0 ? Step::View::whole : pick(random, 2) ? Step::View::strided : Step::View::of_vectors;
  const int more[] = {kX, kRowOf, kSpare, kGrid};
  s.more = more[pick(random, 4)];
  // A view of another shape would share a part of written memory, or be read as another type.
  if (s.more == kX && s.x != Step::View::whole) s.more = kSpare;
  if (s.more == kGrid) s.transposed = false;
  s.points = pick(random, kVectorArrays);
  s.threads = pick(random, 3) == 0 ? pick(random, Sizes::kThreads) + 1 : Sizes::kThreads;
  s.shift = number(random);
  return s;
}

GradientProgram::GradientProgram(std::uint64_t seed) : seed(seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + 77);
  const int kinds = pick(random, 6);
  narrow = {kinds == 0 || kinds == 1, kinds == 1 || kinds == 2};
  deterministic = !narrow.half && pick(random, 4) == 0;
  const int launches = pick(random, 3) == 0 ? 1 : pick(random, 3) + 2;
  for (int k = 0; k < launches; ++k) {
    steps.push_back(launch(random));
    if (pick(random, 6) != 0) continue;
    Step between;
    between.kind = pick(random, 2) ? Step::Kind::copy : Step::Kind::fill;
    between.roles[0] = pick(random, kArrays);
    between.roles[1] = (between.roles[0] + 1 + pick(random, kArrays - 1)) % kArrays;
    between.shift = number(random);
    steps.push_back(between);
  }
  if (pick(random, 6) == 0) {
    turns = pick(random, 3) + 1;
    states = pick(random, 2) + 1;
  }
  for (std::uint32_t& n : slots) n = std::uint32_t(pick(random, 6)) + 1;
  for (int k = 0; k < kNarrowFrom; ++k) numbers.push_back(number(random));
  for (double v : half_numbers(random, kNumbers - kNarrowFrom)) numbers.push_back(v);
  for (int k = 0; k < kNumbers; ++k) weights.push_back(double(pick(random, 141) - 70) / 64);
  for (int k = 0; k < Sizes::kThreads; ++k) counts.push_back(pick(random, 5));
  for (int k = 0; k < Sizes::kPicked; ++k) list.push_back(pick(random, Sizes::kInputs));
}

template <class S, class H>
struct GradientRun<S, H>::Arrays {
  std::vector<Array<double>> doubles;
  std::vector<Array<vec3d>> vectors;
  Array<GradientPart<>> parts;
  Array<S> singles, sums;
  Array<H> halves;
  Array<int> counts, list;

  Arrays(const Device& device, const GradientProgram& program, const std::vector<double>& numbers) {
    const double* at = numbers.data();
    const auto next = [&] { return *at++; };
    const auto array_of = [&]<class T>(T, int n) {
      std::vector<T> values;
      for (int k = 0; k < n; ++k) values.push_back(T(next()));
      return Array<T>(device, values);
    };
    for (int k = 0; k < GradientProgram::kArrays; ++k) doubles.push_back(array_of(double(), Sizes::kRows));
    for (int k = 0; k < GradientProgram::kVectorArrays; ++k) {
      std::vector<vec3d> values(GradientProgram::kPointNumbers / 3);
      for (vec3d& v : values)
        for (int c = 0; c < 3; ++c) v[c] = next();
      vectors.emplace_back(device, values);
    }
    std::vector<GradientPart<>> values(Sizes::kThreads);
    for (GradientPart<>& part : values) {
      part.mass = next();
      for (int c = 0; c < 3; ++c) part.at[c] = next();
      for (double& w : part.weights) w = next();
      part.kind = 1;
    }
    parts = Array<GradientPart<>>(device, values);
    singles = array_of(S(), Sizes::kRows);
    halves = array_of(H(), Sizes::kRows);
    sums = array_of(S(), Sizes::kOutputs);
    counts = Array<int>(device, program.counts);
    list = Array<int>(device, program.list);
  }

  template <class F>
  void each_with(const Arrays& other, F f) const {
    for (std::size_t k = 0; k < doubles.size(); ++k) f(doubles[k], other.doubles[k]);
    for (std::size_t k = 0; k < vectors.size(); ++k) f(vectors[k], other.vectors[k]);
    f(parts, other.parts);
    f(singles, other.singles);
    f(halves, other.halves);
    f(sums, other.sums);
  }
  template <class F>
  void each(F f) const {
    each_with(*this, [&](const auto& a, const auto&) { f(a); });
  }

  std::vector<double> numbers() const {
    std::vector<double> all;
    each([&](const auto& a) { add(all, a.to_vector()); });
    return all;
  }
  std::vector<double> gradients() const {
    std::vector<double> all;
    each([&](const auto& a) { add(all, a.grad().to_vector()); });
    return all;
  }

  static void add(std::vector<double>& all, const std::vector<vec3d>& values) {
    for (const vec3d& v : values) all.insert(all.end(), {v[0], v[1], v[2]});
  }
  static void add(std::vector<double>& all, const std::vector<GradientPart<>>& values) {
    for (const GradientPart<>& part : values)
      all.insert(all.end(), {part.mass, part.at[0], part.at[1], part.at[2], part.weights[0], part.weights[1]});
  }
  template <class T>
  static void add(std::vector<double>& all, const std::vector<T>& values) {
    for (T v : values) all.push_back(double(v));
  }
};

template <class S, class H>
auto GradientRun<S, H>::make_kernel(std::uint64_t seed, NarrowUse use, double noise) {
  return kernel("random", [=](Arr<const double> x, Arr<const double, 2> grid, IndexedArr<const double> picked,
                              Arr<double> row, Arr<double, 2> table, Arr<double> also, Arr<const double> more,
                              Arr<double> out, Arr<double> out2, Arr<double> least, Arr<double> most, Arr<vec3d> points,
                              Arr<const vec3d> poles, Arr<GradientPart<>> parts, Arr<S> singles, Arr<H> halves,
                              Arr<S> sums, Arr<const int> counts, Double shift) {
    const WideArrays arrays{
        {x, row, out, counts}, grid, picked, table, also, more, out2, least, most, points, poles, parts, shift};
    NarrowOf<S, H> narrow(singles, halves, sums, noise);
    GradientBody(seed, arrays, narrow, use).trace();
  });
}

template <class S, class H>
GradientRun<S, H>::GradientRun(const GradientProgram& program, double noise) : program_(program) {
  for (std::uint64_t seed : program.kernels) {
    const auto made = make_kernel(seed, program.narrow, noise);
    texts_.push_back([made] { return made.dump("ir"); });
    launches_.push_back([made](const Step& s, const Arrays& a, int turn) {
      const auto array = [&](Role role) { return a.doubles[std::size_t(s.roles[role])]; };
      const Array<vec3d>&points = a.vectors[std::size_t(s.points)], &poles = a.vectors[std::size_t(1 - s.points)];
      Array<double> x = array(kX);
      if (s.x == Step::View::strided) x = x.slice(1, Sizes::kRows, 2);
      if (s.x == Step::View::of_vectors) x = poles.scalars().flatten();
      Array<double, 2> grid = array(kGrid).template reshape<2>({Sizes::kThreads, Sizes::kRow});
      if (s.transposed) grid = array(kGrid).template reshape<2>({Sizes::kRow, Sizes::kThreads}).transpose();
      const Array<double, 2> table = array(kTable).template reshape<2>({Sizes::kThreads, Sizes::kRow});
      weft::launch(made, s.threads, x, grid, indexed(array(kX), a.list), array(kRowOf), table,
                   array(s.row_is_also ? kRowOf : kSpare), array(Role(s.more)), array(kOut),
                   array(s.outs_are_one ? kOut : kSpareOut), array(kLeast), array(kMost), points, poles, a.parts,
                   a.singles, a.halves, a.sums, a.counts, s.shift + 0.0231 * turn);
    });
  }
}

template <class S, class H>
void GradientRun<S, H>::step(const Step& step, const Arrays& arrays, int turn) const {
  const auto array = [&](int k) { return arrays.doubles[std::size_t(step.roles[k])]; };
  if (step.kind == Step::Kind::launch) launches_[std::size_t(step.kernel)](step, arrays, turn);
  if (step.kind == Step::Kind::copy) copy(array(0), array(1));
  if (step.kind == Step::Kind::fill) array(0).fill(step.shift);
}

template <class S, class H>
std::vector<double> GradientRun<S, H>::values(const Device& device, const std::vector<double>& numbers) const {
  const Arrays arrays(device, program_, numbers);
  for (int turn = 0; turn < program_.turns; ++turn)
    for (const Step& s : program_.steps) step(s, arrays, turn);
  return arrays.numbers();
}

template <class S, class H>
auto GradientRun<S, H>::gradients(const Device& device, std::uint32_t slots) const -> Gradients {
  const Arrays arrays(device, program_, program_.numbers), weights(device, program_, program_.weights);
  arrays.each([](const auto& a) { a.requires_grad(); });
  const auto loss = zeros<double>(device, 1);
  Tape tape({.loop_slots = slots, .deterministic = program_.deterministic});
  const auto once = [&](int turn) {
    for (const Step& s : program_.steps) step(s, arrays, turn);
  };
  tape.record([&] {
    if (program_.states > 0)
      tape.checkpointed(program_.turns, program_.states, once);
    else
      once(0);
    arrays.each_with(weights, [&](const auto& a, const auto& w) { add_weighted(a, w, loss); });
  });
  Gradients found;
  found.values = arrays.numbers();
  try {
    tape.backward(loss);
    device.synchronize();
  } catch (const Error& e) {
    throw std::runtime_error(fmt::format("seed {}: {}\n{}", program_.seed, e.what(), text()));
  }
  found.of = arrays.gradients();
  const std::vector<double> after = arrays.numbers();
  for (std::size_t k = 0; k < after.size(); ++k)
    if (after[k] != found.values[k] && !(std::isnan(after[k]) && std::isnan(found.values[k])))
      ADD_FAILURE() << text() << "the way back left number " << k << " at " << after[k] << ", not " << found.values[k];
  return found;
}

template <class S, class H>
std::string GradientRun<S, H>::text() const {
  std::string all;
  for (const Step& s : program_.steps) {
    const char* const kinds[] = {"launch", "copy", "fill"};
    all +=
        fmt::format("{} of kernel {}, {} threads, shift {}, arrays {}, also {}, more {}, out2 {}, x {}, points {}{}\n",
                    kinds[int(s.kind)], s.kernel, s.threads, s.shift, fmt::join(s.roles, " "),
                    s.roles[s.row_is_also ? kRowOf : kSpare], s.roles[s.more],
                    s.roles[s.outs_are_one ? kOut : kSpareOut], int(s.x), s.points, s.transposed ? ", transposed" : "");
  }
  all +=
      fmt::format("{} turns, {} states, deterministic: {}\n", program_.turns, program_.states, program_.deterministic);
  for (const auto& text : texts_) all += text();
  return all;
}

template class GradientRun<double, double>;
template class GradientRun<float, half>;

}  // namespace weft::test
