// A program as users write them, which is compiled with all warnings at full optimisation: weft's headers cause none.
#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/weft.h>

#include <tuple>
#include <vector>

using namespace weft;

template <template <class> class F = Host>
struct Particle {
  F<vec3> place;
  F<float> mass;
};

// Functions with every kind of parameter and result, each called more than once.
auto scaled = func("scaled", [](Vec3 v, Float by) { return v * by; });
auto split = func("split", [](Mat33 m, Quat q) { return std::tuple(quat_rotate(q, Vec3(m.row(0))), m(1, 1)); });
auto pair_of = func("pair", [](Int i, Int j) { return std::array<Int, 2>{max(i, j), min(i, j)}; });
auto sum_of = func("sum_of", [](Arr<const float> a, Arr<float, 2> b, Int i) { return a[i] + b(i, 0); });
auto either = func("either", [](auto a, auto b) { return select(a.x < b.x, a, b); });
auto heavier = func("heavier", [](Var<Particle<>> a, Var<Particle<>> b) { return select(a.mass > b.mass, a, b); });
auto nothing = func("nothing", [](Arr<float> a, Int i) { a[i] += 1; });
auto steep = grad(func("steep", [](Float x) { return x * x; }), [](Float x, Float gradient) { return gradient * x; });
// One function is made where it is called, and a kernel captures another: their calls are inlined whole.
namespace {
Float times(Float x, float by) {
  auto f = func("times", [by](Float v) { return v * by; });
  return f(x);
}
}  // namespace

void use_functions(const Array<float>& a) {
  auto step = func("step", [](Int x) -> Int { return x * 5 % 101 + 1; });
  launch(kernel("many",
                [=](Arr<float> out) {
                  Int x = tid();
                  for (int k = 0; k < 100; ++k) x = step(x);
                  out[tid()] = Float(x);
                }),
         10, a);
  launch(kernel("factors",
                [](Arr<float> out) {
                  for (int k = 0; k < 8; ++k) out[k] = times(1.f, float(k + 1));
                }),
         1, a);
}

auto everything = kernel("everything", [](Arr<const float> a, Arr<float, 2> b, Arr<Particle<>> p, Arr<mat33> m,
                                          Arr<half> h, Var<MeshArrays> mesh, Float s, Int n) {
  Int i = tid();
  Vec3 v = scaled(p[i].place, s) + scaled(Vec3(1, 2, 3), 2);
  auto [turned, number] = split(m[i], quat_from_axis_angle(v, s));
  auto [most, least] = pair_of(i, n);
  v = either(v, turned);
  const Var<Particle<>> q = heavier(p[i], p[most % n]);
  b(i, 0) = sum_of(a, b, least) + steep(number) + q.mass;
  nothing(b[i], 0);
  UInt rng = rand_init(1, i);
  for (auto k : range(n)) {
    If ((k & 1) == 0) {
      v += normalize(sample_unit_sphere(rng));
    }
    Else { Continue(); }
  }
  const MeshPointHit near = mesh_query_point(mesh, v, 10, MeshSign::normal);
  h[i] = Half(near.distance * near.sign);
  p[i].place = v;
  print("v", v, i);
  assert_(isfinite(v.x), v);
});

void use(const Device& device) {
  const Array<float> a(device, std::vector<float>(10, 1.f));
  const Array<float, 2> b = zeros<float, 2>(device, {10, 3});
  const Array<Particle<>> p = zeros<Particle<>>(device, 10);
  const Array<mat33> m = zeros<mat33>(device, 10);
  const Array<half> h = zeros<half>(device, 10);
  const Mesh mesh(device, shapes::icosphere());
  Tape tape;
  tape.record([&] { launch(everything, 10, a, b, p, m, h, mesh, 2, 10); });
  const Array<float> sum = zeros<float>(device, 1);
  reduce_sum(a, sum);
  tape.backward(sum);
  use_functions(a);
  const auto places = vec2d(vec2(vec2d(0.1, 0.2))) + vec2d(reduce_sum<double>(a), 0);
  std::vector<unsigned> keys(10, unsigned(places.x));
  radix_sort(Array<unsigned>(device, keys));
}
