// Suite geometry: rays through meshes of several sizes, against Embree.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "../../runtime/geometry/mesh.h"
#include "../../runtime/geometry/mesh_query.h"
#include "../../runtime/geometry/spatial_order.h"
#include "../device/mesh_oracle.h"
#include "geometry_shapes.h"
#include "harness.h"

#ifdef WEFT_EMBREE
#include <embree3/rtcore.h>
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

namespace weft::bench {

namespace {

constexpr int kSide = 1000;
constexpr int kRays = kSide * kSide;
/// Each takes up to a second.
constexpr int kMostRounds = 21;

struct Rays {
  std::vector<vec3> origins, directions;
};

/// Of a camera in front of the torus, neighbours side by side.
Rays primary() {
  Rays rays;
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      rays.origins.push_back({0, 1.5f, 3});
      rays.directions.push_back({(float(x) + 0.5f) / kSide - 0.5f, (float(y) + 0.5f) / kSide - 0.95f, -1});
    }
  return rays;
}

/// From anywhere to anywhere.
Rays incoherent() {
  Rays rays{scattered(kRays, 1), scattered(kRays, 2)};
  for (vec3& d : rays.directions) d.y *= 2.8f;
  return rays;
}

#ifdef WEFT_EMBREE
/// Embree with its robust test.
class Embree {
 public:
  Embree(const MeshData& data, int threads)
      : threads_(std::size_t(threads)), device_(rtcNewDevice(nullptr)), scene_(rtcNewScene(device_)) {
    rtcSetSceneFlags(scene_, RTC_SCENE_FLAG_ROBUST);
    RTCGeometry g = rtcNewGeometry(device_, RTC_GEOMETRY_TYPE_TRIANGLE);
    std::memcpy(
        rtcSetNewGeometryBuffer(g, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, sizeof(vec3), data.points.size()),
        data.points.data(), data.points.size() * sizeof(vec3));
    std::memcpy(rtcSetNewGeometryBuffer(g, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, 12, data.indices.size() / 3),
                data.indices.data(), data.indices.size() * sizeof(int));
    rtcCommitGeometry(g);
    rtcAttachGeometry(scene_, g);
    rtcReleaseGeometry(g);
    rtcCommitScene(scene_);
  }
  ~Embree() {
    rtcReleaseScene(scene_);
    rtcReleaseDevice(device_);
  }
  Embree(const Embree&) = delete;

  void cast(const Rays& rays, std::vector<float>& t) const {
    const std::size_t n = rays.origins.size();
    std::vector<std::thread> all;
    for (std::size_t k = 0; k < threads_; ++k)
      all.emplace_back([&, k] { part(rays, t, n * k / threads_, n * (k + 1) / threads_); });
    for (std::thread& one : all) one.join();
  }

 private:
  void part(const Rays& rays, std::vector<float>& t, std::size_t begin, std::size_t end) const {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
    for (std::size_t i = begin; i < end; ++i) {
      const vec3 &o = rays.origins[i], &d = rays.directions[i];
      RTCIntersectContext context;
      rtcInitIntersectContext(&context);
      RTCRayHit r{};
      r.ray.org_x = o.x, r.ray.org_y = o.y, r.ray.org_z = o.z;
      r.ray.dir_x = d.x, r.ray.dir_y = d.y, r.ray.dir_z = d.z;
      r.ray.tfar = std::numeric_limits<float>::infinity();
      r.ray.mask = ~0u;
      r.hit.geomID = RTC_INVALID_GEOMETRY_ID;
      rtcIntersect1(scene_, &context, &r);
      t[i] = r.hit.geomID == RTC_INVALID_GEOMETRY_ID ? -1 : r.ray.tfar;
    }
  }
  std::size_t threads_;
  RTCDevice device_;
  RTCScene scene_;
};

/// \param sorted  asked in spatial_order(), whose making counts
void race_rays(Run& run, int triangles, const Rays& rays, bool sorted = false) {
  const MeshData data = torus(triangles);
  const Device& device = run.device();
  const Mesh mesh(device, data);
  const Array<vec3> origins(device, rays.origins), directions(device, rays.directions);
  Array<float> t = zeros<float>(device, kRays);
  const auto cast = kernel("cast", [](Var<MeshArrays> mesh, Arr<const vec3> o, Arr<const vec3> d, Arr<float> t) {
    Int i = tid();
    const MeshRayHit h = mesh_query_ray(mesh, o[i], d[i]);
    t[i] = select(h.hit, h.t, -1.f);
  });
  const auto cast_in_order = kernel("cast in order", [](Var<MeshArrays> mesh, Arr<const int> order, Arr<const vec3> o,
                                                        Arr<const vec3> d, Arr<float> t) {
    Int i = order[tid()];
    const MeshRayHit h = mesh_query_ray(mesh, o[i], d[i]);
    t[i] = select(h.hit, h.t, -1.f);
  });
  const Array<int> order = empty<int>(device, kRays);
  const auto scratch = empty<std::uint8_t>(device, std::int64_t(spatial_order_scratch_bytes(kRays)));
  const auto make_order = [&] { spatial_order(origins, directions, order, {.scratch = scratch}); };
  const auto ask = [&] {
    if (!sorted) return launch(cast, kRays, mesh, origins, directions, t);
    make_order();
    launch(cast_in_order, kRays, mesh, order, origins, directions, t);
  };
  const Embree embree(data, run.threads());
  std::vector<float> wanted(kRays);
  embree.cast(rays, wanted);
  ask();
  const std::vector<float> got = t.to_vector();
  // At most one ray of a million may differ, and float64 must say why.
  const test::Oracle oracle(data);
  int differ = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - wanted[i]) <= 1e-4f * std::max(1.f, wanted[i])) continue;
    ++differ;
    const auto exact = oracle.ray(rays.origins[i], rays.directions[i], std::numeric_limits<double>::infinity());
    const double t = exact.hits.empty() ? -1 : exact.hits[0].t;
    run.note(fmt::format("ray {}: t is {}, Embree's {}, in float64 {}{}", i, got[i], wanted[i], t,
                         exact.unsure ? ", through an edge" : ""));
    if (!exact.unsure && std::abs(double(got[i]) - t) > 1e-4 * std::max(1., t))
      throw std::runtime_error(fmt::format("ray {} has t = {}, and {} in float64", i, got[i], t));
  }
  if (differ > kRays / 1'000'000)
    throw std::runtime_error(fmt::format("{} of {} rays differ from Embree's", differ, kRays));
  run.note(fmt::format("{} of {} rays differ", differ, kRays));
  Stream stream = device.stream();
  const auto timings = interleave({[&] {
                                     ask();
                                     stream.synchronize();
                                   },
                                   [&] { embree.cast(rays, wanted); },
                                   [&] {
                                     if (!sorted) return;
                                     make_order();
                                     stream.synchronize();
                                   }},
                                  std::min(run.rounds(), kMostRounds));
  if (sorted) run.note(fmt::format("the order takes {:.1f} ms of it", timings[2].seconds * 1e3));
  run.compare(timings[0], timings[1], "Embree, robust, " + run.threads_text(), "ms");
}
#else
void race_rays(Run& run, int, const Rays&, bool = false) {
  run.leave_out("Embree 3 is not on this machine (Debian: libembree-dev)");
}
#endif

}  // namespace

void add_geometry_rays(Harness& harness) {
  for (const auto& [name, n] : kTorusSizes) {
    harness.add("geometry", fmt::format("1M primary rays, {} triangles", name),
                [n = n](Run& run) { race_rays(run, n, primary()); });
    harness.add("geometry", fmt::format("1M incoherent rays, {} triangles", name),
                [n = n](Run& run) { race_rays(run, n, incoherent()); });
    harness.add("geometry", fmt::format("1M incoherent rays, sorted, {} triangles", name),
                [n = n](Run& run) { race_rays(run, n, incoherent(), true); });
  }
}

}  // namespace weft::bench
