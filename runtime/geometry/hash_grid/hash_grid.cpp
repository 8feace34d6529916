// The host's part of a hash grid: checks, memory, and the passes of a build.
//
// A build is a counting sort: each point adds one to the counter of its cell, and the previous count is its rank in the
// cell; the counters are scanned; each point goes to the beginning of its cell plus its rank. If the order within a
// cell must be the same each time, the cells' numbers are the keys of a radix sort instead, which is stable; the
// counters are then read off the sorted numbers.
//
// A processor always sorts: a locked addition to a counter waits for memory, and the next one for it, while the sort
// writes to 256 places in order.
#include "../hash_grid.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "../../../frontend/language/atomic.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../algorithms/common/call.h"
#include "../../algorithms/scan.h"
#include "../../algorithms/sort.h"
#include "../../array_create.h"
#include "../../detail/given_structures.h"
#include "../../launch.h"
#include "../../tape.h"
#include "../../work/capture.h"
#include "../../work/observe.h"
#include "../shapes/finite.h"
#include "../structures/change.h"
#include "../structures/element.h"
#include "hash_grid_cell.h"

namespace weft {

namespace detail {

struct HashGridState {
  HashGridState(const Device& device, const HashGridOptions& options) : device(device), options(options) {}

  bool on_processor() const { return device.state()->device->info().host_threads > 0; }
  bool sorts(bool grouped) const { return options.deterministic || grouped || on_processor(); }
  int cells() const { return arrays.dims.x * arrays.dims.y * arrays.dims.z; }
  /// The data at id(), which leads to nothing before the first build.
  HashGridArrays found() const { return built ? arrays : HashGridArrays(); }

  const Device device;
  const HashGridOptions options;
  /// The data for kernels; its arrays are the used parts of those below.
  HashGridArrays arrays;
  Array<int> points, groups;
  Array<vec3> positions;
  // Arrays of the passes; null until they are needed.
  Array<unsigned> cell_of;  ///< by point
  Array<int> ranks;         ///< by point; with groups the keys of a sort
  Array<unsigned> keys;     ///< by place, with groups: cells
  Array<std::uint8_t> scratch;
  bool built = false;
  const std::shared_ptr<Generation> generation = std::make_shared<Generation>("a hash grid", "points");
  Element<HashGridArrays> element;
};

namespace {

// ---- Passes

/// Finds the cell of each point; the cell after the last one has the invalid points.
/// \param counts  also counts the points of each cell, by which each has its rank
auto make_cells(bool counts) {
  return kernel("hash_grid_cells", [counts](Arr<const vec3> points, Arr<int> counters, Arr<unsigned> cell_of,
                                            Arr<int> ranks, Vec3i dims, Vec3 per_dim, Float per_width, Int none) {
    const tracing::AsWritten as_written;
    Int i = tid();
    Vec3 p = points[i];
    Int at[3];
    for (int k = 0; k < 3; ++k) at[k] = Int(wrapped(cell_along(p[k], per_width), Float(dims[k]), per_dim[k]));
    Bool real = is_finite(p);
    Int cell = select(real, at[0] + dims.x * (at[1] + dims.y * at[2]), none);
    cell_of[i] = UInt(cell);
    if (counts) ranks[i] = atomic_add(counters[cell], 1);
    if (tracing::Trace::current().debug().checks) assert_(real, "a hash grid ignores point", i, "which is at", p);
  });
}
const auto& cells_kernel(bool counts) {
  static const decltype(make_cells(true)) all[] = {make_cells(false), make_cells(true)};
  return all[counts];
}

/// The counters of cells by the sorted cells of all points, in two launches: the first point of a cell takes its place
/// off the counter, then the last adds the place after its own. Each counter is written by one thread of a launch.
///
///   places 0 1 2 3, cells 1 1 1 4: counters 0 -0 0 0 -3, then 0 3 0 0 1
auto make_count(bool ends) {
  return kernel(ends ? "hash_grid_count_ends" : "hash_grid_count_begins",
                [ends](Arr<const unsigned> cells, Arr<int> counters, Int n) {
                  Int i = tid(), beside = ends ? min(i + 1, n - 1) : max(i - 1, 0);
                  UInt cell = cells[i];
                  If ((cell != cells[beside]) | (i == beside)) {
                    if (ends)
                      counters[cell] += i + 1;
                    else
                      counters[cell] = -i;
                  }
                });
}
const auto& count_kernel(bool ends) {
  static const decltype(make_count(true)) all[] = {make_count(false), make_count(true)};
  return all[ends];
}

const auto& place_kernel() {
  static const auto k = kernel(
      "hash_grid_place", [](Arr<const unsigned> cell_of, Arr<const int> ranks, Arr<const int> begins, Arr<int> points) {
        Int i = tid();
        points[begins[Int(cell_of[i])] + ranks[i]] = i;
      });
  return k;
}

const auto& number_kernel() {
  static const auto k = kernel("hash_grid_number", [](Arr<int> points) { points[tid()] = tid(); });
  return k;
}

// ---- Memory

template <class T>
void make_room(Array<T>& a, const Device& device, std::int64_t n) {
  if (a.is_null() || a.size() < n) a = Array<T>::empty(device, n);
}

void reserve(HashGridState& s, std::int64_t n, bool grouped) {
  // The first growth is exact and later ones leave room: the number of particles often changes in each frame.
  if (!s.points.is_null() && s.points.size() < n) n = std::max(n, s.points.size() + s.points.size() / 4);
  n = std::max<std::int64_t>(n, 1);
  make_room(s.points, s.device, n);
  make_room(s.positions, s.device, s.options.keep_positions ? n : 1);
  make_room(s.groups, s.device, grouped ? n : 1);
  make_room(s.cell_of, s.device, n);
  make_room(s.ranks, s.device, !s.sorts(grouped) || grouped ? n : 1);
  if (grouped) make_room(s.keys, s.device, n);
  const std::uint64_t bytes = std::max(weft::scan_scratch_bytes<int>(s.arrays.begins.size()),
                                       s.sorts(grouped) ? weft::radix_sort_scratch_bytes<unsigned, int>(n) : 0);
  make_room(s.scratch, s.device, std::int64_t(bytes));
}

std::uint64_t generation_number(const HashGridArrays& d) {
  GenerationNumber number;
  number.add(std::uint64_t(d.count)).add(std::bit_cast<std::uint32_t>(d.cell_width)).add(std::uint64_t(d.has_groups));
  number.add(d.begins).add(d.points).add(d.positions);
  if (d.has_groups) number.add(d.groups);  // else nobody reads them
  return number.value();
}

StructureUse use_of(const HashGridState& s) { return {s.generation, generation_number(s.arrays), s.arrays.count}; }

/// The first n elements; one if n is 0, because launches refuse empty arrays.
template <class T>
Array<T> part(const Array<T>& a, std::int64_t n) {
  return a.slice(0, std::clamp<std::int64_t>(n, 1, a.size()));
}

// ---- A build

HashGridArrays arrays_for(const HashGridState& s, std::int64_t points, float cell_width, bool grouped) {
  HashGridArrays d = s.arrays;
  d.points = part(s.points, points);
  d.positions = s.options.keep_positions ? part(s.positions, points) : s.positions.slice(0, 0);
  d.groups = part(s.groups, points);
  d.per_width = 1 / cell_width;
  d.cell_width = cell_width;
  d.count = int(points);
  d.has_groups = grouped;
  return d;
}

/// What is captured builds a grid as it was built before, or for the first time.
void refuse_captured(const HashGridState& s, std::int64_t points, float cell_width, bool grouped) {
  const Capture* const capture = Capture::current();
  if (!capture || (s.generation->held() == Generation::kNone && !capture->builds(*s.generation))) return;
  const bool has_room = points <= s.points.size() && (!grouped || points <= s.groups.size());
  if (has_room && generation_number(arrays_for(s, points, cell_width, grouped)) == generation_number(s.arrays)) return;
  invalid(
      fmt::format("a hash grid of {} points in cells of width {}{} is built for {} points in cells of width {}{}, or "
                  "in other memory, while {}: what is captured builds it as it is; build it so before",
                  s.arrays.count, s.arrays.cell_width, s.arrays.has_groups ? " with groups" : "", points, cell_width,
                  grouped ? " with groups" : "", capture->doing()));
}

/// The members become those of the build that follows, and the device holds nothing until that has ended.
void take_size(HashGridState& s, std::int64_t points, float cell_width, bool grouped) {
  Capture* const capture = Capture::current();
  if (!capture) s.generation->hold(Generation::kNone);
  s.arrays = arrays_for(s, points, cell_width, grouped);
  s.built = true;
  if (capture) capture->builds(use_of(s));
}

/// Sorts the numbers of the points by their cells, and within a cell by groups, if there are some, and by number.
/// Returns the cells in that order.
Array<unsigned> sort_points(HashGridState& s, const Array<unsigned>& cell_of, const Array<int>& groups) {
  HashGridArrays& d = s.arrays;
  const std::int64_t n = cell_of.size();
  launch(number_kernel(), n, d.points);
  const SortOptions by_cell{.scratch = s.scratch, .end_bit = int(std::bit_width(unsigned(s.cells())))};
  Array<unsigned> keys = cell_of;
  if (!groups.is_null()) {
    Array<int> by_group = part(s.ranks, n);
    by_group.copy_from(groups);
    radix_sort_pairs(by_group, d.points, {.scratch = s.scratch});
    keys = part(s.keys, n);
    launch(gather_kernel<unsigned, int>(), n, keys, cell_of, d.points);
  }
  radix_sort_pairs(keys, d.points, by_cell);
  if (!groups.is_null()) launch(gather_kernel<int, int>(), n, d.groups, groups, d.points);
  return keys;
}

void sort_into_cells(HashGridState& s, const Array<vec3>& points, const Array<int>& groups) {
  HashGridArrays& d = s.arrays;
  const std::int64_t n = points.size();
  const bool sorts = s.sorts(!groups.is_null());
  d.begins.zero();
  if (n == 0) return d.points.zero();
  const Array<unsigned> cell_of = part(s.cell_of, n);
  const Array<int> ranks = part(s.ranks, n);
  launch(cells_kernel(!sorts), n, points, d.begins, cell_of, ranks, d.dims, d.per_dim, d.per_width, s.cells());
  if (sorts) {
    const Array<unsigned> sorted = sort_points(s, cell_of, groups);
    for (const bool ends : {false, true}) launch(count_kernel(ends), n, sorted, d.begins, int(n));
  }
  exclusive_scan(d.begins, d.begins, {.scratch = s.scratch});
  if (!sorts) launch(place_kernel(), n, cell_of, ranks, d.begins, d.points);
}

void check(const HashGridState& s, const Array<vec3>& points, float cell_width, const Array<int>& groups) {
  require_array(s.device, points, "a hash grid", "points");
  if (!(cell_width > 0) || !std::isnormal(1 / cell_width))
    invalid("a hash grid is given cells of width {}", cell_width);
  if (points.size() > (1ll << 31) - (1 << 16))
    unsupported("a hash grid of {} points; it counts to 2^31 - 2^16", points.size());
  if (groups.is_null()) return;
  require_array(s.device, groups, "a hash grid", "groups");
  if (groups.size() != points.size())
    invalid("a hash grid of {} points is given {} groups", points.size(), groups.size());
}

}  // namespace
}  // namespace detail

HashGrid::HashGrid(const Device& device, int dim_x, int dim_y, int dim_z, const HashGridOptions& options, Loc loc) {
  detail::called_from(loc, [&] {
    std::int64_t cells = 1;
    for (const int dim : {dim_x, dim_y, dim_z}) {
      if (dim < 1 || dim > detail::kMostGridDim)
        invalid("a hash grid of {} x {} x {} cells: 1 to {} along each axis are possible", dim_x, dim_y, dim_z,
                detail::kMostGridDim);
      cells = std::min<std::int64_t>(cells * dim, 1ll << 40);
    }
    if (cells > detail::kMostGridCells)
      invalid("a hash grid of {} x {} x {} cells: {} in all are possible", dim_x, dim_y, dim_z, detail::kMostGridCells);
    const detail::HeardBy nobody(nullptr);
    const detail::OutsideCapture at_once;
    state_ = std::make_shared<detail::HashGridState>(device, options);
    HashGridArrays& d = state_->arrays;
    d.tag = detail::kHashGridTag;
    d.dims = {dim_x, dim_y, dim_z};
    for (int k = 0; k < 3; ++k) d.per_dim[k] = 1 / float(d.dims[k]);
    d.begins = zeros<int>(device, cells + 2);
    d.begins.storage()->structure = state_->generation;
  });
}

detail::HashGridState& HashGrid::state() const {
  if (!state_) invalid("a null hash grid is used");
  return *state_;
}

void HashGrid::build(const Array<vec3>& points, float cell_width, const Array<int>& groups, Loc loc) {
  detail::called_from(loc, [&] {
    detail::HashGridState& s = state();
    detail::check(s, points, cell_width, groups);
    detail::refuse_captured(s, points.size(), cell_width, !groups.is_null());
    const std::int64_t n = points.size();
    HashGridArrays& d = s.arrays;
    detail::Capture* const capture = detail::Capture::current();
    std::optional<detail::Capture::Whole> whole;
    if (capture) {
      whole.emplace(*capture, "a build of a hash grid");
    } else {
      // The list includes arrays that are replaced rather than written: recorded work that is not submitted yet would
      // be of another grid by then.
      const ArrayBase* const written[] = {&d.begins, &s.points, &s.positions, &s.groups, &s.element.array()};
      const ArrayBase* const read[] = {&points, &groups};
      detail::refuse_change(*s.device.state(), written, read);
    }
    Tape::unrecorded([&] {
      // From now on graphs write the element, and until they run it has the old data.
      if (capture) s.element.make(s.device, [&] { return s.found(); });
      detail::reserve(s, n, !groups.is_null());
      detail::take_size(s, n, cell_width, !groups.is_null());
      detail::sort_into_cells(s, points, groups);
      s.element.write([&] { return s.found(); });
    });
    // A tape hears this launch, so that gradients pass through it.
    if (s.options.keep_positions && n > 0) launch(detail::gather_kernel<vec3, int>(), n, d.positions, points, d.points);
    capture ? whole->done() : s.generation->hold(detail::use_of(s).number);
  });
}

void HashGrid::reserve(std::int64_t points, Loc loc) {
  detail::called_from(loc, [&] {
    if (points < 0) invalid("a hash grid is to have memory for {} points", points);
    Tape::unrecorded([&] { detail::reserve(state(), points, state().arrays.has_groups); });
  });
}

Device HashGrid::device() const { return state().device; }
vec3i HashGrid::dims() const { return state().arrays.dims; }
const HashGridOptions& HashGrid::options() const { return state().options; }
std::int64_t HashGrid::size() const { return state().arrays.count; }
std::int64_t HashGrid::ignored(Loc loc) const {
  return detail::called_from(loc, [&] {
    const int cells = state().cells();
    const std::vector<int> ends = state().arrays.begins.slice(cells).to_vector();
    return ends[1] - ends[0];
  });
}
std::uint64_t HashGrid::id(Loc loc) const {
  return detail::called_from(loc, [&] {
    detail::HashGridState& s = state();
    return s.element.id(s.device, [&] { return s.found(); });
  });
}
const HashGridArrays& HashGrid::kernel_argument() const {
  if (!state().built) invalid("a hash grid is used before it was built");
  return state().arrays;
}

detail::StructureUse stored::weft_structure_of(const HashGridArrays& grid) {
  if (grid.begins.is_null() || !grid.begins.storage()->structure) return {};
  return {grid.begins.storage()->structure, detail::generation_number(grid), grid.count};
}

}  // namespace weft
