// Numbers of fewer bits in random kernels with gradients. The same kernel can be traced with float64 in their place:
// that twin has differences in float64, and the kernel's own gradients are to be near the twin's.
#pragma once
#include <weft/weft.h>

#include <functional>

namespace weft::test {

/// Computations in float32 ("single") and float16 ("half") as a body of float64 sees them.
class NarrowNumbers {
 public:
  using Each = std::function<Double(const Int&)>;
  static constexpr int kKinds = 8;

  virtual ~NarrowNumbers() = default;
  virtual Double compute(bool half, int kind, const Double& a, const Double& b) = 0;
  /// A loop that carries a narrow number.
  virtual Double carry(bool half, const Double& start, const Int& turns, const Each& each) = 0;
  /// Elements that the thread owns.
  virtual Double load(bool half, const Int& at) = 0;
  virtual void store(bool half, const Int& at, const Double& value) = 0;
  virtual void update(bool half, const Int& at, const Double& value) = 0;
  /// Adds to an element that all threads change.
  virtual void add(int at, const Double& value) = 0;
};

/// Narrow numbers with S for float32 and H for float16. With `noise`, each result is off by so many roundings: for
/// twins that show how much roundings matter.
template <class S, class H>
class NarrowOf : public NarrowNumbers {
 public:
  NarrowOf(Arr<S> singles, Arr<H> halves, Arr<S> sums, double noise)
      : singles_(singles), halves_(halves), sums_(sums), noise_(noise) {}

  Double compute(bool half, int kind, const Double& a, const Double& b) override {
    // The number goes through both types: a chain of conversions.
    if (kind == 0) return rounded(half, Double(half ? Var<S>(Var<H>(Var<S>(a))) : Var<S>(a)));
    return rounded(half, half ? formula<H>(kind, a, b) : formula<S>(kind, a, b));
  }
  Double carry(bool half, const Double& start, const Int& turns, const Each& each) override {
    return rounded(half, half ? carried<H>(start, turns, each) : carried<S>(start, turns, each));
  }
  Double load(bool half, const Int& at) override {
    return half ? Double(Var<H>(halves_[at])) : Double(Var<S>(singles_[at]));
  }
  void store(bool half, const Int& at, const Double& value) override {
    if (half)
      halves_[at] = Var<H>(rounded(true, value));
    else
      singles_[at] = Var<S>(rounded(false, value));
  }
  void update(bool half, const Int& at, const Double& value) override {
    if (half)
      halves_[at] += Var<H>(rounded(true, value));
    else
      singles_[at] += Var<S>(rounded(false, value));
  }
  void add(int at, const Double& value) override { atomic_add(sums_[at], Var<S>(rounded(false, value))); }

 private:
  template <class T>
  Double formula(int kind, const Double& a, const Double& b) {
    Var<T> x(a), y(b);
    switch (kind) {
      case 1: return Double(x * y * 0.5);
      case 2: return Double(sin(x) - y * 0.25);
      case 3: return Double(x / (2.0 + y * y));
      case 4: return Double(max(x, y) * 0.5);
      case 5: return Double(sqrt(x * x + 1.0) * 0.5);
      case 6: return Double(exp(-x * x) + tanh(y));
      default: return Double(fma(x, Var<T>(0.5), y));
    }
  }
  template <class T>
  Double carried(const Double& start, const Int& turns, const Each& each) {
    Var<T> v(start);
    for (auto i : range(turns)) v = v * 0.5 + Var<T>(each(Int(i))) * v;
    return Double(v);
  }
  Double rounded(bool half, const Double& value) {
    if (noise_ == 0) return value;
    // The noise is between -1 and 1, and differs at each place.
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    const double at = double(std::int64_t(state_)) / 9.3e18;
    return value * (1 + at * noise_ * (half ? 1.0 / 1024 : 1.0 / (1 << 23)));
  }

  Arr<S> singles_;
  Arr<H> halves_;
  Arr<S> sums_;
  double noise_;
  std::uint64_t state_ = 1;
};

}  // namespace weft::test
