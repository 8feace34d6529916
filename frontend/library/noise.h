// Gradient noise: smooth random functions of 1 to 4 coordinates, periodic ones, and divergence-free fields.
#pragma once
#include "../language/vec_var.h"
#include "random.h"

namespace weft {

namespace lib {

/// A point of N coordinates over the scalar face S: S itself if N is 1.
template <int N, class S>
struct PointOf {
  using type = VecOf<N, S>;
};
template <class S>
struct PointOf<1, S> {
  using type = S;
};

/// \param period  N numbers of cells; null: no period
template <int N, class S>
S noise(const FaceLike<S, std::uint32_t>& seed, const typename PointOf<N, S>::type& at, const FaceLike<S, int>* period);
/// \param single  one octave, whatever `octaves` is
template <int N, class S>
VecOf<N == 2 ? 2 : 3, S> curlnoise(const FaceLike<S, std::uint32_t>& seed, const VecOf<N, S>& at, bool single,
                                   const FaceLike<S, int>& octaves, const S& lacunarity, const S& gain);

}  // namespace lib

namespace detail {

template <class P>
inline constexpr int point_size = Scalar<HostOf<P>> ? 1 : vec_size<HostOf<P>>;

template <class P>
struct PointElement {
  using type = void;
};
template <class P>
requires(point_size<P> > 0) struct PointElement<P> {
  using type = ElementOf<P>;
};

/// A call of a noise function at P, of Least to Most coordinates, with the integers A: S is the scalar face in which it
/// is computed. A host number as P counts as float beside traced operands. Assertions find mistakes, not constraints,
/// so that each is one short message.
template <int Least, int Most, class P, class... A>
struct NoiseCall {
  static constexpr int size = point_size<P>;
  static constexpr bool traced = any_traced<P, A...>;
  using T = std::conditional_t<is_literal<P> && traced, float, typename PointElement<P>::type>;
  static constexpr bool real = std::is_same_v<T, float> || std::is_same_v<T, double>;
  static constexpr bool sized = size >= Least && size <= Most;
  static constexpr bool integers = (is_integer<A> && ...);
  static constexpr bool ok = real && sized && integers;
  static_assert(!sized || real,
                "weft: noise is a function of float or double coordinates; convert them, as in Vec3(v)");
  static_assert(
      sized, "weft: noise takes a number or a vector of 2 to 4, curlnoise a vector, pnoise a period for each number");
  static_assert(integers, "weft: the seed, the periods and the number of octaves of noise are integers");
  using S = Face<traced, std::conditional_t<real, T, float>>;
};

template <class A, class P, class... Period>
auto pnoise(Loc loc, const A& seed, const P& at, const Period&... period) ->
    typename NoiseCall<sizeof...(Period), sizeof...(Period), P, A, Period...>::S {
  using Call = NoiseCall<sizeof...(Period), sizeof...(Period), P, A, Period...>;
  using S = typename Call::S;
  CallSite<S> site(loc, Rounding::as_written);
  if constexpr (Call::ok) {
    const FaceLike<S, int> cells[] = {FaceLike<S, int>(cast<int>(period))...};
    return lib::noise<Call::size, S>(low_bits<Call::traced>(seed, loc), lift<S>(at, loc), cells);
  } else {
    return {};
  }
}

}  // namespace detail

/// Perlin's gradient noise: a smooth random function that is 0 at whole coordinates and varies over a distance of 1.
/// Its gradients there are unit vectors (of any length up to 1 on the line).
/// \param seed  tells functions apart: any integer, or the state of rand_init, which is not advanced
/// \param at    Float or Vec2, Vec3, Vec4, of float or double; within +-2^31
/// \return      between -sqrt(n) / 2 and sqrt(n) / 2 for n coordinates, mean 0; twice continuously differentiable. Only
/// products and sums, in one order: the same bits on every device.
/// Gradient: flows to `at`.
/// Source: Perlin 2002, with the hash of pcg.h for his table of permutations; in the plane 8 directions, in space his
/// 12, in 4 dimensions 32.
template <class A, class P>
auto noise(const A& seed, const P& at, Loc loc = Loc::here()) -> typename detail::NoiseCall<1, 4, P, A>::S {
  using Call = detail::NoiseCall<1, 4, P, A>;
  using S = typename Call::S;
  detail::CallSite<S> site(loc, detail::Rounding::as_written);
  if constexpr (Call::ok)
    return lib::noise<Call::size, S>(detail::low_bits<Call::traced>(seed, loc), lift<S>(at, loc), nullptr);
  else
    return {};
}

/// Noise with periods: pnoise(seed, at, px, ...), one for each coordinate, any integers; less than 1 counts as 1. It
/// repeats exactly if at + period is exact. Its values are not those of noise(seed, at).
template <class A, class P, class X>
auto pnoise(const A& seed, const P& at, const X& px, Loc loc = Loc::here()) {
  return detail::pnoise(loc, seed, at, px);
}
template <class A, class P, class X, class Y>
auto pnoise(const A& seed, const P& at, const X& px, const Y& py, Loc loc = Loc::here()) {
  return detail::pnoise(loc, seed, at, px, py);
}
template <class A, class P, class X, class Y, class Z>
auto pnoise(const A& seed, const P& at, const X& px, const Y& py, const Z& pz, Loc loc = Loc::here()) {
  return detail::pnoise(loc, seed, at, px, py, pz);
}
template <class A, class P, class X, class Y, class Z, class W>
auto pnoise(const A& seed, const P& at, const X& px, const Y& py, const Z& pz, const W& pw, Loc loc = Loc::here()) {
  return detail::pnoise(loc, seed, at, px, py, pz, pw);
}

/// A field without divergence, in which nothing gathers or thins out: the curl of noise potentials.
/// \param at         Vec2: a field in the plane; Vec3: in space; Vec4: in space, changing with the time at.w
/// \param octaves    how many fields are added; any integer
/// \param lacunarity how much finer each field is than the one before
/// \param gain       how much weaker each field is than the one before
/// \return           a vector of 2 components for Vec2, else of 3
/// Source: Bridson, Hourihan, Nordenstam 2007, with the derivatives of the noise in closed form.
template <class A, class P, class O = int, class L = float, class G = float>
auto curlnoise(const A& seed, const P& at, const O& octaves = 1, const L& lacunarity = 2, const G& gain = 0.5f,
               Loc loc = Loc::here()) {
  using Call = detail::NoiseCall<2, 4, P, A, O>;
  using T = HostOf<typename Call::S>;
  static_assert(!Call::ok || detail::fits<T, L, G>,
                "weft: lacunarity and gain are numbers, traced ones of the type of the coordinates");
  if constexpr (Call::ok && detail::fits<T, L, G>) {
    using S = Face<any_traced<typename Call::S, L, G>, T>;
    detail::CallSite<S> site(loc, detail::Rounding::as_written);
    bool single = false;
    if constexpr (!any_traced<O>) single = octaves == O(1);
    return lib::curlnoise<Call::size, S>(detail::low_bits<any_traced<S>>(seed, loc), lift<S>(at, loc), single,
                                         FaceLike<S, int>(cast<int>(octaves)), lift<S>(lacunarity, loc),
                                         lift<S>(gain, loc));
  } else {
    return vec3();
  }
}

}  // namespace weft
