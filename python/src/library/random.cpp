// The library's random numbers and noise. Functions that draw give the state after the draw as their last result.
#include "../../../frontend/library/random.h"

#include "../../../frontend/library/noise.h"
#include "library.h"

namespace weft::python {

namespace {

using State = std::uint32_t;

/// Adds a function that draws from a state.
template <class R, class... P, class F>
void drawing(const char* name, F) {
  form<std::tuple<R, State>, State, P...>(name, [](const auto& state, const auto&... bounds) {
    Var<State> next = state;
    const Var<R> drawn = F{}(next, bounds...);
    return std::tuple(drawn, next);
  });
}

template <class N, class P>
void add_noise() {
  form<N, State, P>("noise", [](const auto& seed, const auto& at) { return noise(seed, at); });
}

template <class N>
void add_all_noise() {
  add_noise<N, N>();
  add_noise<N, vec<2, N>>();
  add_noise<N, vec<3, N>>();
  add_noise<N, vec<4, N>>();
  form<N, State, N, int>("pnoise", [](const auto& s, const auto& p, const auto& x) { return pnoise(s, p, x); });
  form<N, State, vec<2, N>, int, int>(
      "pnoise", [](const auto& s, const auto& p, const auto& x, const auto& y) { return pnoise(s, p, x, y); });
  form<N, State, vec<3, N>, int, int, int>("pnoise", [](const auto& s, const auto& p, const auto& x, const auto& y,
                                                        const auto& z) { return pnoise(s, p, x, y, z); });
  form<N, State, vec<4, N>, int, int, int, int>(
      "pnoise", [](const auto& s, const auto& p, const auto& x, const auto& y, const auto& z, const auto& w) {
        return pnoise(s, p, x, y, z, w);
      });
}

template <class N, int n>
void add_curl() {
  using P = vec<n, N>;
  using R = vec<n == 2 ? 2 : 3, N>;
  form<R, State, P>("curlnoise", [](const auto& s, const auto& p) { return curlnoise(s, p); });
  form<R, State, P, unsigned, N, N>(
      "curlnoise", [](const auto& s, const auto& p, const auto& octaves, const auto& lacunarity, const auto& gain) {
        return curlnoise(s, p, octaves, lacunarity, gain);
      });
}

}  // namespace

void add_random_functions() {
  form<State, int>("rand_init", [](const auto& seed) { return rand_init(seed); });
  form<State, State>("rand_init", [](const auto& seed) { return rand_init(seed); });
  form<State, int, int>("rand_init", [](const auto& seed, const auto& offset) { return rand_init(seed, offset); });
  form<State, State, State>("rand_init", [](const auto& seed, const auto& offset) { return rand_init(seed, offset); });
  drawing<int>("randi", [](auto& s) { return randi(s); });
  drawing<int, int, int>("randi", [](auto& s, const auto& lo, const auto& hi) { return randi(s, lo, hi); });
  drawing<State>("randu", [](auto& s) { return randu(s); });
  drawing<State, State, State>("randu", [](auto& s, const auto& lo, const auto& hi) { return randu(s, lo, hi); });
  drawing<float>("randf", [](auto& s) { return randf(s); });
  drawing<float, float, float>("randf", [](auto& s, const auto& lo, const auto& hi) { return randf(s, lo, hi); });
  drawing<float>("randn", [](auto& s) { return randn(s); });
  drawing<State, float>("poisson", [](auto& s, const auto& mean) { return poisson(s, mean); });
  drawing<vec2>("sample_triangle", [](auto& s) { return sample_triangle(s); });
  drawing<vec2>("sample_unit_ring", [](auto& s) { return sample_unit_ring(s); });
  drawing<vec2>("sample_unit_disk", [](auto& s) { return sample_unit_disk(s); });
  drawing<vec3>("sample_unit_sphere_surface", [](auto& s) { return sample_unit_sphere_surface(s); });
  drawing<vec3>("sample_unit_sphere", [](auto& s) { return sample_unit_sphere(s); });
  drawing<vec3>("sample_unit_hemisphere_surface", [](auto& s) { return sample_unit_hemisphere_surface(s); });
  drawing<vec3>("sample_unit_hemisphere", [](auto& s) { return sample_unit_hemisphere(s); });
  drawing<vec2>("sample_unit_square", [](auto& s) { return sample_unit_square(s); });
  drawing<vec3>("sample_unit_cube", [](auto& s) { return sample_unit_cube(s); });
  drawing<vec4>("sample_unit_hypercube", [](auto& s) { return sample_unit_hypercube(s); });
  add_all_noise<float>();
  add_all_noise<double>();
  add_curl<float, 2>();
  add_curl<float, 3>();
  add_curl<float, 4>();
  add_curl<double, 2>();
  add_curl<double, 3>();
  add_curl<double, 4>();
}

}  // namespace weft::python
