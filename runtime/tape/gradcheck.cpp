// Compares a launch's gradients with central differences of its outputs.
#include "../gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../frontend/adjoint/adjoint.h"
#include "../../frontend/support/error.h"
#include "../work/observe.h"
#include "gradient.h"

namespace weft::detail {

namespace {

using Bytes = std::vector<std::byte>;

double read(const Bytes& bytes, std::size_t at, ir::Type type) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return double(value);
  };
  if (type == ir::Type::f16) return as(half());
  return type == ir::Type::f32 ? as(0.f) : as(0.0);
}

/// \return  the value now stored, rounded
double write(Bytes& bytes, std::size_t at, ir::Type type, double value) {
  const auto as = [&]<class T>(T rounded) { std::memcpy(bytes.data() + at, &rounded, sizeof rounded); };
  if (type == ir::Type::f16)
    as(half(float(value)));
  else if (type == ir::Type::f32)
    as(float(value));
  else
    as(value);
  return read(bytes, at, type);
}

struct Limits {
  double step, tolerance;
};
Limits usual(ir::Type type) {
  if (type == ir::Type::f16) return {0.05, 0.1};
  if (type == ir::Type::f32) return {1e-3, 1e-2};
  return {6e-6, 1e-6};
}

/// An array of the launch that has real numbers.
struct Checked {
  std::size_t parameter;  ///< its index
  View array;
  std::span<const Leaf> leaves;
  Bytes before, weights;
  bool written = false;

  /// Calls f(scalar, place, type) for each real scalar.
  template <class F>
  void each(F f) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < std::size_t(array.size()); ++i)
      for (const Leaf& l : leaves)
        if (ir::is_float(l.type)) f(n++, i * array.element_bytes() + l.offset, l.type);
  }
  /// Describes the place of a scalar: "element 4", or "element (1, 2), scalar 0 of it" for vectors in two dimensions.
  std::string place(std::size_t at) const {
    std::int64_t element = std::int64_t(at / array.element_bytes());
    std::string indices;
    for (int k = array.ndim(); k-- > 0;) {
      indices = fmt::format("{}{}{}", element % array.shape(k), indices.empty() ? "" : ", ", indices);
      element /= array.shape(k);
    }
    std::string text = array.ndim() > 1 ? fmt::format("element ({})", indices) : "element " + indices;
    if (leaves.size() > 1)
      text += fmt::format(", scalar {} of it",
                          std::ranges::find(leaves, at % array.element_bytes(), &Leaf::offset) - leaves.begin());
    return text;
  }
};

/// Draws a number of either sign with magnitude from 0.5 to 1.5: SplitMix64 of Steele, Lea and Flood, 2014.
double weight(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  const double magnitude = 0.5 + double(z >> 11) * 0x1p-53;
  return z & 1 ? magnitude : -magnitude;
}

/// The function under test: from all arrays to the weighted sum of what the kernel writes to them.
class WeighedSum {
 public:
  WeighedSum(const std::function<void()>& launch, std::vector<Checked> checked,
             std::vector<std::pair<View, Bytes>> others)
      : launch_(launch), checked_(std::move(checked)), others_(std::move(others)) {}

  std::vector<Checked>& checked() { return checked_; }

  /// Gives each written scalar a weight. Calls f(array, weights, leaves).
  template <class F>
  void weigh(std::uint64_t random, F f) {
    for (Checked& c : checked_) {
      if (!c.written) continue;
      c.weights.resize(c.before.size());
      c.each([&](std::size_t, std::size_t at, ir::Type type) { write(c.weights, at, type, weight(random)); });
      View weights = View::like(c.array);
      weights.assign(c.weights);
      f(c.array, weights, c.leaves);
    }
  }

  /// The difference quotient for one scalar that moves by `step` both ways.
  double slope(Checked& c, std::size_t at, ir::Type type, double step) {
    const double x = read(c.before, at, type);
    double moved[2];
    std::vector<Bytes> values[2];
    for (int side = 0; side < 2; ++side) {
      reset();
      Bytes changed = c.before;
      moved[side] = write(changed, at, type, side ? x + step : x - step);
      c.array.assign(changed);
      values[side] = outputs();
    }
    c.array.assign(c.before);
    // Differences are taken output by output, so that unchanged ones add no rounding errors.
    double difference = 0;
    for (std::size_t o = 0; o < checked_.size(); ++o) {
      if (!checked_[o].written) continue;
      checked_[o].each([&](std::size_t, std::size_t place, ir::Type t) {
        difference +=
            read(checked_[o].weights, place, t) * (read(values[1][o], place, t) - read(values[0][o], place, t));
      });
    }
    return difference / (moved[1] - moved[0]);
  }

  /// Restores the elements from before the first launch.
  void reset() {
    for (Checked& c : checked_)
      if (c.written) c.array.assign(c.before);
    for (auto& [array, bytes] : others_) array.assign(bytes);
  }

 private:
  std::vector<Bytes> outputs() const {
    launch_();
    std::vector<Bytes> all;
    for (const Checked& c : checked_) all.push_back(c.written ? c.array.bytes() : Bytes());
    return all;
  }

  const std::function<void()>& launch_;
  std::vector<Checked> checked_;
  std::vector<std::pair<View, Bytes>> others_;  ///< arrays without real numbers, which the kernel may also change
};

}  // namespace

bool GradientCheck::add(const ArrayBase& array, std::span<const Leaf> leaves) {
  Argument argument{View(array), std::nullopt, leaves, false};
  for (const Argument& a : arrays_) {
    if (!a.original || array.is_null() || !same_elements(*a.original, array)) continue;
    argument.copy = a.copy;
    argument.again = true;
  }
  arrays_.push_back(argument);
  return argument.again;
}

GradcheckResult GradientCheck::run(const ir::Module& kernel, const std::function<void()>& launch,
                                   const GradcheckOptions& options) {
  const std::uint64_t reals = ir::real_arrays(kernel);
  std::vector<Checked> checked;
  std::vector<std::pair<View, Bytes>> others;
  for (std::size_t k = 0; k < arrays_.size(); ++k) {
    const Argument& a = arrays_[k];
    if (!a.copy || a.copy->size() == 0) continue;
    const View copy(*a.copy);
    const bool written = any(kernel.params[k].access, ir::kChanges);
    if (a.again) {
      for (Checked& c : checked) c.written = c.written || (written && c.array.address() == copy.address());
      continue;
    }
    if (holds_real(a.leaves) && reals >> k & 1) {
      checked.push_back({k, copy, a.leaves, copy.bytes(), {}, written});
      checked.back().array.make_gradient(a.leaves);
    } else if (written) {
      others.emplace_back(copy, copy.bytes());
    }
  }
  WeighedSum sum(launch, std::move(checked), std::move(others));
  std::vector<Seed> seeds;
  sum.weigh(options.seed, [&](const View& array, const View& weights, std::span<const Leaf> leaves) {
    seeds.push_back(Seed(array, weights, leaves));
  });
  if (seeds.empty())
    throw Error(ErrorKind::invalid_argument, "gradcheck() of a kernel that writes no real numbers to its arrays",
                kernel.name, kernel.loc);
  Tape tape;
  tape.record(launch);
  tape.backward(seeds);

  GradcheckResult result;
  result.passed = true;
  bool any_tried = false;
  const auto most = std::size_t(std::max(options.elements, 1));
  for (Checked& c : sum.checked()) {
    const Bytes gradient = c.array.storage()->gradient()->view(c.array, *c.array.storage()).bytes();
    std::size_t count = 0;
    c.each([&](std::size_t, std::size_t, ir::Type) { ++count; });
    const std::size_t stride = std::max<std::size_t>(1, (count + most - 1) / most);
    c.each([&](std::size_t number, std::size_t at, ir::Type type) {
      if (number % stride != 0) return;
      const double found = read(gradient, at, type);
      const double step =
          (options.step > 0 ? options.step : usual(type).step) * std::max(1.0, std::abs(read(c.before, at, type)));
      const double expected = sum.slope(c, at, type, step);
      const double tolerance = (options.tolerance > 0 ? options.tolerance : usual(type).tolerance) *
                               std::max({1.0, std::abs(found), std::abs(expected)});
      double error = std::abs(found - expected) / tolerance;
      if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
      result.passed = result.passed && error <= 1;
      if (any_tried && error <= result.worst) return;
      any_tried = true;
      result.worst = error;
      result.message = fmt::format("{}, {}: {} by the adjoint, {} by differences of {}",
                                   kernel.params[c.parameter].name, c.place(at), found, expected, step);
    });
  }
  sum.reset();
  return result;
}

}  // namespace weft::detail
