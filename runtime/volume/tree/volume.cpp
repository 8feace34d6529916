// The host's part of a volume: grids from files, arrays and voxels, and their memory on the device.
#include "../volume.h"

#include <fmt/format.h>

#include <limits>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../frontend/support/platform.h"
#include "../../array_create.h"
#include "../../core/view.h"
#include "../../work/capture.h"
#include "../../work/observe.h"
#include "../files/codec.h"
#include "../files/nvdb_file.h"
#include "../grid/build.h"
#include "volume_state.h"

namespace weft {

namespace detail {

namespace {

/// Uploads a grid that was checked.
std::shared_ptr<VolumeState> upload(const Device& device, std::span<const std::byte> bytes, grids::Grid grid) {
  const HeardBy nobody(nullptr);
  const OutsideCapture at_once;
  auto made = std::make_shared<VolumeState>();
  // Scalars of 8 bytes are read too.
  const auto memory = empty<std::uint8_t>(device, std::int64_t((bytes.size() + 7) / 8 * 8));
  Array<std::uint8_t>(memory.slice(0, std::int64_t(bytes.size())))
      .assign(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  made->arrays = arrays_of(grid, Row<unsigned>(memory), map_of(bytes), Array<int>(device, grid.voxels_before));
  made->grid = std::move(grid);
  return made;
}

std::vector<std::byte> content_of(const std::string& path) {
  std::string why;
  std::optional<std::vector<std::byte>> content = platform::read_file(path, ~0ull, &why);
  if (!content) throw Error(ErrorKind::io, fmt::format("{}: the file cannot be read: {}", path, why));
  return std::move(*content);
}

const grids::Entry& chosen(const std::vector<grids::Entry>& entries, const VolumeChoice& which,
                           const std::string& about) {
  if (which.name.empty()) {
    if (which.index < 0 || std::size_t(which.index) >= entries.size())
      invalid("{}: there is no grid {} among its {}", about, which.index, entries.size());
    return entries[std::size_t(which.index)];
  }
  for (const grids::Entry& e : entries)
    if (e.name == which.name) return e;
  invalid("{}: there is no grid of the name \"{}\"", about, which.name);
}

std::shared_ptr<VolumeState> load(const Device& device, std::span<const std::byte> file, const VolumeChoice& which,
                                  const std::string& about) {
  return explained(ErrorKind::io, about, [&] {
    const std::vector<grids::Entry> entries = grids::entries_of(file);
    grids::Unpacked unpacked;
    const std::span<const std::byte> bytes = grids::grid_of(file, chosen(entries, which, about), unpacked);
    grids::Grid grid = grids::check_grid(bytes);
    return upload(device, bytes, std::move(grid));
  });
}

std::shared_ptr<VolumeState> build(const Device& device, const grids::GridPlan& plan,
                                   std::span<const grids::LeafPlan> leaves,
                                   const std::function<void(std::span<std::byte>, const grids::Grid&)>& fill = {}) {
  return explained(ErrorKind::invalid_argument, "a volume cannot be made", [&] {
    std::vector<std::byte> bytes = grids::build_grid(plan, leaves);
    grids::Grid grid = grids::check_grid(bytes);
    if (fill) fill(bytes, grid);
    return upload(device, bytes, std::move(grid));
  });
}

void check_size(std::int64_t values, const vec3i& size) {
  std::int64_t expected = 1;
  for (int k = 0; k < 3; ++k) {
    if (size[k] < 0 || (size[k] > 0 && expected > std::numeric_limits<std::int64_t>::max() / size[k]))
      invalid("a volume is to have {} x {} x {} voxels", size.x, size.y, size.z);
    expected *= size[k];
  }
  if (values != expected) invalid("a volume of {} x {} x {} voxels is given {} values", size.x, size.y, size.z, values);
}

/// The voxels of a block that differ from the background, by their bits.
std::vector<vec3i> filled_voxels(std::span<const std::byte> values, std::span<const std::byte> background,
                                 const vec3i& size, const vec3i& lower) {
  std::vector<vec3i> voxels;
  const std::size_t bytes = background.size();
  std::size_t at = 0;
  for (int x = 0; x < size.x; ++x)
    for (int y = 0; y < size.y; ++y)
      for (int z = 0; z < size.z; ++z, at += bytes)
        if (std::memcmp(values.data() + at, background.data(), bytes) != 0)
          voxels.push_back({lower.x + x, lower.y + y, lower.z + z});
  return voxels;
}

std::shared_ptr<VolumeState> dense(const Device& device, VolumeType type, std::span<const std::byte> values,
                                   const vec3i& size, const vec3i& lower, std::span<const std::byte> background,
                                   const VolumeOptions& options) {
  check_size(std::int64_t(values.size() / background.size()), size);
  for (int k = 0; k < 3; ++k)
    if (std::int64_t(lower[k]) + size[k] > 0x80000000ll)
      invalid("the voxels of a volume begin at {}, with {} along an axis: they leave the integers", lower[k], size[k]);
  const std::vector<vec3i> voxels = filled_voxels(values, background, size, lower);
  const std::vector<grids::LeafPlan> leaves = grids::leaves_of(voxels, false);
  return build(device, plan_of(type, background, options), leaves,
               [&](std::span<std::byte> grid, const grids::Grid& facts) {
                 const grids::Layout& l = *facts.layout;
                 for (std::size_t k = 0; k < leaves.size(); ++k)
                   for (int n = 0; n < 512; ++n) {
                     const vec3i o = leaves[k].origin;
                     const std::int64_t at[] = {std::int64_t(o.x) + (n >> 6) - lower.x,
                                                std::int64_t(o.y) + (n >> 3 & 7) - lower.y,
                                                std::int64_t(o.z) + (n & 7) - lower.z};
                     if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= size.x || at[1] >= size.y || at[2] >= size.z)
                       continue;
                     const std::uint64_t from = std::uint64_t((at[0] * size.y + at[1]) * size.z + at[2]);
                     std::memcpy(grid.data() + facts.levels.first[0] + k * l.leaf.bytes + l.leaf.values +
                                     std::size_t(n) * l.value_bytes(),
                                 values.data() + from * l.value_bytes(), l.value_bytes());
                   }
               });
}

bool has_gradient(const VolumeArrays& a) {
  const auto any = [](const auto&... arrays) { return (arrays.has_grad() || ...); };
  return any(a.float32_values, a.vec3f_values, a.vec4f_values, a.float64_values, a.vec3d_values, a.vec4d_values,
             a.float16_values, a.transform);
}

}  // namespace
}  // namespace detail

Volume::Volume(const Array<std::uint8_t>& grid, Loc loc) {
  detail::called_from(loc, [&] {
    if (grid.is_null()) invalid("a volume is given a null array");
    const std::vector<std::uint8_t> bytes = grid.to_vector();
    state_ = detail::explained(ErrorKind::invalid_argument, "the array of a volume", [&] {
      grids::Grid checked = grids::check_grid(std::as_bytes(std::span(bytes)));
      return detail::upload(grid.device(), std::as_bytes(std::span(bytes)), std::move(checked));
    });
  });
}

Volume Volume::load(const Device& device, const std::string& path, const VolumeChoice& which, Loc loc) {
  return detail::called_from(loc, [&] { return Volume(detail::load(device, detail::content_of(path), which, path)); });
}
Volume Volume::load(const Device& device, std::span<const std::byte> file, const VolumeChoice& which, Loc loc) {
  return detail::called_from(loc, [&] { return Volume(detail::load(device, file, which, "the bytes")); });
}

std::vector<std::string> Volume::names(const std::string& path, Loc loc) {
  return detail::called_from(loc, [&] {
    const std::vector<std::byte> file = detail::content_of(path);
    return detail::explained(ErrorKind::io, path, [&] {
      std::vector<std::string> names;
      for (const grids::Entry& e : grids::entries_of(file)) names.push_back(e.name);
      return names;
    });
  });
}

std::vector<std::byte> Volume::bytes(Loc loc) const {
  return detail::called_from(loc, [&] {
    const detail::VolumeState& s = state();
    const grids::Grid& facts = state().facts();
    const std::vector<unsigned> words = s.arrays.words.to_vector();
    std::vector<std::byte> grid(facts.info.bytes);
    std::memcpy(grid.data(), words.data(), grid.size());
    detail::explained(ErrorKind::invalid_argument, "the volume cannot be read back", [&] {
      // A program may have written the transform, of which the grid has a copy.
      const std::vector<float> map = s.arrays.transform.to_vector();
      const bool moved = std::memcmp(map.data(), grid.data() + grids::kMap, map.size() * sizeof(float)) != 0;
      if (moved) {
        const mat33d matrix(map[0], map[1], map[2], map[3], map[4], map[5], map[6], map[7], map[8]);
        grids::put_transform(grid, matrix, {map[18], map[19], map[20]});
      }
      if (moved || s.making) grids::put_world_box(grid, facts.levels);
      grids::make_readable(grid, facts);
    });
    return grid;
  });
}

void Volume::save(const std::string& path, VolumeCodec codec, Loc loc) const {
  detail::called_from(loc, [&] {
    if (codec != VolumeCodec::none && codec != VolumeCodec::zip && codec != VolumeCodec::blosc)
      invalid("{}: there is no codec {}", path, int(codec));
    if (!grids::has_codec(codec)) unsupported("{}: this build of weft does not have the codec Blosc", path);
    const std::vector<std::byte> grid = bytes();
    const std::vector<std::byte> file = detail::explained(ErrorKind::io, path, [&] {
      (void)grids::check_grid(grid);  // kernels may have written its words
      return grids::file_of(grid, state().facts(), codec);
    });
    std::string why;
    if (!platform::write_file(path, file, &why))
      throw Error(ErrorKind::io, fmt::format("{}: the file cannot be written: {}", path, why));
  });
}

template <VolumeValue T>
Volume Volume::allocate_by_tiles(const Device& device, std::span<const vec3i> voxels, const T& background,
                                 const VolumeOptions& options, Loc loc) {
  return detail::called_from(loc, [&] {
    constexpr VolumeType type = detail::VolumeValueOf<T>::type;
    return Volume(detail::build(device, detail::plan_of(type, detail::bytes_of(background), options),
                                grids::leaves_of(voxels, true)));
  });
}
template <VolumeValue T>
Volume Volume::allocate_by_voxels(const Device& device, std::span<const vec3i> voxels, const T& background,
                                  const VolumeOptions& options, Loc loc) {
  return detail::called_from(loc, [&] {
    constexpr VolumeType type = detail::VolumeValueOf<T>::type;
    return Volume(detail::build(device, detail::plan_of(type, detail::bytes_of(background), options),
                                grids::leaves_of(voxels, false)));
  });
}
template <VolumeValue T>
Volume Volume::from_dense(const Device& device, std::span<const T> values, vec3i size, vec3i lower, const T& background,
                          const VolumeOptions& options, Loc loc) {
  return detail::called_from(loc, [&] {
    return Volume(detail::dense(device, detail::VolumeValueOf<T>::type, std::as_bytes(values), size, lower,
                                detail::bytes_of(background), options));
  });
}

template <VolumeValue T>
Array<T, 2> Volume::values(Loc loc) const {
  return detail::called_from(loc, [&] {
    const detail::VolumeState& s = state();
    constexpr VolumeType type = detail::VolumeValueOf<T>::type;
    if (s.grid.info.type != type)
      invalid("values of type {} are asked of a volume of type {}", to_string(type), to_string(s.grid.info.type));
    (void)state().facts();
    return Array<T, 2>(detail::LeafValues<T>(s));
  });
}

#define WEFT_VOLUME_OF(T, kind, S, slope)                                                                              \
  template Volume Volume::allocate_by_tiles<T>(const Device&, std::span<const vec3i>, const T&, const VolumeOptions&,  \
                                               Loc);                                                                   \
  template Volume Volume::allocate_by_voxels<T>(const Device&, std::span<const vec3i>, const T&, const VolumeOptions&, \
                                                Loc);                                                                  \
  template Volume Volume::from_dense<T>(const Device&, std::span<const T>, vec3i, vec3i, const T&,                     \
                                        const VolumeOptions&, Loc);                                                    \
  template Array<T, 2> Volume::values<T>(Loc) const;
WEFT_VOLUME_TYPES(WEFT_VOLUME_OF)
#undef WEFT_VOLUME_OF

detail::VolumeState& Volume::state() const {
  if (!state_) invalid("a null volume is used");
  return *state_;
}

Device Volume::device() const { return state().arrays.words.device(); }
const VolumeInfo& Volume::info() const { return state().facts().info; }
const Array<float>& Volume::transform() const { return state().arrays.transform; }
const VolumeArrays& Volume::kernel_argument() const { return state().arrays; }

const Volume& Volume::requires_grad(Loc loc) const {
  detail::called_from(loc, [&] {
    const VolumeArrays& a = state().arrays;
    if (!state().element.array().is_null())
      invalid("requires_grad() of a volume that kernels find by its id(): by that, its values have no gradients");
    const auto give = [](const auto&... arrays) {
      return ((arrays.size() > 0 ? (arrays.requires_grad(), 1) : 0) + ...);
    };
    if (give(a.float32_values, a.vec3f_values, a.vec4f_values, a.float64_values, a.vec3d_values, a.vec4d_values,
             a.float16_values) == 0)
      invalid("requires_grad() of a volume of type {}, whose values are no reals", to_string(info().type));
  });
  return *this;
}

std::uint64_t Volume::id(Loc loc) const {
  return detail::called_from(loc, [&] {
    detail::VolumeState& s = state();
    if (detail::has_gradient(s.arrays))
      invalid(
          "id() of a volume whose values or transform require gradients, which kernels do not pass on by it: give "
          "kernels the volume itself");
    return s.element.id(device(), [&] { return s.arrays; });
  });
}

}  // namespace weft
