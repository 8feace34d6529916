// The kernels of the blog post that introduces Warp, each under the name of its section.
#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(Blog);

TEST_P(Blog, launching_kernels_integrate) {
  auto integrate =
      kernel("integrate", [](Arr<vec3> x, Arr<vec3> v, Arr<const vec3> f, Arr<const float> w, Vec3 gravity, Float dt) {
        Int i = tid();
        Vec3 x0 = x[i], v0 = v[i];
        // Semi-implicit Euler step
        Vec3 f_ext = f[i];
        Float inv_mass = w[i];
        Vec3 v1 = v0 + (f_ext * inv_mass + gravity) * dt;
        Vec3 x1 = x0 + v1 * dt;
        x[i] = x1;
        v[i] = v1;
      });
  const int n = 1024;
  Array<vec3> x = zeros<vec3>(device(), n), v = full<vec3>(device(), n, vec3{1, 0, 0}),
              f = full<vec3>(device(), n, vec3{0, 4, 0});
  Array<float> w = full<float>(device(), n, 0.5f);
  launch(integrate, n, x, v, f, w, vec3{0, -10, 0}, 0.5f);
  EXPECT_EQ(v.at(n - 1), vec3(1.f, -4.f, 0.f));
  EXPECT_EQ(x.at(n - 1), vec3(0.5f, -2.f, 0.f));
}

TEST_P(Blog, memory_model_arrays) {
  Array<vec3> v = empty<vec3>(device(), 10);
  EXPECT_EQ(v.size(), 10);
  Array<float> z = zeros<float>(device(), 10);
  EXPECT_EQ(z.at(9), 0.f);
  const std::vector<vec3> points{{1, 2, 3}, {4, 5, 6}};
  Array<vec3> p(device(), points);
  EXPECT_EQ(p.to_vector()[1], points[1]);
}

}  // namespace
