// Computes the offsets of each type's grids by the rules of C++ structs, by which NanoVDB has them.
#include "layout.h"

#include <array>

namespace weft {

const char* to_string(VolumeType type) {
  switch (type) {
    case VolumeType::float32: return "float32";
    case VolumeType::float64: return "float64";
    case VolumeType::int32: return "int32";
    case VolumeType::int64: return "int64";
    case VolumeType::vec3f: return "vec3f";
    case VolumeType::vec3d: return "vec3d";
    case VolumeType::float16: return "float16";
    case VolumeType::uint32: return "uint32";
    case VolumeType::vec4f: return "vec4f";
    case VolumeType::vec4d: return "vec4d";
    case VolumeType::index: return "index";
    case VolumeType::on_index: return "on_index";
  }
  return "unknown";
}

namespace grids {

namespace {

constexpr std::uint32_t aligned(std::uint32_t at, std::uint32_t to) { return (at + to - 1) / to * to; }

/// Statistics from `at` on: two values, and two reals that are aligned to themselves.
constexpr NodeLayout node(std::uint32_t at, std::uint32_t value, std::uint32_t average, std::uint32_t entries,
                          std::uint32_t stride) {
  NodeLayout n{};
  n.minimum = at;
  n.maximum = at + value;
  n.average = aligned(at + 2 * value, average);
  n.deviation = n.average + average;
  n.values = aligned(n.deviation + average, kAlign);
  n.bytes = aligned(n.values + entries * stride, kAlign);
  return n;
}

constexpr Layout layout(VolumeType type, std::uint32_t scalars, std::uint32_t scalar_bytes) {
  Layout l{};
  l.type = type;
  l.scalars = scalars;
  l.scalar_bytes = scalar_bytes;
  l.average_bytes = scalar_bytes == 8 ? 8 : 4;
  const std::uint32_t value = scalars * scalar_bytes;
  l.background = aligned(28, scalar_bytes);
  l.tile_value = aligned(20, scalar_bytes);
  l.tile_bytes = aligned(l.tile_value + value, kAlign);
  // Tables hold values or children of 8 bytes.
  l.table_stride = aligned(value, 8);
  l.root = node(l.background + value, value, l.average_bytes, 0, 0);
  l.upper = node(8224, value, l.average_bytes, kEntries[2], l.table_stride);
  l.lower = node(1056, value, l.average_bytes, kEntries[1], l.table_stride);
  l.leaf = node(80, value, l.average_bytes, kEntries[0], value);
  if (l.is_index()) l.leaf = {80, 80, 80, 80, 80, 96};  // the first number, and what the words before each count
  return l;
}

constexpr std::array kLayouts = {
    layout(VolumeType::float32, 1, 4), layout(VolumeType::float64, 1, 8), layout(VolumeType::int32, 1, 4),
    layout(VolumeType::int64, 1, 8),   layout(VolumeType::vec3f, 3, 4),   layout(VolumeType::vec3d, 3, 8),
    layout(VolumeType::float16, 1, 2), layout(VolumeType::uint32, 1, 4),  layout(VolumeType::vec4f, 4, 4),
    layout(VolumeType::vec4d, 4, 8),   layout(VolumeType::index, 1, 8),   layout(VolumeType::on_index, 1, 8)};

}  // namespace

std::span<const Layout> layouts() { return kLayouts; }

const Layout* layout_of(VolumeType type) {
  for (const Layout& l : kLayouts)
    if (l.type == type) return &l;
  return nullptr;
}

}  // namespace grids
}  // namespace weft
