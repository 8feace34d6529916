// Random numbers in kernels and on the host: a 32-bit state that each draw advances.
#pragma once
#include <span>

#include "../language/arr.h"
#include "../language/face.h"

namespace weft {

/// The state of a stream of random numbers: a UInt variable in a kernel, a std::uint32_t on the host.
///
/// A draw replaces the state by its hash (pcg.h), which is also the number drawn; other distributions use one state per
/// number. Seeds and draws of integers are the same on all devices and on the host, and those of `randf` are bit by
/// bit; results of functions (log, cos, ...) agree within the limits of these (docs/semantics.md).
///
/// The hash is a permutation of the 2^32 states with 31 cycles, and a stream repeats after the length of its own. One
/// seed in 850 is on a cycle shorter than 19 million, one in 4000 on one shorter than a million, one in 90,000 on one
/// shorter than 20,000. Streams of many draws are better seeded anew for each step: rand_init(step, i).
/// Gradient: none to the state; lo, hi and the like receive theirs.
template <class R>
concept RandomState = std::is_same_v<R, std::uint32_t> || std::is_same_v<R, Var<std::uint32_t>>;

namespace detail {

// Assertions find mistakes, not constraints, so that each is one short message.

/// The face of a state that is given as R&&, or a message.
template <class R>
struct State {
  using V = std::remove_reference_t<R>;
  static constexpr bool ok = RandomState<V>;
  static_assert(ok,
                "weft: the state of random numbers is a variable of type UInt, on the host "
                "std::uint32_t: UInt rng = rand_init(seed, tid());");
  using type = Face<any_traced<V>, std::uint32_t>;
};
template <class R>
using StateOf = typename State<R>::type;
template <class R, class T>
using Drawn = Face<any_traced<R>, T>;

/// An operand beside the state R: in a kernel any that converts to T, on the host a number.
template <class R, class T>
using Beside = std::conditional_t<any_traced<R>, In<T>, T>;
template <class R, class T, class... A>
struct Operands {
  static constexpr bool bounds = (std::is_convertible_v<const A&, Beside<R, T>> && ...);
  static constexpr bool ok = bounds && State<R>::ok;
  static_assert(bounds, "weft: a bound is not of the type of the numbers drawn; convert it, as in Float(i)");
  using type = Drawn<StateOf<R>, T>;
};
template <class R, class T, class A>
auto operand(const A& a, [[maybe_unused]] Loc loc) {
  if constexpr (std::is_same_v<A, In<T>>)
    return Var<T>(a.id, FromId{});
  else if constexpr (any_traced<R>)
    return Var<T>(In<T>(a, loc).id, FromId{});
  else
    return static_cast<T>(a);
}

/// Draw numbers between bounds; S is the state, std::uint32_t or UInt.
template <RandomState S>
Drawn<S, int> randi_between(S& state, const Drawn<S, int>& lo, const Drawn<S, int>& hi, Loc loc);
template <RandomState S>
S randu_between(S& state, const S& lo, const S& hi, Loc loc);
template <RandomState S>
Drawn<S, float> randf_between(S& state, const Drawn<S, float>& lo, const Drawn<S, float>& hi, Loc loc);

Var<int> cdf_index(Var<std::uint32_t>& state, const ArrLayout& cdf, Loc loc);
int cdf_index(std::uint32_t& state, std::span<const float> cdf, Loc loc);
template <class R, class C>
struct CdfOperand {
  static constexpr bool traced = std::is_same_v<C, Arr<float>> || std::is_same_v<C, Arr<const float>>;
  static constexpr bool match = any_traced<R> ? traced : std::is_convertible_v<const C&, std::span<const float>>;
  static constexpr bool ok = match && State<R>::ok;
  static_assert(match, "weft: the distribution is an Arr<const float>, on the host a container of floats");
  using type = Drawn<StateOf<R>, int>;
  static decltype(auto) get(const C& cdf) {
    if constexpr (traced)
      return cdf.layout();
    else
      return std::span<const float>(cdf);
  }
};

template <class S>
S seeded(const S& seed);
template <class S>
S seeded(const S& seed, const S& offset);

/// The low 32 bits of an integer, traced or not.
template <bool Traced, class A>
Face<Traced, std::uint32_t> low_bits(const A& a, Loc loc) {
  if constexpr (any_traced<A>)
    return cast<std::uint32_t>(a, loc);
  else
    return Face<Traced, std::uint32_t>(static_cast<std::uint32_t>(a));
}
template <class A>
inline constexpr bool is_integer = IntegerScalar<HostOf<A>>;
template <class... A>
struct Seeds {
  static_assert((is_integer<A> && ...), "weft: seeds and offsets of random numbers are integers");
  using type = Face<any_traced<A...>, std::uint32_t>;
};

}  // namespace detail

/// A state from a seed, or from a seed and an offset that tells streams apart, usually the thread: `UInt rng =
/// rand_init(42, tid());`. Takes integers of any type and face; the lower 32 bits of 64 count. From host values alone
/// it is a host value: declare it as UInt in a kernel, because the trace would draw from a std::uint32_t only once
/// (inside traced control flow that is refused).
/// Source: pcg(seed) and pcg(seed + pcg(offset)), as in Warp.
template <class A>
typename detail::Seeds<A>::type rand_init(const A& seed, Loc loc = Loc::here()) {
  detail::CallSite<typename detail::Seeds<A>::type> site(loc);
  return detail::seeded(detail::low_bits<any_traced<A>>(seed, loc));
}
template <class A, class B>
typename detail::Seeds<A, B>::type rand_init(const A& seed, const B& offset, Loc loc = Loc::here()) {
  constexpr bool traced = any_traced<A, B>;
  detail::CallSite<typename detail::Seeds<A, B>::type> site(loc);
  return detail::seeded(detail::low_bits<traced>(seed, loc), detail::low_bits<traced>(offset, loc));
}

/// An integer, each of the 2^32 equally likely.
template <class R>
detail::Drawn<detail::StateOf<R>, int> randi(R&& state, Loc loc = Loc::here());
template <class R>
detail::StateOf<R> randu(R&& state, Loc loc = Loc::here());
/// An integer in [lo, hi); lo if hi == lo. (If hi < lo, the range wraps around the end of the type to hi.) It is the
/// remainder of a 32-bit number by hi - lo: no integer is more likely than another by more than (hi - lo) / 2^32.
template <class R, class L, class H>
typename detail::Operands<R, int, L, H>::type randi(R&& state, const L& lo, const H& hi, Loc loc = Loc::here()) {
  if constexpr (detail::Operands<R, int, L, H>::ok)
    return detail::randi_between(state, detail::operand<R, int>(lo, loc), detail::operand<R, int>(hi, loc), loc);
  else
    return {};
}
template <class R, class L, class H>
typename detail::Operands<R, std::uint32_t, L, H>::type randu(R&& state, const L& lo, const H& hi,
                                                              Loc loc = Loc::here()) {
  if constexpr (detail::Operands<R, std::uint32_t, L, H>::ok)
    return detail::randu_between(state, detail::operand<R, std::uint32_t>(lo, loc),
                                 detail::operand<R, std::uint32_t>(hi, loc), loc);
  else
    return {};
}

/// A multiple of 2^-24 in [0, 1), each equally likely.
template <class R>
detail::Drawn<detail::StateOf<R>, float> randf(R&& state, Loc loc = Loc::here());
/// (hi - lo) * randf + lo, for any finite lo and hi; never hi, unless hi == lo.
template <class R, class L, class H>
typename detail::Operands<R, float, L, H>::type randf(R&& state, const L& lo, const H& hi, Loc loc = Loc::here()) {
  if constexpr (detail::Operands<R, float, L, H>::ok)
    return detail::randf_between(state, detail::operand<R, float>(lo, loc), detail::operand<R, float>(hi, loc), loc);
  else
    return {};
}
/// A normally distributed number, mean 0 and variance 1; magnitude at most 5.8. Two draws.
/// Source: Box, Muller 1958.
template <class R>
detail::Drawn<detail::StateOf<R>, float> randn(R&& state, Loc loc = Loc::here());

/// An index of a discrete distribution.
/// \param cdf  ascending: cdf[i] is the probability of an index <= i. The last index also gets the remainder up to 1.
/// \return     the first index with cdf[i] above a uniform number; -1 for an empty slice or row, or on the host an
/// empty container (launches refuse empty arrays, for all kernels)
/// Cost: a binary search.
template <class R, class C>
typename detail::CdfOperand<R, C>::type sample_cdf(R&& state, const C& cdf, Loc loc = Loc::here()) {
  using Cdf = detail::CdfOperand<R, C>;
  if constexpr (Cdf::ok)
    return detail::cdf_index(state, Cdf::get(cdf), loc);
  else
    return {};
}

/// Barycentric coordinates (u, v) of a uniform point of a triangle: u >= 0, v >= 0, u + v <= 1. Two draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec2> sample_triangle(R&& state, Loc loc = Loc::here());
/// A point on the unit circle. One draw.
template <class R>
detail::Drawn<detail::StateOf<R>, vec2> sample_unit_ring(R&& state, Loc loc = Loc::here());
/// A point in the unit disk. Two draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec2> sample_unit_disk(R&& state, Loc loc = Loc::here());
/// A point on the unit sphere. Two draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec3> sample_unit_sphere_surface(R&& state, Loc loc = Loc::here());
/// A point in the unit ball. Three draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec3> sample_unit_sphere(R&& state, Loc loc = Loc::here());
/// A point on the half z >= 0 of the unit sphere. Two draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec3> sample_unit_hemisphere_surface(R&& state, Loc loc = Loc::here());
/// A point in the half z >= 0 of the unit ball. Three draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec3> sample_unit_hemisphere(R&& state, Loc loc = Loc::here());
/// A point in [-0.5, 0.5)^2. Two draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec2> sample_unit_square(R&& state, Loc loc = Loc::here());
/// A point in [-0.5, 0.5)^3. Three draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec3> sample_unit_cube(R&& state, Loc loc = Loc::here());

/// A point in [-0.5, 0.5)^4. Four draws.
template <class R>
detail::Drawn<detail::StateOf<R>, vec4> sample_unit_hypercube(R&& state, Loc loc = Loc::here());

/// The number of events if `mean` are expected (the Poisson distribution).
/// \param mean  counts as 0 if negative or NaN, and as 2^31 above that. Above 2^24 only integers that float32 holds are
/// drawn.
/// Cost: about mean + 1 draws below a mean of 10, two or three from there on.
/// Source: below 10 products of uniform numbers (Knuth); else transformed rejection with squeeze, PTRS (Hormann 1993),
/// with the probabilities in the form of Loader 2000, which does not lose its digits in float32.
template <class R>
detail::StateOf<R> poisson(R&& state, detail::Beside<R, float> mean, Loc loc = Loc::here());

}  // namespace weft
