// Queries on hierarchies of boxes, against all boxes one by one.
#include <weft/runtime/geometry/bvh.h>
#include <weft/runtime/geometry/bvh_query.h>

#include <cmath>

#include "../device_test.h"
#include "../full_sizes.h"
#include "../mesh/real_meshes.h"
#include "bvh_soups.h"
#include "host_tree.h"

using namespace weft;
using weft::test::Box;
using weft::test::HostTree;

namespace {

class BvhQuery : public test::GeometryTest {};
ON_EVERY_DEVICE(BvhQuery);

/// The results of queries: for each, the numbers of the boxes that it found.
using Found = std::vector<std::vector<int>>;

Found lists(const std::vector<int>& flat, const std::vector<int>& counts, int capacity) {
  Found found;
  for (std::size_t q = 0; q < counts.size(); ++q) {
    EXPECT_LE(counts[q], capacity);
    found.emplace_back(flat.begin() + std::ptrdiff_t(q) * capacity,
                       flat.begin() + std::ptrdiff_t(q) * capacity + std::min(counts[q], capacity));
    std::sort(found.back().begin(), found.back().end());
  }
  return found;
}

/// Runs make(tree, i) for n threads and returns what each query found, sorted.
template <class Make, class... P>
Found run(const Device& device, const BvhData& tree, int n, int capacity, Make make, const Array<P>&... parameters) {
  Array<int> found = full<int>(device, n * capacity, -1), counts = zeros<int>(device, n);
  launch(kernel("query",
                [=](Var<BvhData> tree, Arr<int> found, Arr<int> counts, Arr<P>... p) {
                  Int i = tid(), count = 0;
                  for (auto k : make(tree, i, p...)) {
                    If (count < capacity) {
                      found[i * capacity + count] = k;
                    }
                    count += 1;
                  }
                  counts[i] = count;
                }),
         n, tree, found, counts, parameters...);
  return lists(found.to_vector(), counts.to_vector(), capacity);
}

template <class Test>
Found brute_force(const std::vector<Box>& boxes, int n, Test test) {
  Found expected{std::size_t(n), std::vector<int>()};
  for (int q = 0; q < n; ++q)
    for (int k = 0; k < int(boxes.size()); ++k)
      if (test(boxes[std::size_t(k)], q)) expected[std::size_t(q)].push_back(k);
  return expected;
}

bool overlap(const Box& a, const Box& b) {
  for (int k = 0; k < 3; ++k)
    if (!(a.lower[k] <= b.upper[k] && a.upper[k] >= b.lower[k])) return false;
  return true;
}

const auto by_aabb = [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& lo, const Arr<vec3>& hi) {
  return bvh_query_aabb(tree, lo[i], hi[i]);
};

TEST_P(BvhQuery, aabb_finds_what_overlaps) {
  const int n = brief() ? 60 : 2000, queries = brief() ? 12 : 1000;
  const std::vector<Box> boxes = test::random_boxes(n, 0.3f, 1);
  std::vector<Box> asked = test::random_boxes(queries, 0.4f, 2);
  // Boxes that touch count: corners, faces, the box itself. A box upside down finds nothing, all of space everything.
  asked[0] = boxes[3];
  asked[1] = {boxes[5].upper, boxes[5].upper};
  asked[2] = {boxes[6].upper, boxes[6].lower};
  const float inf = std::numeric_limits<float>::infinity();
  asked[3] = {vec3{-inf, -inf, -inf}, vec3{inf, inf, inf}};
  asked[4] = {vec3{NAN, 0, 0}, vec3{1, 1, 1}};
  asked[2].lower.x += 1e-3f;
  std::vector<vec3> lo, hi;
  for (const Box& b : asked) lo.push_back(b.lower), hi.push_back(b.upper);
  const Found expected =
      brute_force(boxes, queries, [&](const Box& b, int q) { return overlap(b, asked[std::size_t(q)]); });
  EXPECT_EQ(expected[3].size(), boxes.size());
  EXPECT_EQ(expected[4].size(), 0u);
  for (int leaf_size : {1, 2, 4, 8}) {
    const BvhData tree = HostTree(boxes, leaf_size).upload(device());
    EXPECT_EQ(run(device(), tree, queries, n, by_aabb, Array<vec3>(device(), lo), Array<vec3>(device(), hi)), expected)
        << "leaf size " << leaf_size;
  }
}

/// Queries hierarchies of these boxes with boxes, with balls around their lower corners, and with capsules from their
/// lower corners to their upper ones.
void expect_sets(const Device& device, const std::vector<Box>& boxes, const std::vector<Box>& asked, float radius) {
  const int n = int(boxes.size()), queries = int(asked.size()), capacity = std::min(n, 2000);
  std::vector<vec3> lo, hi, lowers, uppers;
  for (const Box& b : boxes) lowers.push_back(b.lower), uppers.push_back(b.upper);
  for (const Box& b : asked) lo.push_back(b.lower), hi.push_back(b.upper);
  const Array<vec3> from(device, lo), to(device, hi);
  // Distances of a box from the lower corner, around which the sphere is, and from the segment to the upper one.
  struct Distance {
    double sphere, segment;
  };
  const auto distance = [&](const Box& b, int q) {
    const vec3 p = lo[std::size_t(q)], d = hi[std::size_t(q)] - p;
    const auto at = [&](double t) {
      double sum = 0;
      for (int k = 0; k < 3; ++k) {
        const double x = double(p[k]) + t * double(d[k]);
        const double out = std::max({double(b.lower[k]) - x, x - double(b.upper[k]), 0.0});
        sum += out * out;
      }
      return std::sqrt(sum);
    };
    const double length = std::sqrt(double(length_sq(d)));
    Distance found{at(0), at(0)};
    if (at(0) > double(radius) + length + 1e-5) return found;  // too far away for certain
    double first = 0, last = 1;
    for (int k = 0; k < 45; ++k) {
      const double left = first + (last - first) / 3, right = last - (last - first) / 3;
      (at(left) < at(right) ? last : first) = at(left) < at(right) ? right : left;
    }
    found.segment = std::min({at(first), at(0), at(1)});
    return found;
  };
  enum : char { no, yes, either };
  std::vector<char> balls, capsules;
  for (int q = 0; q < queries; ++q)
    for (int k = 0; k < n; ++k) {
      const Distance d = distance(boxes[std::size_t(k)], q);
      const auto answer = [&](double x) {
        return std::abs(x - double(radius)) < 1e-6 ? either : x < double(radius) ? yes : no;
      };
      balls.push_back(answer(d.sphere)), capsules.push_back(answer(d.segment));
    }
  const Found overlapping =
      brute_force(boxes, queries, [&](const Box& b, int q) { return overlap(b, asked[std::size_t(q)]); });
  const auto check = [&](const Found& found, const std::vector<char>& expected, const char* what) {
    std::size_t all = 0;
    for (int q = 0; q < queries; ++q) {
      const std::vector<int>& list = found[std::size_t(q)];
      ASSERT_EQ(std::adjacent_find(list.begin(), list.end()), list.end()) << what << " finds one twice";
      for (int k = 0; k < n; ++k) {
        const char e = expected[std::size_t(q) * std::size_t(n) + std::size_t(k)];
        if (e != either) {
          ASSERT_EQ(std::binary_search(list.begin(), list.end(), k), e == yes) << what << " " << q << " and box " << k;
        }
      }
      all += list.size();
    }
    EXPECT_GT(all, std::size_t(queries) / 2) << what;
  };
  for (BvhBuilder builder : {BvhBuilder::hploc, BvhBuilder::lbvh})
    for (int leaf_size : {1, 2, 4, 8}) {
      const Bvh tree(device, lowers, uppers, {builder, leaf_size});
      EXPECT_EQ(run(device, tree.data(), queries, capacity, by_aabb, from, to), overlapping)
          << "leaf size " << leaf_size;
      check(run(
                device, tree.data(), queries, capacity,
                [=](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& c) {
                  return bvh_query_sphere(tree, c[i], radius);
                },
                from),
            balls, "sphere");
      check(run(
                device, tree.data(), queries, capacity,
                [=](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& a, const Arr<vec3>& b) {
                  return bvh_query_capsule(tree, a[i], b[i], radius);
                },
                from, to),
            capsules, "capsule");
    }
}

/// The full size, 10,000 queries of 10,000 boxes, is for runs by hand.
TEST_P(BvhQuery, sets_in_trees_built_on_the_device) {
  const bool full = test::full_sizes();
  const int n = brief() ? 50 : full ? 10'000 : 500;
  expect_sets(device(), test::random_boxes(n, full ? 0.1f : 0.3f, 21), test::random_boxes(n, full ? 0.1f : 0.3f, 22),
              brief() ? 0.4f
              : full  ? 0.05f
                      : 0.1f);
}

std::vector<Box> boxes_around(const MeshData& triangles) {
  const test::Boxes sides = test::boxes_of(triangles);
  std::vector<Box> boxes;
  for (std::size_t k = 0; k < sides.size(); ++k) boxes.push_back({sides.lowers[k], sides.uppers[k]});
  return boxes;
}

TEST_P(BvhQuery, sets_in_trees_of_real_meshes) {
  const auto meshes = test::real_meshes_for(on_reference());
  if (meshes.empty()) GTEST_SKIP() << "there are none beside the project";
  for (const test::RealMesh& mesh : meshes) {
    SCOPED_TRACE(mesh.name);
    const std::vector<Box> boxes = boxes_around(mesh.data);
    // The queries are at corners of triangles, so that they find something.
    const std::size_t pairs = brief() ? 20'000 : test::full_sizes() ? 30'000'000 : 1'500'000;
    const int queries = int(std::clamp<std::size_t>(pairs / boxes.size(), 20, 10'000));
    std::vector<Box> asked;
    for (const Box& b : test::random_boxes(queries, 0.05f, 24)) {
      const vec3 corner = boxes[asked.size() * 7919 % boxes.size()].lower;
      asked.push_back({corner, corner + (b.upper - b.lower)});
    }
    expect_sets(device(), boxes, asked, 0.03f);
  }
}

TEST_P(BvhQuery, few_boxes) {
  for (int n = 0; n <= 3; ++n)
    for (int leaf_size : {1, 4}) {
      const std::vector<Box> boxes = test::random_boxes(n, 0.1f, 3);
      const BvhData tree = HostTree(boxes, leaf_size).upload(device());
      const std::vector<vec3> lo{vec3{-2, -2, -2}, vec3{5, 5, 5}}, hi{vec3{2, 2, 2}, vec3{6, 6, 6}};
      std::vector<int> all(std::size_t(n), 0);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(run(device(), tree, 2, 8, by_aabb, Array<vec3>(device(), lo), Array<vec3>(device(), hi)),
                (Found{all, {}}))
          << n;
    }
}

TEST_P(BvhQuery, sphere_and_capsule_find_what_they_touch) {
  const int n = brief() ? 60 : 800, queries = brief() ? 10 : 300;
  const std::vector<Box> boxes = test::random_boxes(n, 0.2f, 4);
  std::mt19937 engine(5);
  std::uniform_real_distribution<float> place(-1.2f, 1.2f), size(0, 0.5f);
  std::vector<vec3> a, b;
  std::vector<float> radius;
  for (int q = 0; q < queries; ++q) {
    a.push_back({place(engine), place(engine), place(engine)});
    b.push_back(a.back() + vec3{place(engine), place(engine), place(engine)} * 0.5f);
    radius.push_back(size(engine));
  }
  // The first queries are special: a sphere that touches a face exactly, a negative radius, a corner of a box with
  // radius 0, a segment without length.
  a[0] = boxes[2].upper + vec3{0.25f, 0, 0};
  radius[0] = a[0].x - boxes[2].upper.x;
  radius[1] = -1;
  a[2] = boxes[4].lower;
  radius[2] = 0;
  b[3] = a[3];
  const auto distance = [](const Box& box, const double* p) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) {
      const double d = std::max({double(box.lower[k]) - p[k], p[k] - double(box.upper[k]), 0.0});
      sum += d * d;
    }
    return std::sqrt(sum);
  };
  // Compares sure answers; a box whose distance is within rounding of the radius may be found or not.
  const auto check = [&](const Found& found, auto distance_of, const char* what) {
    for (int q = 0; q < queries; ++q) {
      const std::vector<int>& list = found[std::size_t(q)];
      EXPECT_EQ(std::adjacent_find(list.begin(), list.end()), list.end()) << what << " finds one twice";
      for (int k = 0; k < n; ++k) {
        const double d = distance_of(boxes[std::size_t(k)], q), r = radius[std::size_t(q)];
        const bool is_found = std::binary_search(list.begin(), list.end(), k);
        if (r < 0 || std::abs(d - r) > 2e-6) {
          ASSERT_EQ(is_found, r >= 0 && d <= r) << what << " " << q << " and box " << k;
        }
      }
    }
  };
  const auto point_distance = [&](const Box& box, int q) {
    const vec3 p = a[std::size_t(q)];
    const double at[] = {p.x, p.y, p.z};
    return distance(box, at);
  };
  const auto segment_distance = [&](const Box& box, int q) {
    const vec3 p = a[std::size_t(q)], d = b[std::size_t(q)] - p;
    const auto at = [&](double t) {
      const double x[] = {p.x + t * d.x, p.y + t * d.y, p.z + t * d.z};
      return distance(box, x);
    };
    double lo = 0, hi = 1;  // the distance is convex
    for (int k = 0; k < 45; ++k) {
      const double left = lo + (hi - lo) / 3, right = hi - (hi - lo) / 3;
      (at(left) < at(right) ? hi : lo) = at(left) < at(right) ? right : left;
    }
    return std::min({at(lo), at(0), at(1)});
  };
  const Array<vec3> from(device(), a), to(device(), b);
  const Array<float> radii(device(), radius);
  for (int leaf_size : {1, 3}) {
    const BvhData tree = HostTree(boxes, leaf_size).upload(device());
    const Found by_sphere = run(
        device(), tree, queries, n,
        [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& c, const Arr<float>& r) {
          return bvh_query_sphere(tree, c[i], r[i]);
        },
        from, radii);
    check(by_sphere, point_distance, "sphere");
    EXPECT_TRUE(std::binary_search(by_sphere[0].begin(), by_sphere[0].end(), 2)) << "touching counts";
    EXPECT_TRUE(std::binary_search(by_sphere[2].begin(), by_sphere[2].end(), 4)) << "a corner";
    check(run(
              device(), tree, queries, n,
              [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& a, const Arr<vec3>& b, const Arr<float>& r) {
                return bvh_query_capsule(tree, a[i], b[i], r[i]);
              },
              from, to, radii),
          segment_distance, "capsule");
  }
}

/// Whether a ray passes the first planes of a box before t. Exact, because the product of two floats has 48 bits, which
/// a double holds.
bool enters_before(const Box& box, const vec3& origin, const vec3& direction, float t) {
  if (!(t > 0)) return false;
  for (int k = 0; k < 3; ++k) {
    const double d = direction[k];
    const long double way = (d < 0 ? -1 : 1) * ((long double)(d < 0 ? box.upper[k] : box.lower[k]) - origin[k]);
    if (d != 0 && !(way < (long double)(std::abs(d) * double(t)))) return false;
  }
  return true;
}

TEST_P(BvhQuery, rays_find_the_boxes_that_they_meet) {
  const int n = brief() ? 60 : 1500, queries = brief() ? 12 : 800;
  const std::vector<Box> boxes = test::random_boxes(n, brief() ? 1.5f : 0.2f, 6);
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> place(-1.5f, 1.5f), size(0.1f, 4);
  std::vector<vec3> origin, direction;
  std::vector<float> limit;
  for (int q = 0; q < queries; ++q) {
    origin.push_back({place(engine), place(engine), place(engine)});
    direction.push_back({place(engine), place(engine), place(engine)});
    if (q % 5 == 0) direction.back()[q % 3] = 0;
    if (q % 10 == 0) direction.back()[(q + 1) % 3] = -0.f;
    limit.push_back(size(engine));
  }
  direction[1] = vec3{0, 0, 0};
  limit[2] = 0;
  // Whether a ray meets a box in float64, with its planes moved apart by `pad`.
  const auto meets = [&](const Box& box, int q, double pad) {
    double enter = 0, leave = std::numeric_limits<double>::infinity();
    for (int k = 0; k < 3; ++k) {
      const double o = origin[std::size_t(q)][k], d = direction[std::size_t(q)][k];
      const double lower = double(box.lower[k]) - pad, upper = double(box.upper[k]) + pad;
      if (d == 0) {
        if (o < lower || o > upper) return false;
        continue;
      }
      enter = std::max(enter, std::min((lower - o) / d, (upper - o) / d));
      leave = std::min(leave, std::max((lower - o) / d, (upper - o) / d));
    }
    return enter <= leave;
  };
  for (int leaf_size : {1, 4}) {
    const Found found = run(
        device(), HostTree(boxes, leaf_size).upload(device()), queries, n,
        [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& o, const Arr<vec3>& d, const Arr<float>& t) {
          return bvh_query_ray(tree, o[i], d[i], t[i]);
        },
        Array<vec3>(device(), origin), Array<vec3>(device(), direction), Array<float>(device(), limit));
    int hits = 0;
    for (int q = 0; q < queries; ++q)
      for (int k = 0; k < n; ++k) {
        const bool is_found = std::binary_search(found[std::size_t(q)].begin(), found[std::size_t(q)].end(), k);
        const bool before = q != 1 && enters_before(boxes[std::size_t(k)], origin[std::size_t(q)],
                                                    direction[std::size_t(q)], limit[std::size_t(q)]);
        hits += is_found;
        if (before && meets(boxes[std::size_t(k)], q, 0)) {
          ASSERT_TRUE(is_found) << "ray " << q << " box " << k;
        }
        if (!before || !meets(boxes[std::size_t(k)], q, 2e-5)) {
          ASSERT_FALSE(is_found) << "ray " << q << " box " << k;
        }
      }
    EXPECT_GT(hits, queries / 2);
    EXPECT_EQ(found[2].size(), 0u) << "entry is below max_dist";
  }
}

// The limits are the entry itself and the floats next to it, for boxes in all places of leaves and trees.
TEST_P(BvhQuery, rays_that_enter_at_their_limit_find_nothing) {
  const int n = brief() ? 60 : 1000;
  std::mt19937 engine(41);
  std::uniform_real_distribution<float> place(-1, 1);
  const auto grid = [&](float step) { return std::round(place(engine) / step) * step; };
  for (const float step : {0.25f, 0x1p-23f}) {
    // Each ray begins in front of one box and goes to a point inside its first face; other boxes are in the way or not.
    std::vector<Box> boxes = test::random_boxes(n, 0.02f, 42);
    boxes.push_back({vec3{-1, -1, 50}, vec3{1, 1, 60}});
    std::vector<vec3> origin, direction;
    std::vector<float> limit;
    for (int q = 0; q < n; ++q) {
      Box& box = boxes[std::size_t(q)];
      const int axis = q % 3;
      const float back = q % 2 ? -1.f : 1.f;
      const vec3 size{0.125f, 0.125f, 0.125f};
      box.lower = vec3{grid(step), grid(step), grid(step)};
      box.upper = box.lower + size;
      vec3 o{grid(step), grid(step), grid(step)};
      o[axis] = (back > 0 ? box.lower : box.upper)[axis] - back * (1 + std::abs(grid(step)));
      vec3 d = box.lower + size * 0.5f - o;
      d[axis] = back > 0 ? box.lower[axis] - o[axis] : box.upper[axis] - o[axis];
      if (q % 5 == 0) o = box.lower + size * 0.5f, o[axis] -= back, d = vec3{0, 0, 0}, d[axis] = back * 0.75f;
      const float scale = q % 7 == 0 ? 0.3f : q % 7 == 1 ? 3.f : 1.f;
      d = d * scale;
      const float plane = back > 0 ? box.lower[axis] : box.upper[axis];
      const float t = float((double(plane) - double(o[axis])) / double(d[axis]));
      for (const float at : {t, std::nextafter(t, 0.f), std::nextafter(t, 100.f)})
        origin.push_back(o), direction.push_back(d), limit.push_back(at);
    }
    const int queries = int(origin.size());
    for (int leaf_size : {1, 4}) {
      const BvhData tree = HostTree(boxes, leaf_size).upload(device());
      const Found found = run(
          device(), tree, queries, std::min(n, 400),
          [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& o, const Arr<vec3>& d, const Arr<float>& t) {
            return bvh_query_ray(tree, o[i], d[i], t[i]);
          },
          Array<vec3>(device(), origin), Array<vec3>(device(), direction), Array<float>(device(), limit));
      int entered = 0;
      for (int q = 0; q < queries; ++q) {
        const std::vector<int>& list = found[std::size_t(q)];
        const auto before = [&](int k) {
          return enters_before(boxes[std::size_t(k)], origin[std::size_t(q)], direction[std::size_t(q)],
                               limit[std::size_t(q)]);
        };
        for (int k : list) ASSERT_TRUE(before(k)) << "ray " << q << " box " << k;
        ASSERT_EQ(std::binary_search(list.begin(), list.end(), q / 3), before(q / 3)) << "ray " << q;
        entered += before(q / 3);
      }
      EXPECT_GT(entered, queries / 4);
      EXPECT_LT(entered, queries * 3 / 4);
    }
  }
}

TEST_P(BvhQuery, questions_that_are_none_find_nothing) {
  const std::vector<Box> boxes = test::random_boxes(20, 0.5f, 23);
  const float inf = std::numeric_limits<float>::infinity();
  const Array<vec3> bad(device(), {vec3{NAN, 0, 0}, vec3{0, 0, NAN}, vec3{NAN, NAN, NAN}, vec3{0, inf, 0}});
  const Array<float> radius(device(), {-1.f, -1e-30f, NAN, -inf});
  for (int leaf_size : {1, 4}) {
    const BvhData tree = HostTree(boxes, leaf_size).upload(device());
    const Found nothing(4);
    EXPECT_EQ(run(
                  device(), tree, 4, 20,
                  [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& p) {
                    return bvh_query_sphere(tree, p[i], 10.f);
                  },
                  bad),
              nothing);
    EXPECT_EQ(run(
                  device(), tree, 4, 20,
                  [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& p) {
                    return bvh_query_capsule(tree, p[i], p[i], 10.f);
                  },
                  bad),
              nothing);
    EXPECT_EQ(run(
                  device(), tree, 4, 20,
                  [](const Var<BvhData>& tree, const Int& i, const Arr<float>& r) {
                    return bvh_query_sphere(tree, Vec3(0, 0, 0), r[i]);
                  },
                  radius),
              nothing);
    EXPECT_EQ(run(
                  device(), tree, 4, 20,
                  [](const Var<BvhData>& tree, const Int& i, const Arr<float>& r) {
                    return bvh_query_capsule(tree, Vec3(0, 0, 0), Vec3(1, 0, 0), r[i]);
                  },
                  radius),
              nothing);
  }
}

TEST_P(BvhQuery, rays_of_which_a_component_is_no_number_find_nothing) {
  std::vector<Box> boxes;
  for (int k = 0; k < 8; ++k) boxes.push_back({vec3{float(k), 0, 0}, vec3{float(k) + 0.5f, 1, 1}});
  const float inf = std::numeric_limits<float>::infinity();
  const vec3 from{-1, 0.5f, 0.5f}, along{1, 0, 0};
  std::vector<vec3> origins{from}, directions{along};
  for (float bad : {NAN, inf, -inf})
    for (int k = 0; k < 3; ++k) {
      origins.insert(origins.end(), 2, from), directions.insert(directions.end(), 2, along);
      origins.rbegin()[0][k] = directions.rbegin()[1][k] = bad;
    }
  const int n = int(origins.size());
  Found expected{std::size_t(n), std::vector<int>()};
  expected[0] = {0, 1, 2, 3, 4, 5, 6, 7};
  for (int leaf_size : {1, 4}) {
    const BvhData tree = HostTree(boxes, leaf_size).upload(device());
    EXPECT_EQ(run(
                  device(), tree, n, 8,
                  [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& o, const Arr<vec3>& d) {
                    return bvh_query_ray(tree, o[i], d[i]);
                  },
                  Array<vec3>(device(), origins), Array<vec3>(device(), directions)),
              expected);
  }
}

TEST_P(BvhQuery, boxes_upside_down_find_nothing_not_even_what_spans_them) {
  const std::vector<Box> boxes{{vec3{-9, -9, -9}, vec3{9, 9, 9}}, {vec3{-1, -1, -1}, vec3{1, 1, 1}}};
  const std::vector<vec3> lo{vec3{-2, -2, -2}, vec3{2, 2, 2}, vec3{2, -2, -2}, vec3{-2, -2, 0.1f}};
  const std::vector<vec3> hi{vec3{2, 2, 2}, vec3{-2, -2, -2}, vec3{-2, 2, 2}, vec3{2, 2, 0}};
  for (int leaf_size : {1, 4}) {
    const BvhData tree = HostTree(boxes, leaf_size).upload(device());
    EXPECT_EQ(run(device(), tree, 4, 2, by_aabb, Array<vec3>(device(), lo), Array<vec3>(device(), hi)),
              (Found{{0, 1}, {}, {}, {}}));
  }
}

/// Queries without bounds find all boxes, except those with a bound that is infinite or no number.
TEST_P(BvhQuery, what_is_no_box_is_found_by_nobody) {
  const float inf = std::numeric_limits<float>::infinity();
  for (int n : {1, 2, 5, 9})
    for (int leaf_size : {1, 4})
      for (BvhBuilder builder : {BvhBuilder::hploc, BvhBuilder::lbvh}) {
        SCOPED_TRACE(testing::Message() << n << " boxes, leaf size " << leaf_size);
        std::vector<vec3> lo, hi;
        std::vector<int> whole;
        for (int k = 0; k < n; ++k) {
          lo.push_back(vec3{float(k), 0, 0}), hi.push_back(vec3{float(k) + 0.5f, 1, 1});
          if (k % 3 == 0)
            (k % 2 ? lo : hi).back()[k % 2] = k % 2 ? -inf : NAN;
          else
            whole.push_back(k);
        }
        BvhOptions options;
        options.builder = builder, options.leaf_size = leaf_size;
        Bvh bvh(device(), Array<vec3>(device(), lo), Array<vec3>(device(), hi), options);
        for (bool refitted : {false, true}) {
          if (refitted) bvh.refit();
          const BvhData tree = bvh.data();
          const auto found = [&](auto make) {
            return run(
                device(), tree, 1, n,
                [=](const Var<BvhData>& tree, const Int&, const Arr<float>& limit) {
                  const Float inf = limit[0];
                  return make(tree, inf);
                },
                Array<float>(device(), {inf}))[0];
          };
          EXPECT_EQ(found([](const Var<BvhData>& tree, const Float& inf) {
                      return bvh_query_aabb(tree, Vec3(-inf, -inf, -inf), Vec3(inf, inf, inf));
                    }),
                    whole);
          EXPECT_EQ(found([](const Var<BvhData>& tree, const Float& inf) {
                      return bvh_query_sphere(tree, Vec3(0, 0, 0), inf);
                    }),
                    whole);
          EXPECT_EQ(found([](const Var<BvhData>& tree, const Float& inf) {
                      return bvh_query_capsule(tree, Vec3(0, 0, 0), Vec3(1, 0, 0), inf);
                    }),
                    whole);
          EXPECT_EQ(found([](const Var<BvhData>& tree, const Float& inf) {
                      return bvh_query_ray(tree, Vec3(-1, 0.5f, 0.5f), Vec3(1, 0, 0), inf);
                    }),
                    whole);
        }
      }
}

/// A chain of boxes along x: the tree is as deep as it has boxes, far beyond the stack.
TEST_P(BvhQuery, trees_deeper_than_the_stack_lose_nothing) {
  const int n = brief() ? 150 : 700;
  std::vector<Box> boxes;
  for (int k = 0; k < n; ++k) boxes.push_back({vec3{float(k), 0, 0}, vec3{float(k) + 0.5f, 1, 1}});
  // Both children of the root are deep chains, so that nodes wait on the stack, and not leaves alone.
  for (int k = 0; k < n; ++k) boxes.push_back({vec3{float(-k), 0, 0}, vec3{float(-k) + 0.5f, 1, 1}});
  const float all = float(2 * n);
  const std::vector<vec3> lo{vec3{-all, 0, 0}, vec3{10.2f, 0, 0}, vec3{-3, 0.5f, 0}, vec3{0, 2, 0}};
  const std::vector<vec3> hi{vec3{all, 1, 1}, vec3{90, 1, 1}, vec3{4, 0.5f, 0}, vec3{0, 3, 0}};
  const Found expected = brute_force(boxes, 4, [&](const Box& b, int q) {
    return overlap(b, {lo[std::size_t(q)], hi[std::size_t(q)]});
  });
  EXPECT_EQ(expected[0].size(), std::size_t(2 * n));
  for (int leaf_size : {1, 2}) {
    const BvhData tree = HostTree(boxes, leaf_size, true).upload(device());
    EXPECT_EQ(run(device(), tree, 4, 2 * n, by_aabb, Array<vec3>(device(), lo), Array<vec3>(device(), hi)), expected);
  }
}

/// Boxes share a corner, and each is a tenth larger than the one before: H-PLOC makes a chain of them.
TEST_P(BvhQuery, deep_trees_that_were_built_lose_nothing) {
  const int n = 300;
  std::vector<vec3> lo(std::size_t(n), vec3{0, 0, 0}), hi, inside;
  std::vector<float> radius;
  Found around{std::size_t(n), std::vector<int>()};
  for (int k = 0; k < n; ++k) {
    const float size = std::pow(1.1f, float(k - n / 2));
    hi.push_back(vec3{size, size, size}), inside.push_back(hi.back() * 0.97f), radius.push_back(size * 0.01f);
    for (int q = 0; q <= k; ++q) around[std::size_t(q)].push_back(k);
  }
  const Array<vec3> at(device(), inside);
  for (int leaf_size : {1, 4})
    for (BvhBuilder builder : {BvhBuilder::hploc, BvhBuilder::lbvh}) {
      SCOPED_TRACE(leaf_size);
      BvhOptions options;
      options.builder = builder, options.leaf_size = leaf_size;
      const Bvh bvh(device(), lo, hi, options);
      if (builder == BvhBuilder::hploc) {
        EXPECT_GT(bvh.depth(), 64) << "deeper than the stack of a walk";
      }
      EXPECT_EQ(run(device(), bvh.data(), n, n, by_aabb, at, at), around);
      EXPECT_EQ(run(
                    device(), bvh.data(), n, n,
                    [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& at, const Arr<float>& radius) {
                      return bvh_query_sphere(tree, at[i], radius[i]);
                    },
                    at, Array<float>(device(), radius)),
                around);
      // Rounding may let a ray find boxes that are small beside the whole; it loses none.
      const Found entered = run(
          device(), bvh.data(), n, n,
          [](const Var<BvhData>& tree, const Int& i, const Arr<vec3>& at) {
            return bvh_query_ray(tree, at[i], Vec3(1, 1, 1));
          },
          at);
      for (std::size_t q = 0; q < entered.size(); ++q) EXPECT_TRUE(std::ranges::includes(entered[q], around[q])) << q;
    }
}

/// Nodes wait at every level: the tree is a comb in which each inner node has two inner children.
TEST_P(BvhQuery, a_stack_that_runs_over_is_made_up_for) {
  // The tree is made by hand: node k of the spine has the spine's next node and a node of two leaves.
  const int levels = 200;
  std::vector<BvhNode> nodes;
  std::vector<int> primitives, parents;
  std::vector<vec3> lowers, uppers;
  for (int k = 0; k < 2 * levels; ++k) {
    primitives.push_back(k);
    lowers.push_back({float(k), 0, 0});
    uppers.push_back({float(k) + 0.5f, 1, 1});
  }
  const auto as_w = [](int x) { return std::bit_cast<float>(x); };
  const auto lower = [&](float x, int child) { return vec4{x, 0, 0, as_w(child)}; };
  const auto upper = [&](float x, int count) { return vec4{x, 1, 1, as_w(count)}; };
  const float end = 2 * levels;
  for (int k = 0; k < levels; ++k) {
    const int spine = 2 * k, teeth = 2 * k + 1;
    const bool last = k == levels - 1, deep_first = k % 3 != 0;
    const vec4 deep_lower = last ? lower(INFINITY, -1) : lower(float(2 * k + 2), spine + 2);
    const vec4 deep_upper = last ? vec4{-INFINITY, -INFINITY, -INFINITY, as_w(0)} : upper(end, 0);
    const vec4 tooth_lower = lower(float(2 * k), teeth), tooth_upper = upper(float(2 * k) + 1.5f, 0);
    if (deep_first)
      nodes.push_back({deep_lower, deep_upper, tooth_lower, tooth_upper});
    else
      nodes.push_back({tooth_lower, tooth_upper, deep_lower, deep_upper});
    parents.push_back(k == 0 ? -1 : 2 * (spine - 2) + ((k - 1) % 3 != 0 ? 0 : 1));
    nodes.push_back({lower(float(2 * k), ~(2 * k)), upper(float(2 * k) + 0.5f, 1),
                     lower(float(2 * k + 1), ~(2 * k + 1)), upper(float(2 * k) + 1.5f, 1)});
    parents.push_back(2 * spine + (deep_first ? 1 : 0));
  }
  const BvhData tree = HostTree::as_data(device(), nodes, primitives, parents, lowers, uppers, 1);
  std::vector<int> all(std::size_t(2 * levels));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(run(device(), tree, 1, 2 * levels, by_aabb, Array<vec3>(device(), {vec3{-1, 0, 0}}),
                Array<vec3>(device(), {vec3{end, 1, 1}})),
            Found{all});
}

TEST_P(BvhQuery, queries_inside_one_another_do_not_disturb_each_other) {
  std::vector<std::vector<Box>> inputs{test::random_boxes(brief() ? 30 : 300, 0.5f, 8)};
  for (const test::RealMesh& mesh : test::real_meshes(1000)) inputs.push_back(boxes_around(mesh.data));
  for (const std::vector<Box>& boxes : inputs) {
    const int n = brief() ? 30 : int(boxes.size());
    const BvhData tree = HostTree(boxes, 2).upload(device());
    // Counts pairs of boxes that overlap, and with each pair the boxes that both touch, in three open queries.
    Array<int> pairs = zeros<int>(device(), n), triples = zeros<int>(device(), n);
    launch(kernel("nested",
                  [](Var<BvhData> tree, Arr<int> pairs, Arr<int> triples) {
                    Int i = tid(), two = 0, three = 0;
                    auto second = bvh_query_aabb(tree, tree.lowers[i], tree.uppers[i]);
                    Int j = -1;
                    While (second.next(j)) {
                      two += 1;
                      for (auto k : bvh_query_aabb(tree, tree.lowers[j], tree.uppers[j]))
                        for (auto l : bvh_query_sphere(tree, tree.lowers[k], 0.1f)) three += select(l == i, 1, 0);
                    }
                    pairs[i] = two;
                    triples[i] = three;
                  }),
           n, tree, pairs, triples);
    const auto near = [&](int k, int l) {
      float sum = 0;
      for (int c = 0; c < 3; ++c) {
        const Box& b = boxes[std::size_t(l)];
        const float x = boxes[std::size_t(k)].lower[c], d = std::max({b.lower[c] - x, x - b.upper[c], 0.f});
        sum += d * d;
      }
      return sum <= 0.1f * 0.1f;
    };
    const std::vector<int> got_pairs = pairs.to_vector(), got_triples = triples.to_vector();
    for (int i = 0; i < n; ++i) {
      int two = 0, three = 0;
      for (int j = 0; j < int(boxes.size()); ++j) {
        if (!overlap(boxes[std::size_t(i)], boxes[std::size_t(j)])) continue;
        ++two;
        for (int k = 0; k < int(boxes.size()); ++k)
          if (overlap(boxes[std::size_t(j)], boxes[std::size_t(k)])) three += near(k, i);
      }
      ASSERT_EQ(got_pairs[std::size_t(i)], two) << i;
      ASSERT_EQ(got_triples[std::size_t(i)], three) << i;
    }
  }
}

TEST_P(BvhQuery, break_continue_and_return_leave_the_loop_of_a_query) {
  const int n = brief() ? 40 : 400;
  const std::vector<Box> boxes = test::random_boxes(n, 0.6f, 9);
  const BvhData tree = HostTree(boxes, 4).upload(device());
  Array<int> firsts = zeros<int>(device(), n), odd = zeros<int>(device(), n), ends = full<int>(device(), n, 7);
  launch(kernel("leave",
                [](Var<BvhData> tree, Arr<int> firsts, Arr<int> odd, Arr<int> ends) {
                  Int i = tid(), count = 0;
                  for (auto k : bvh_query_aabb(tree, tree.lowers[i], tree.uppers[i])) {
                    If ((k & 1) == 0) {
                      Continue();
                    }
                    count += 1;
                  }
                  odd[i] = count;
                  Int steps = 0;
                  for (auto k : bvh_query_aabb(tree, tree.lowers[i], tree.uppers[i])) {
                    steps += 1;
                    If (k == i) {
                      Break();
                    }
                  }
                  firsts[i] = steps;
                  for (auto k : bvh_query_aabb(tree, tree.lowers[i], tree.uppers[i])) {
                    If (k != i) {
                      Return();
                    }
                  }
                  ends[i] = 1;
                }),
         n, tree, firsts, odd, ends);
  const auto got_firsts = firsts.to_vector(), got_odd = odd.to_vector(), got_ends = ends.to_vector();
  for (int i = 0; i < n; ++i) {
    int all = 0, odds = 0;
    for (int k = 0; k < n; ++k)
      if (overlap(boxes[std::size_t(i)], boxes[std::size_t(k)])) ++all, odds += k & 1;
    ASSERT_EQ(got_odd[std::size_t(i)], odds) << i;
    ASSERT_EQ(got_ends[std::size_t(i)], all > 1 ? 7 : 1) << i;
    ASSERT_GE(got_firsts[std::size_t(i)], 1) << i;
    ASSERT_LE(got_firsts[std::size_t(i)], all) << i;
  }
}

}  // namespace
