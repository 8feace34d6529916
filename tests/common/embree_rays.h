// Rays that Embree casts, if it is installed, and their differences from ours.
#pragma once
#include <weft/runtime/geometry/mesh_data.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "mesh_oracle.h"

#ifdef WEFT_EMBREE
#include <embree3/rtcore.h>
#if defined(__SSE3__) || defined(_M_X64)
#define WEFT_FLUSHES_DENORMALS
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif
#endif

namespace weft::test {

struct Rays {
  std::vector<vec3> origins, directions;
};

struct DifferingRay {
  std::string text;
  /// Whether float64 agrees with us, or sees an edge or the end of the ray within rounding.
  bool explained;
};

/// Rays whose first hits (-1 for none) differ beyond rounding: only the first 20, because float64 takes its time.
inline std::vector<DifferingRay> rays_that_differ(const MeshData& data, const Rays& rays, const std::vector<float>& got,
                                                  const std::vector<float>& wanted) {
  std::vector<DifferingRay> differing;
  const Oracle oracle(data);
  for (std::size_t i = 0; i < got.size() && differing.size() < 20; ++i) {
    if (std::abs(got[i] - wanted[i]) <= 1e-4f * std::max(1.f, wanted[i])) continue;
    const auto exact = oracle.ray(rays.origins[i], rays.directions[i], std::numeric_limits<double>::infinity());
    const double t = exact.hits.empty() ? -1 : exact.hits[0].t;
    differing.push_back({"ray " + std::to_string(i) + ": t is " + std::to_string(got[i]) + ", Embree's " +
                             std::to_string(wanted[i]) + ", in float64 " + std::to_string(t) +
                             (exact.unsure ? ", through an edge" : ""),
                         exact.unsure || std::abs(double(got[i]) - t) <= 1e-4 * std::max(1., t)});
  }
  return differing;
}

#ifdef WEFT_EMBREE
/// A scene of Embree's, with its robust test.
class EmbreeRays {
 public:
  EmbreeRays(const MeshData& data, int threads)
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
  ~EmbreeRays() {
    rtcReleaseScene(scene_);
    rtcReleaseDevice(device_);
  }
  EmbreeRays(const EmbreeRays&) = delete;

  /// Writes the distance of each ray's first hit; -1 if it hits nothing.
  void cast(const Rays& rays, std::vector<float>& t) const {
    const std::size_t n = rays.origins.size();
    std::vector<std::thread> all;
    for (std::size_t k = 0; k < threads_; ++k)
      all.emplace_back([&, k] { part(rays, t, n * k / threads_, n * (k + 1) / threads_); });
    for (std::thread& one : all) one.join();
  }

 private:
  void part(const Rays& rays, std::vector<float>& t, std::size_t begin, std::size_t end) const {
#ifdef WEFT_FLUSHES_DENORMALS
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
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
#endif

}  // namespace weft::test
