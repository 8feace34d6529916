// Random numbers, written once for both faces: R is the state, std::uint32_t or UInt.
#include "random.h"

#include <numbers>

#include "../ir/module.h"
#include "pcg.h"
#include "search.h"

namespace weft {

namespace {

template <class R>
using FloatOf = FaceLike<R, float>;

/// Declared first in each public function. For a traced state it gives recorded operations the caller's line. A host
/// state is advanced by the trace, not by the threads, which is never meant inside a loop or branch of a kernel.
template <class R>
class DrawSite : detail::CallSite<R> {
 public:
  explicit DrawSite(Loc loc) : detail::CallSite<R>(loc, detail::Rounding::as_written) {
    if constexpr (!any_traced<R>) {
      if (!tracing::Trace::active()) return;
      tracing::Trace& trace = tracing::Trace::current(loc);
      if (trace.builder().depth() > 1)
        ir::fail(
            trace.module(), loc,
            "a random number is drawn from a host value inside traced control flow: it would be drawn once, by the "
            "trace; declare the state as UInt");
    }
  }
};

/// x % 0 is 0, as in kernels.
std::uint32_t modulo(std::uint32_t x, std::uint32_t n) { return n ? x % n : 0; }
Var<std::uint32_t> modulo(const Var<std::uint32_t>& x, const Var<std::uint32_t>& n) { return x % n; }

template <class R>
R draw(R& state) {
  state = detail::pcg(state);
  return state;
}

/// Draws from [0, 1): the upper 24 bits, which float32 holds exactly.
template <class R>
FloatOf<R> uniform(R& state) {
  return cast<float>(draw(state) >> 8u) * 0x1p-24f;
}

template <class R>
struct Turn {
  FloatOf<R> cos, sin;
};

/// Cosine and sine of a uniform angle in [0, 2 pi), computed half a turn back, in [-pi, pi), where devices promise
/// accuracy.
template <class R>
Turn<R> turn(R& state) {
  const FloatOf<R> angle = uniform(state) * (2 * std::numbers::pi_v<float>)-std::numbers::pi_v<float>;
  return {-cos(angle), -sin(angle)};
}

/// A point of the unit sphere at height z and distance s from the axis.
template <class R>
FaceLike<R, vec3> on_sphere(R& state, const FloatOf<R>& z, const FloatOf<R>& s) {
  const Turn<R> t = turn(state);
  return FaceLike<R, vec3>(t.cos * s, t.sin * s, z);
}

// z is uniform (Archimedes): with u = (1 - z) / 2, s = sqrt(1 - z^2) is 2 sqrt(u (1 - u)), which avoids cancellation.
template <class R>
FaceLike<R, vec3> sphere_surface(R& state) {
  const FloatOf<R> u = uniform(state);
  return on_sphere<R>(state, 1 - 2 * u, 2 * sqrt(u * (1 - u)));
}
template <class R>
FaceLike<R, vec3> hemisphere_surface(R& state) {
  const FloatOf<R> u = uniform(state);
  return on_sphere<R>(state, 1 - u, sqrt(u * (2 - u)));
}

/// The radius of a uniform point in the unit ball.
template <class R>
FloatOf<R> ball_radius(R& state) {
  return pow(uniform(state), FloatOf<R>(1 / 3.f));
}

// ---- Poisson

/// Most tries of either method. Both end with probability 1, but a cycle of the generator may be short; so many tries
/// have a probability below 1e-30.
constexpr int kMostSteps = 128;

/// Counts the factors before the product of uniform numbers falls to exp(-mean).
template <class R>
R poisson_by_product(R& state, const FloatOf<R>& mean) {
  const FloatOf<R> limit = select(mean > 0, exp(-mean), FloatOf<R>(1));
  FloatOf<R> product = uniform(state);
  FaceLike<R, int> events = 0;
  while_of<R>([&] { return product > limit && events < kMostSteps; },
              [&] {
                product *= uniform(state);
                events += 1;
              });
  return cast<std::uint32_t>(events);
}

/// k log(k / mean) + mean - k for k > 0; near the mean, where its terms cancel, the series in v = (k - m) / (k + m).
template <class R>
FloatOf<R> deviance(const FloatOf<R>& k, const FloatOf<R>& mean) {
  const FloatOf<R> difference = k - mean, v = difference / (k + mean), v2 = v * v;
  const FloatOf<R> series = v2 * (1 / 3.f + v2 * (1 / 5.f + v2 * (1 / 7.f + v2 * (1 / 9.f))));
  return select(abs(v) < 0.1f, difference * v + 2 * k * v * series, k * log(k / mean) - difference);
}

/// Logarithm of the probability of k events, k >= 0, mean >= 10: Stirling's series, to 3e-4 at k = 1 and 2e-6 above.
template <class R>
FloatOf<R> poisson_log_probability(const FloatOf<R>& k, const FloatOf<R>& mean) {
  const FloatOf<R> n = max(k, FloatOf<R>(1)), r = 1 / n, r2 = r * r;
  const FloatOf<R> stirling = r * (1 / 12.f - r2 * (1 / 360.f - r2 * (1 / 1260.f - r2 * (1 / 1680.f))));
  const FloatOf<R> root = 0.5f * log(2 * std::numbers::pi_v<float> * n);
  return select(k < 1, -mean, -deviance<R>(n, mean) - root - stirling);
}

template <class R>
R poisson_by_rejection(R& state, const FloatOf<R>& mean) {
  using F = FloatOf<R>;
  using B = FaceLike<R, bool>;
  const F b = 0.931f + 2.53f * sqrt(mean), a = 0.02483f * b - 0.059f;
  const F inverse_alpha = 1.1239f + 1.1328f / (b - 3.4f), squeeze = 0.9277f - 3.6224f / (b - 2);
  F events = floor(mean);
  B found = false;
  FaceLike<R, int> tries = 0;
  while_of<R>([&] { return !found && tries < kMostSteps; },
              [&] {
                const F u = uniform(state) - 0.5f;
                const F v = max(uniform(state), F(0x1p-25f));  // both are divisors or arguments of log
                const F edge = max(0.5f - abs(u), F(0x1p-25f));
                const F k = floor((2 * a / edge + b) * u + mean + 0.43f);
                tries += 1;
                found = edge >= 0.07f && v <= squeeze;
                if_(!found && k >= 0 && !(edge < 0.013f && v > edge), [&] {
                  found = log(v * inverse_alpha / (a / (edge * edge) + b)) <= poisson_log_probability<R>(k, mean);
                });
                events = select(found, k, events);
              });
  return cast<std::uint32_t>(events);
}

}  // namespace

// ---- The public functions. R is as deduced from R&&.

namespace detail {

template <class S>
S seeded(const S& seed) {
  return pcg(seed);
}
template <class S>
S seeded(const S& seed, const S& offset) {
  return pcg(S(seed + pcg(offset)));
}

template <RandomState S>
Drawn<S, int> randi_between(S& state, const Drawn<S, int>& lo, const Drawn<S, int>& hi, Loc loc) {
  DrawSite<S> site(loc);
  const S first = cast<std::uint32_t>(lo), extent = cast<std::uint32_t>(hi) - first;
  return cast<int>(S(first + modulo(draw(state), extent)));
}
template <RandomState S>
S randu_between(S& state, const S& lo, const S& hi, Loc loc) {
  DrawSite<S> site(loc);
  return lo + modulo(draw(state), hi - lo);
}
template <RandomState S>
Drawn<S, float> randf_between(S& state, const Drawn<S, float>& lo, const Drawn<S, float>& hi, Loc loc) {
  DrawSite<S> site(loc);
  const FloatOf<S> u = uniform(state), extent = hi - lo;
  // The ends may be further apart than the largest number. They then have different signs, and no sum of parts of them
  // exceeds either.
  const FloatOf<S> x = select(isfinite(extent), extent * u + lo, hi * u + lo * (1 - u));
  return select(x == hi, lo, x);  // rounding up reaches the end in one draw of 2^24
}

Var<int> cdf_index(Var<std::uint32_t>& state, const ArrLayout& cdf, Loc loc) {
  DrawSite<Var<std::uint32_t>> site(loc);
  const Var<float> u = uniform(state);
  const Var<int> size(shape_of(cdf, 0, ir::Type::i32, loc), FromId{});
  const tracing::Id none = tracing::zero(ir::Type::i32);
  const Var<int> found(search(cdf, ir::Type::f32, none, size.read(loc), u.read(loc), true, loc), FromId{});
  return min(found, size - 1);
}
int cdf_index(std::uint32_t& state, std::span<const float> cdf, Loc loc) {
  DrawSite<std::uint32_t> site(loc);
  return min(upper_bound(cdf, uniform(state)), int(cdf.size()) - 1);
}

}  // namespace detail

using detail::Drawn;
using detail::StateOf;

template <class R>
Drawn<StateOf<R>, int> randi(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  return cast<int>(draw(state));
}
template <class R>
StateOf<R> randu(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  return draw(state);
}
template <class R>
Drawn<StateOf<R>, float> randf(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  return uniform(state);
}
template <class R>
Drawn<StateOf<R>, float> randn(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const FloatOf<R> u = uniform(state) + 0x1p-24f;  // in (0, 1]
  const FloatOf<R> c = turn(state).cos;
  return sqrt(max(-2 * log(u), FloatOf<R>(0))) * c;  // a device's log(1) may be slightly above 0
}

template <class R>
Drawn<StateOf<R>, vec2> sample_triangle(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const FloatOf<R> r = sqrt(uniform(state)), v = uniform(state);
  return {1 - r, v * r};
}
template <class R>
Drawn<StateOf<R>, vec2> sample_unit_ring(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const auto t = turn(state);
  return {t.cos, t.sin};
}
template <class R>
Drawn<StateOf<R>, vec2> sample_unit_disk(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const FloatOf<R> r = sqrt(uniform(state));
  const auto t = turn(state);
  return {r * t.cos, r * t.sin};
}
template <class R>
Drawn<StateOf<R>, vec3> sample_unit_sphere_surface(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  return sphere_surface(state);
}
template <class R>
Drawn<StateOf<R>, vec3> sample_unit_sphere(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const auto p = sphere_surface(state);
  return p * ball_radius(state);
}
template <class R>
Drawn<StateOf<R>, vec3> sample_unit_hemisphere_surface(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  return hemisphere_surface(state);
}
template <class R>
Drawn<StateOf<R>, vec3> sample_unit_hemisphere(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const auto p = hemisphere_surface(state);
  return p * ball_radius(state);
}
template <class R>
Drawn<StateOf<R>, vec2> sample_unit_square(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const FloatOf<R> x = uniform(state) - 0.5f, y = uniform(state) - 0.5f;
  return {x, y};
}
template <class R>
Drawn<StateOf<R>, vec3> sample_unit_cube(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const FloatOf<R> x = uniform(state) - 0.5f, y = uniform(state) - 0.5f, z = uniform(state) - 0.5f;
  return {x, y, z};
}

template <class R>
Drawn<StateOf<R>, vec4> sample_unit_hypercube(R&& state, Loc loc) {
  DrawSite<StateOf<R>> site(loc);
  const FloatOf<R> x = uniform(state) - 0.5f, y = uniform(state) - 0.5f;
  const FloatOf<R> z = uniform(state) - 0.5f, w = uniform(state) - 0.5f;
  return {x, y, z, w};
}

template <class R>
StateOf<R> poisson(R&& state, detail::Beside<R, float> mean, Loc loc) {
  using S = StateOf<R>;
  DrawSite<S> site(loc);
  const FloatOf<S> m = clamp(detail::operand<S, float>(mean, loc), 0, 0x1p31f);
  S events = 0u;
  if_(m < 10, [&] { events = poisson_by_product<S>(state, m); }).else_([&] {
    events = poisson_by_rejection<S>(state, m);
  });
  return events;
}

// Instances for states that are variables, and for those used once: randf(rand_init(1, i)).
#define WEFT_INSTANTIATE(S)                                                                                \
  template S detail::seeded(const S&);                                                                     \
  template S detail::seeded(const S&, const S&);                                                           \
  template Drawn<S, int> detail::randi_between(S&, const Drawn<S, int>&, const Drawn<S, int>&, Loc);       \
  template S detail::randu_between(S&, const S&, const S&, Loc);                                           \
  template Drawn<S, float> detail::randf_between(S&, const Drawn<S, float>&, const Drawn<S, float>&, Loc); \
  WEFT_INSTANTIATE_DRAWS(S)                                                                                \
  WEFT_INSTANTIATE_DRAWS(S&)
#define WEFT_INSTANTIATE_DRAWS(R)                                                            \
  template Drawn<R, int> randi<R>(std::type_identity_t<R>&&, Loc);                           \
  template StateOf<R> randu<R>(std::type_identity_t<R>&&, Loc);                              \
  template Drawn<R, float> randf<R>(std::type_identity_t<R>&&, Loc);                         \
  template Drawn<R, float> randn<R>(std::type_identity_t<R>&&, Loc);                         \
  template Drawn<R, vec2> sample_triangle<R>(std::type_identity_t<R>&&, Loc);                \
  template Drawn<R, vec2> sample_unit_ring<R>(std::type_identity_t<R>&&, Loc);               \
  template Drawn<R, vec2> sample_unit_disk<R>(std::type_identity_t<R>&&, Loc);               \
  template Drawn<R, vec3> sample_unit_sphere_surface<R>(std::type_identity_t<R>&&, Loc);     \
  template Drawn<R, vec3> sample_unit_sphere<R>(std::type_identity_t<R>&&, Loc);             \
  template Drawn<R, vec3> sample_unit_hemisphere_surface<R>(std::type_identity_t<R>&&, Loc); \
  template Drawn<R, vec3> sample_unit_hemisphere<R>(std::type_identity_t<R>&&, Loc);         \
  template Drawn<R, vec2> sample_unit_square<R>(std::type_identity_t<R>&&, Loc);             \
  template Drawn<R, vec3> sample_unit_cube<R>(std::type_identity_t<R>&&, Loc);               \
  template Drawn<R, vec4> sample_unit_hypercube<R>(std::type_identity_t<R>&&, Loc);          \
  template StateOf<R> poisson<R>(std::type_identity_t<R>&&, detail::Beside<R, float>, Loc);
WEFT_INSTANTIATE(std::uint32_t)
WEFT_INSTANTIATE(Var<std::uint32_t>)
#undef WEFT_INSTANTIATE
#undef WEFT_INSTANTIATE_DRAWS

}  // namespace weft
