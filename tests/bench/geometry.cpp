// Suite geometry: building and refitting hierarchies of boxes, against Embree where it is installed.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "../../runtime/geometry/bvh.h"
#include "cpu/contest_on_host.h"
#include "harness.h"
#ifdef WEFT_EMBREE
#include <embree3/rtcore.h>
#endif

namespace weft::bench {

namespace {

/// The triangles a second that a build is measured against without Embree.
constexpr double kGoal = 5e6;

struct Triangles {
  std::vector<vec3> points;
  std::vector<vec3i> corners;
};

// A torus whose surface is wavy, so that boxes have many sizes.
Triangles wavy_torus(int n) {
  const int along = int(std::sqrt(n / 8.0)), around = n / 2 / along;
  Triangles t;
  for (int i = 0; i < around; ++i)
    for (int j = 0; j < along; ++j) {
      const float a = 6.2831853f * float(i) / float(around), b = 6.2831853f * float(j) / float(along);
      const float tube = 0.3f + 0.05f * std::sin(9 * a) * std::cos(7 * b), r = 1 + tube * std::cos(b);
      t.points.push_back({r * std::cos(a), r * std::sin(a), tube * std::sin(b)});
    }
  const auto point = [&](int i, int j) { return i % around * along + j % along; };
  for (int i = 0; i < around; ++i)
    for (int j = 0; j < along; ++j) {
      t.corners.push_back({point(i, j), point(i + 1, j), point(i + 1, j + 1)});
      t.corners.push_back({point(i, j), point(i + 1, j + 1), point(i, j + 1)});
    }
  return t;
}

#ifdef WEFT_EMBREE
// Embree's hierarchy of triangles, built with the settings for programs that want every hit.
class EmbreeScene {
 public:
  EmbreeScene(const Triangles& t, RTCBuildQuality quality, int threads)
      : device_(rtcNewDevice(fmt::format("threads={}", threads).c_str())) {
    scene_ = rtcNewScene(device_);
    rtcSetSceneFlags(scene_, RTC_SCENE_FLAG_ROBUST);
    geometry_ = rtcNewGeometry(device_, RTC_GEOMETRY_TYPE_TRIANGLE);
    rtcSetGeometryBuildQuality(geometry_, quality);
    auto* points = static_cast<float*>(
        rtcSetNewGeometryBuffer(geometry_, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, 12, t.points.size()));
    for (const vec3& p : t.points)
      for (int k = 0; k < 3; ++k) *points++ = p[k];
    auto* corners = static_cast<unsigned*>(
        rtcSetNewGeometryBuffer(geometry_, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, 12, t.corners.size()));
    for (const vec3i& c : t.corners)
      for (int k = 0; k < 3; ++k) *corners++ = unsigned(c[k]);
    rtcCommitGeometry(geometry_);
    rtcAttachGeometry(scene_, geometry_);
    build();
  }
  EmbreeScene(const EmbreeScene&) = delete;
  ~EmbreeScene() {
    rtcReleaseGeometry(geometry_);
    rtcReleaseScene(scene_);
    rtcReleaseDevice(device_);
  }
  /// Builds the hierarchy again, after the points have changed.
  void build() {
    rtcUpdateGeometryBuffer(geometry_, RTC_BUFFER_TYPE_VERTEX, 0);
    rtcCommitGeometry(geometry_);
    rtcCommitScene(scene_);
    if (rtcGetDeviceError(device_) != RTC_ERROR_NONE) throw std::runtime_error("Embree refuses the triangles");
  }

 private:
  RTCDevice device_;
  RTCScene scene_;
  RTCGeometry geometry_;
};
#endif

struct Work {
  explicit Work(const Device& device, int n, BvhBuilder builder)
      : triangles(wavy_torus(n)),
        points(device, triangles.points),
        corners(device, triangles.corners),
        lowers(empty<vec3>(device, corners.size())),
        uppers(empty<vec3>(device, corners.size())) {
    put_boxes();
    bvh = Bvh(device, lowers, uppers, {.builder = builder, .leaf_size = 1});
    if (bvh.ignored() != 0 || bvh.depth() < 2) throw std::runtime_error("a hierarchy that is none");
  }
  void put_boxes() {
    static const auto k = kernel(
        "triangle_boxes", [](Arr<const vec3> points, Arr<const vec3i> corners, Arr<vec3> lowers, Arr<vec3> uppers) {
          Int i = tid();
          Vec3i c = corners[i];
          Vec3 a = points[c.x], b = points[c.y], d = points[c.z];
          lowers[i] = min(min(a, b), d);
          uppers[i] = max(max(a, b), d);
        });
    launch(k, corners.size(), points, corners, lowers, uppers);
  }

  Triangles triangles;
  Array<vec3> points;
  Array<vec3i> corners;
  Array<vec3> lowers, uppers;
  Bvh bvh;
};

void build_or_refit(Run& run, int n, BvhBuilder builder, bool refit) {
  if (n > 1000000 && run.device().is_software()) return run.leave_out("a size for GPUs");
  Work work(run.device(), n, builder);
  const auto ours = [&] {
    work.put_boxes();
    refit ? work.bvh.refit() : work.bvh.rebuild();
    run.device().synchronize();
  };
#ifdef WEFT_EMBREE
  EmbreeScene embree(work.triangles, refit ? RTC_BUILD_QUALITY_REFIT : RTC_BUILD_QUALITY_MEDIUM, run.threads());
  const std::vector<Timing> times = interleave({ours, [&] { embree.build(); }}, run.rounds());
  run.compare(times[0], {fmt::format("Embree 3 {}, {}", refit ? "refit" : "build", run.threads_text()), times[1]},
              "ms");
#else
  const std::vector<Timing> times = interleave({ours}, run.rounds());
  run.budget(times[0], double(work.corners.size()) / kGoal, "ms", true);
#endif
  run.note(fmt::format("{:.2f} million triangles a second, depth {}",
                       double(work.corners.size()) / times[0].seconds / 1e6, work.bvh.depth()));
}

}  // namespace

void add_geometry(Harness& harness) {
  for (const auto& [name, n] :
       {std::pair("10k", 10000), std::pair("160k", 160000), std::pair("1M", 1000000), std::pair("4M", 4000000)}) {
    harness.add("geometry", fmt::format("build LBVH {}", name),
                [n = n](Run& run) { build_or_refit(run, n, BvhBuilder::lbvh, false); });
    harness.add("geometry", fmt::format("build H-PLOC {}", name),
                [n = n](Run& run) { build_or_refit(run, n, BvhBuilder::hploc, false); });
    harness.add("geometry", fmt::format("refit {}", name),
                [n = n](Run& run) { build_or_refit(run, n, BvhBuilder::hploc, true); });
  }
}

void add_cpu_builds(Harness& harness) {
  for (const auto& [name, n] : {std::pair("160k", 160000), std::pair("1M", 1000000)}) {
    add_beside_vulkan(harness, fmt::format("build LBVH {}", name),
                      [n = n](Run& run) { build_or_refit(run, n, BvhBuilder::lbvh, false); });
    add_beside_vulkan(harness, fmt::format("build H-PLOC {}", name),
                      [n = n](Run& run) { build_or_refit(run, n, BvhBuilder::hploc, false); });
  }
}

}  // namespace weft::bench
