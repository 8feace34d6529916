// Values of voxels and between them.
#include <array>

#include "../../../frontend/language/detach.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/library/vector.h"
#include "../volume_query.h"
#include "interpolate.h"
#include "leaf_cache.h"

namespace weft {

namespace detail {

namespace {

template <class T>
Var<T> read(const LeafCache& cache, const Int& element) {
  const auto& values = VolumeValueOf<T>::values(cache.volume());
  if constexpr (Scalar<T>) {
    return Var<T>(values[element]);
  } else {
    Var<T> v;
    for (int k = 0; k < Flat<T>::count; ++k) v[k] = values[element + k];
    return v;
  }
}

/// The value of an element; 0 where the handle led to no volume of the type. By a handle it is a constant, see
/// Volume::id().
template <class T>
Var<T> value_at(const LeafCache& cache, const Int& element) {
  if (!cache.held()) return read<T>(cache, element);
  Var<T> v = T{};
  If (cache.usable()) {
    v = detach(read<T>(cache, element));
  }
  return v;
}

template <class T>
VolumeSampled<T> sampled_at(const LeafCache& cache, const Int& element) {
  if constexpr (std::is_same_v<T, half>)
    return cast<float>(value_at<T>(cache, element));
  else
    return value_at<T>(cache, element);
}

template <class T>
using Weight = Var<typename Flat<typename VolumeValueOf<T>::Sampled>::scalar>;

template <class T>
struct Linear {
  Linear(LeafCache& cache, const Vec3& point) : Linear(cache, CellPoint(point)) {}
  Linear(LeafCache& cache, const CellPoint& at) : w{cast_to(at.rest[0]), cast_to(at.rest[1]), cast_to(at.rest[2])} {
    Int elements[8];
    cache.find_cube(at.cell[0], at.cell[1], at.cell[2], elements);
    for (int c = 0; c < 8; ++c) v[c] = sampled_at<T>(cache, elements[c]);
  }
  static Weight<T> cast_to(const Float& x) {
    return cast<typename Flat<typename VolumeValueOf<T>::Sampled>::scalar>(x);
  }
  VolumeSampled<T> v[8];
  Weight<T> w[3];
};

/// The sum over 64 voxels, row by row along z; with `slope`, also the sums with the derivatives of the weights.
template <class T>
VolumeSampled<T> cubic(LeafCache& cache, const Vec3& point, std::array<VolumeSampled<T>, 3>* slope) {
  const CellPoint at(point);
  const CubicWeights<Weight<T>> x(Linear<T>::cast_to(at.rest[0])), y(Linear<T>::cast_to(at.rest[1])),
      z(Linear<T>::cast_to(at.rest[2]));
  using V = VolumeSampled<T>;
  const V zero = typename VolumeValueOf<T>::Sampled{};
  V sum = zero, slope_x = zero, slope_y = zero, slope_z = zero;
  for (auto row : range(16)) {
    const Int a = row >> 2, b = row & 3;
    const Int i = at.cell[0] - 1 + a, j = at.cell[1] - 1 + b;
    V along = zero, along_slope = zero;
    for (int c = 0; c < 4; ++c) {
      const V v = sampled_at<T>(cache, cache.find(i, j, at.cell[2] + (c - 1)));
      along = along + v * z.value[c];
      if (slope) along_slope = along_slope + v * z.slope[c];
    }
    const Weight<T> wx = x.at(x.value, a), wy = y.at(y.value, b);
    sum = sum + along * (wx * wy);
    if (slope) {
      slope_x = slope_x + along * (x.at(x.slope, a) * wy);
      slope_y = slope_y + along * (wx * y.at(y.slope, b));
      slope_z = slope_z + along_slope * (wx * wy);
    }
  }
  if (slope) *slope = {slope_x, slope_y, slope_z};
  return sum;
}

void report_unusable(const LeafCache& cache, VolumeType type, Loc loc) {
  if (cache.held() && tracing::Trace::current(loc).debug().checks)
    assert_(In<bool>(cache.usable(), loc), "a volume found by its handle has no values of type", to_string(type));
}

template <class T>
constexpr bool is_real_value = RealScalar<typename Flat<T>::scalar>;

}  // namespace
}  // namespace detail

template <VolumeValue T>
VolumeAccessor<T>::VolumeAccessor(const VolumeInKernel& volume, Loc loc) {
  tracing::CallPlace place(loc);
  cache_ = std::make_unique<detail::LeafCache>(volume.arrays, volume.held, detail::VolumeValueOf<T>::type, loc);
  detail::report_unusable(*cache_, detail::VolumeValueOf<T>::type, loc);
}
template <VolumeValue T>
VolumeAccessor<T>::VolumeAccessor(VolumeAccessor&&) noexcept = default;
template <VolumeValue T>
VolumeAccessor<T>::~VolumeAccessor() = default;

template <VolumeValue T>
Var<T> VolumeAccessor<T>::lookup(In<vec3i> voxel, Loc loc) {
  tracing::CallPlace place(loc);
  const Vec3i v = detail::value(voxel);
  return detail::value_at<T>(*cache_, cache_->find(v.x, v.y, v.z));
}

template <VolumeValue T>
VolumeSampled<T> VolumeAccessor<T>::sample(In<vec3> point, VolumeSampling how, Loc loc) {
  tracing::CallPlace place(loc);
  const Vec3 p = detail::value(point);
  if (how == VolumeSampling::closest)
    return detail::sampled_at<T>(
        *cache_, cache_->find(detail::closest_voxel(p.x), detail::closest_voxel(p.y), detail::closest_voxel(p.z)));
  if constexpr (detail::is_real_value<T>) {
    if (how == VolumeSampling::cubic) return detail::cubic<T>(*cache_, p, nullptr);
    const detail::Linear<T> cell(*cache_, p);
    return detail::trilinear(cell.v, cell.w);
  } else {
    tracing::refuse(loc, "volume_sample: integers have no values between voxels: sample the closest one");
  }
}

template <VolumeValue T>
VolumeSlope<T> VolumeAccessor<T>::sample_slope(In<vec3> point, VolumeSampling how, Loc loc) requires VolumeSloped<T> {
  tracing::CallPlace place(loc);
  const Vec3 p = detail::value(point);
  if (how == VolumeSampling::closest)
    tracing::refuse(loc, "volume_sample_slope: the closest voxel's value has no slope; sample linear or cubic");
  VolumeSlope<T> result;
  std::array<VolumeSampled<T>, 3> slope;
  if (how == VolumeSampling::cubic) {
    result.value = detail::cubic<T>(*cache_, p, &slope);
  } else {
    const detail::Linear<T> cell(*cache_, p);
    result.value = detail::trilinear(cell.v, cell.w);
    slope = detail::trilinear_slope(cell.v, cell.w);
  }
  for (int k = 0; k < 3; ++k) {
    if constexpr (Scalar<T>)
      result.gradient[k] = slope[std::size_t(k)];
    else
      for (int c = 0; c < Flat<T>::count; ++c) result.gradient(c, k) = slope[std::size_t(k)][c];
  }
  return result;
}

template <VolumeValue T>
void VolumeAccessor<T>::store(In<vec3i> voxel, In<T> value, Loc loc) {
  tracing::CallPlace place(loc);
  if (cache_->held())
    tracing::refuse(loc, "volume_store: a volume found by its handle is read-only; pass the volume as an argument");
  const Vec3i v = detail::value(voxel);
  const Var<T> x = detail::value(value);
  const Int element = cache_->find(v.x, v.y, v.z);
  const auto& values = detail::VolumeValueOf<T>::values(cache_->volume());
  If (cache_->in_leaf()) {
    if constexpr (Scalar<T>)
      values[element] = x;
    else
      for (int k = 0; k < Flat<T>::count; ++k) values[element + k] = x[k];
  }
}

#define WEFT_ACCESSOR(T, kind, S, slope) template class VolumeAccessor<T>;
WEFT_VOLUME_TYPES(WEFT_ACCESSOR)
#undef WEFT_ACCESSOR

namespace detail {
namespace {

template <class T>
Var<T> sample_index(const VolumeInKernel& volume, const Vec3& p, VolumeSampling how, const Arr<const T>& values,
                    const Var<T>& background, Loc loc) {
  const auto at = [&](const Int& i, const Int& j, const Int& k) {
    const Int n = volume_lookup_index(volume, Vec3i(i, j, k), loc);
    Var<T> v = background;
    // Grids that number tiles and statistics too have numbers beyond the voxels.
    If ((n >= 0) & (n < values.shape(0))) {
      v = values[n];
    }
    return v;
  };
  if (how == VolumeSampling::closest) return at(closest_voxel(p.x), closest_voxel(p.y), closest_voxel(p.z));
  if (how == VolumeSampling::cubic)
    tracing::refuse(loc, "volume_sample_index: values of an array are sampled closest or linear");
  const CellPoint c(p);
  Var<T> v[8];
  for (int k = 0; k < 8; ++k) v[k] = at(c.cell[0] + (k >> 2), c.cell[1] + (k >> 1 & 1), c.cell[2] + (k & 1));
  return trilinear(v, c.rest);
}

}  // namespace
}  // namespace detail

Float volume_sample_index(const VolumeInKernel& volume, In<vec3> point, VolumeSampling how,
                          const Arr<const float>& values, In<float> background, Loc loc) {
  tracing::CallPlace place(loc);
  return detail::sample_index<float>(volume, detail::value(point), how, values, detail::value(background), loc);
}
Vec3 volume_sample_index(const VolumeInKernel& volume, In<vec3> point, VolumeSampling how,
                         const Arr<const vec3>& values, In<vec3> background, Loc loc) {
  tracing::CallPlace place(loc);
  return detail::sample_index<vec3>(volume, detail::value(point), how, values, detail::value(background), loc);
}

}  // namespace weft
