// Memory, shapes and transfers of arrays.
#include "../array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "../../backends/vulkan/interop.h"
#include "../../frontend/support/error.h"
#include "../core/state.h"
#include "../core/view.h"
#include "../extent.h"
#include "../work/capture.h"
#include "../work/element_write.h"
#include "../work/observe.h"
#include "../work/work.h"
#include "host_copy_state.h"
#include "strided_copy.h"

namespace weft {

namespace {
[[noreturn]] void invalid(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }
// For a caller at `loc`.
[[noreturn]] void refuse_at(Loc loc, const std::string& message) {
  Error error(ErrorKind::invalid_argument, message);
  error.set_caller(loc);
  throw error;
}

std::string shape_text(const std::array<std::int64_t, 4>& shape, int ndim) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.begin() + ndim, ", "));
}
}  // namespace

Extent::Extent(std::initializer_list<std::int64_t> sizes, Loc loc) : rank(int(sizes.size())) {
  if (sizes.size() == 0 || sizes.size() > 4)
    refuse_at(loc, fmt::format("{} dimensions; 1 to 4 are possible", sizes.size()));
  std::ranges::copy(sizes, n.begin());
}

namespace detail {
void length_mismatch(std::size_t given, std::int64_t expected) {
  invalid(fmt::format("{} elements are given where the array has {}", given, expected));
}
}  // namespace detail

void ArrayBase::no_dimension(int k, const char* asked, Loc loc) const {
  refuse_at(loc, fmt::format("{}({}) of an array of {} dimension(s)", asked, k, ndim_));
}

Device ArrayBase::device(Loc loc) const {
  if (is_null()) refuse_at(loc, "the array is null: it was default constructed and has no device");
  return Device(storage_->device);
}

void ArrayBase::wait(Loc loc) const {
  if (storage_) detail::called_from(loc, [&] { storage_->wait_for_writers(); });
}

namespace detail {
std::array<std::int64_t, 4> tight_strides(const std::array<std::int64_t, 4>& shape, int ndim, std::int64_t bytes) {
  std::array<std::int64_t, 4> strides{};
  for (int k = ndim - 1; k >= 0; --k) {
    strides[std::size_t(k)] = bytes;
    bytes *= std::max<std::int64_t>(shape[std::size_t(k)], 1);
  }
  return strides;
}

std::uint64_t checked_bytes(const Extent& extent, int ndim, std::uint32_t element_bytes) {
  if (extent.rank != ndim)
    invalid(fmt::format("an array of {} dimension(s) is asked for with {} size(s)", ndim, extent.rank));
  std::uint64_t bytes = element_bytes, strides = element_bytes;
  for (int k = 0; k < ndim; ++k) {
    if (extent[k] < 0) invalid(fmt::format("size {} of dimension {} is negative", extent[k], k));
    bytes *= std::uint64_t(extent[k]);
    // Sizes beside an empty dimension must not overflow either: strides are made of them.
    if (__builtin_mul_overflow(strides, std::max<std::uint64_t>(std::uint64_t(extent[k]), 1), &strides) ||
        strides > std::uint64_t(INT64_MAX))
      throw Error(ErrorKind::out_of_memory,
                  fmt::format("an array of shape {} and {} bytes an element is larger than any memory",
                              shape_text(extent.n, ndim), element_bytes));
  }
  return bytes;
}
}  // namespace detail

namespace {
detail::StreamState& stream_of(detail::Storage& storage) { return detail::current_stream(*storage.device); }

// Before anything is noted of an operation that an array has no elements for.
void require_memory(const ArrayBase& array, const char* null_message) {
  if (array.is_null()) invalid(null_message);
  array.storage()->check_present();
}

Extent extent_of(const std::array<std::int64_t, 4>& shape, int ndim) {
  Extent extent(0);
  extent.n = shape;
  extent.rank = ndim;
  return extent;
}
}  // namespace

using detail::checked_bytes;
using detail::tight_strides;

void ArrayBase::create(const Device& device, const Extent& extent, int ndim, bool holds_arrays) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes_);
  shape_ = extent.n;
  stride_ = tight_strides(shape_, ndim, element_bytes_);
  storage_ = detail::allocate(device.state(), bytes);
  storage_->may_hold_arrays = holds_arrays;
  address_ = storage_->allocation.address;
}

void ArrayBase::create_around(const Device& device, const Extent& extent, int ndim, void* data, std::uint64_t count,
                              std::shared_ptr<void> owner) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes_);
  if (count * element_bytes_ != bytes) detail::length_mismatch(count, std::int64_t(bytes / element_bytes_));
  shape_ = extent.n;
  stride_ = tight_strides(shape_, ndim, element_bytes_);
  storage_ = detail::wrap(device.state(), static_cast<std::byte*>(data), bytes, std::move(owner));
  address_ = storage_->allocation.address;
}

void ArrayBase::create_around(const Device& device, const Extent& extent, int ndim, const VulkanBuffer& buffer,
                              std::shared_ptr<void> owner) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes_);
  if (buffer.bytes != bytes)
    invalid(fmt::format("{} bytes of a VkBuffer are given to an array of {} bytes", buffer.bytes, bytes));
  shape_ = extent.n;
  stride_ = tight_strides(shape_, ndim, element_bytes_);
  storage_ = detail::wrap(device.state(), buffer, std::move(owner));
  address_ = storage_->allocation.address;
}

void ArrayBase::free(Loc loc) {
  detail::called_from(loc, [&] {
    require_memory(*this, "a null array is freed");
    if (const detail::Capture* capture = detail::Capture::current())
      invalid(fmt::format("an array is freed while {}: call free() before or after it", capture->doing()));
    // What steps that are run again will need, nobody knows yet.
    if (detail::recorder())
      throw Error(ErrorKind::unsupported,
                  "an array is freed while a tape records: call free() outside of record() and of steps that are "
                  "checkpointed, or let the handles go");
    storage_->free();
  });
}

bool ArrayBase::is_freed() const { return storage_ && storage_->is_freed(); }

VulkanBuffer ArrayBase::vk(Loc loc) const {
  return detail::called_from(loc, [&] {
    require_memory(*this, "vk() of a null array");
    const backend::VulkanAccess access(*storage_->device->device, "vk()");
    if (size() == 0) invalid("vk() of an empty array: it has no memory");
    const VulkanBuffer located = access.locate(address_, extent_bytes());
    storage_->lent = true;
    return located;
  });
}

namespace {
// What an operation on arrays is made of is no business of the recorder that was told of the operation.
class Told : detail::HeardBy {
 public:
  // All elements get values of the host.
  Told(const char* by, const ArrayBase& to, const detail::HostValues& values) : HeardBy(tell_of(by, to, values)) {}
  Told(const ArrayBase& to, const ArrayBase& from, std::span<const detail::Leaf> leaves)
      : HeardBy(tell_of(to, from, leaves)) {}

 private:
  // Watchers ask who has heard of it.
  static detail::Recorder* tell_of(const char* by, const ArrayBase& to, const detail::HostValues& values) {
    if (detail::Recorder* r = detail::recorder()) r->overwriting(to, values);
    before_write(by, to);
    return nullptr;
  }
  static detail::Recorder* tell_of(const ArrayBase& to, const ArrayBase& from, std::span<const detail::Leaf> leaves) {
    if (detail::Recorder* r = detail::recorder()) r->copying(to, from, leaves);
    before_write("copy_from()", to);
    return nullptr;
  }
  static void before_write(const char* by, const ArrayBase& to) {
    detail::before_write(to, stream_of(*to.storage()), {.by = by, .replaces_all = true});
  }
  const detail::Within<bool> part_{&detail::Context::part_of_change, true};
};

// Elements go to the host.
class Read : detail::HeardBy {
 public:
  explicit Read(const ArrayBase& from) : HeardBy(tell_of(from)) {}

 private:
  static detail::Recorder* tell_of(const ArrayBase& from) {
    if (detail::Recorder* r = detail::recorder()) r->reading(from);
    return nullptr;
  }
};

// Work on Device::stream() that writes an array.
template <class F>
void write_to(detail::Storage& storage, F record) {
  detail::StreamState& stream = stream_of(storage);
  const detail::Access access[] = {{&storage, true}};
  detail::submit(stream, {.name = "a write", .accesses = access}, record);
}
}  // namespace

void ArrayBase::upload(const void* data, std::uint64_t count, std::span<const detail::Leaf> leaves,
                       const detail::References* held) {
  require_memory(*this, "elements are assigned to a null array");
  if (count != std::uint64_t(size())) detail::length_mismatch(count, size());
  if (count == 0) return;
  const Told told(
      "assign()", *this,
      {{static_cast<const std::byte*>(data), std::size_t(count * element_bytes_)}, leaves, element_bytes_, held});
  if (!is_contiguous()) {
    ArrayBase packed(ndim_, element_bytes_);
    packed.create(device(), extent_of(shape_, ndim_), ndim_);
    packed.upload(data, count);
    detail::strided_copy(*this, packed);
    return;
  }
  write_to(*storage_, [&](backend::Stream& s) { return s.upload(address_, data, count * element_bytes_); });
}

void ArrayBase::download(void* data) const {
  require_memory(*this, "elements are read from a null array");
  if (size() == 0) return;
  const Read told(*this);
  if (!is_contiguous()) {
    ArrayBase packed(ndim_, element_bytes_);
    packed.copy_elements(*this);
    packed.download(data);
    return;
  }
  storage_->download(data, address_, std::uint64_t(size()) * element_bytes_);
}

HostCopy ArrayBase::start_download(void* data) const {
  require_memory(*this, "elements are read from a null array");
  if (size() == 0) return {};
  const Read told(*this);
  if (!is_contiguous()) {
    ArrayBase packed(ndim_, element_bytes_);
    packed.copy_elements(*this);
    return packed.start_download(data);
  }
  return HostCopy(detail::start_host_copy(*storage_, address_, std::uint64_t(size()) * element_bytes_,
                                          static_cast<std::byte*>(data)));
}

void ArrayBase::upload_packed(const std::byte* data, std::uint64_t count, const detail::References& references) {
  require_memory(*this, "elements are assigned to a null array");
  // Before anything is noted.
  if (count != std::uint64_t(size())) detail::length_mismatch(count, size());
  if (count == 0) return;
  if (!is_contiguous()) detail::refuse_freed(*storage_, references);
  const detail::ElementWrite elements{
      .to = storage_, .from = nullptr, .list = references, .whole = detail::is_whole(*this)};
  elements.refuse_circle();
  const Told told("assign()", *this, {{data, std::size_t(count * element_bytes_)}, {}, element_bytes_, &references});
  elements.run([&] { upload(data, count, {}, &references); });
}

void ArrayBase::fill_packed(const std::byte* element, const detail::References& references) {
  require_memory(*this, "a null array is filled");
  if (size() == 0) return;
  // Not for a kernel that fills: it is given memory with the elements, and that is to be there.
  const bool by_host = is_contiguous() && storage_->leads_to_freed();
  if (!by_host) detail::refuse_freed(*storage_, references);
  const detail::ElementWrite elements{
      .to = storage_, .from = nullptr, .list = references, .whole = detail::is_whole(*this)};
  elements.refuse_circle();
  const Told told("fill()", *this, {{element, element_bytes_}, {}, element_bytes_, &references});
  elements.run([&] {
    if (!by_host) return fill_element(element, {}, &references);
    auto all = detail::host_vector<std::byte>(std::uint64_t(size()) * element_bytes_);
    for (std::size_t at = 0; at < all.size(); at += element_bytes_)
      std::memcpy(all.data() + at, element, element_bytes_);
    upload(all.data(), std::uint64_t(size()), {}, &references);
  });
}

detail::References ArrayBase::references() const {
  if (!storage_) return {};
  const detail::ReferenceList held = storage_->references();
  detail::References list = held ? *held : detail::References();
  if (std::ranges::any_of(list, &detail::Storage::is_freed))
    invalid("the elements of an array may hold another array that was freed: assign all of them anew");
  list.push_back(storage_);  // elements may hold views of their own array
  std::ranges::sort(list, {}, [](const auto& s) { return s->allocation.address; });
  return list;
}

namespace detail {
void pack_handle(const ArrayBase& array, Storage& holder, std::byte* to, References& references) {
  std::memset(to, 0, 8 + 4 * std::size_t(array.ndim()));
  if (array.is_null()) return;
  const std::shared_ptr<Storage>& storage = array.storage();
  storage->check_present();
  if (storage->device != holder.device)
    invalid(fmt::format("a struct for device {} holds an array on device {}", holder.device->device->info().name,
                        storage->device->device->info().name));
  if (!array.is_contiguous() || array.address() % wide_alignment(array.element_bytes()) != 0)
    throw Error(ErrorKind::unsupported,
                "a struct in an array holds a strided view: elements hold contiguous arrays; clone() it first");
  const std::uint64_t address = array.address();
  std::memcpy(to, &address, 8);
  for (int k = 0; k < array.ndim(); ++k) {
    if (array.shape(k) > INT32_MAX)
      throw Error(
          ErrorKind::unsupported,
          fmt::format("a struct in an array holds an array of {} elements; kernels count to 2^31 - 1", array.shape(k)));
    const std::int32_t n = std::int32_t(array.shape(k));
    std::memcpy(to + 8 + 4 * k, &n, 4);
  }
  references.push_back(storage);
}

void unpack_handle(ArrayBase& array, const std::byte* from, const References& references) {
  std::uint64_t address;
  std::memcpy(&address, from, 8);
  array.storage_.reset();
  if (!address) return;
  // By address: a device's allocations do not overlap.
  const auto after = std::ranges::upper_bound(references, address, {},
                                              [](const std::shared_ptr<Storage>& s) { return s->allocation.address; });
  if (after == references.begin()) return;
  const auto found = after - 1;
  if (address - (*found)->allocation.address > (*found)->bytes) return;
  array.storage_ = *found;
  array.address_ = address;
  std::int64_t stride = array.element_bytes_;
  for (int k = array.ndim_ - 1; k >= 0; --k) {
    std::int32_t n;
    std::memcpy(&n, from + 8 + 4 * k, 4);
    array.shape_[std::size_t(k)] = n;
    array.stride_[std::size_t(k)] = stride;
    stride *= std::max(n, 1);
  }
}
}  // namespace detail

void ArrayBase::fill_element(const void* element, std::span<const detail::Leaf> leaves,
                             const detail::References* held) {
  require_memory(*this, "a null array is filled");
  if (size() == 0) return;
  const auto* bytes = static_cast<const std::byte*>(element);
  // Zeros hold no arrays.
  if (!held && storage_->may_hold_arrays) return fill_packed(bytes, {});
  const Told told("fill()", *this, {{bytes, element_bytes_}, leaves, element_bytes_, held});
  const std::uint64_t total = std::uint64_t(size()) * element_bytes_;
  // A pattern that repeats every word is the device's own fill; whole allocations are padded to words.
  const bool repeats = [&] {
    for (std::uint32_t i = 0; i < std::max(element_bytes_, 4u); ++i)
      if (bytes[i % element_bytes_] != bytes[i % 4 % element_bytes_]) return false;
    return 4 % element_bytes_ == 0 || element_bytes_ % 4 == 0;
  }();
  const bool whole = address_ == storage_->allocation.address && total == storage_->bytes;
  if (is_contiguous() && repeats && (total % 4 == 0 || whole) && address_ % 4 == 0) {
    std::uint32_t pattern;
    std::byte word[4];
    for (std::uint32_t i = 0; i < 4; ++i) word[i] = bytes[i % element_bytes_];
    std::memcpy(&pattern, word, 4);
    write_to(*storage_, [&](backend::Stream& s) { return s.fill(address_, (total + 3) / 4 * 4, pattern); });
    return;
  }
  // One element, seen as an array of this shape that does not advance.
  ArrayBase one(1, element_bytes_);
  one.create(device(), Extent(1), 1);
  one.upload(element, 1);
  one.ndim_ = ndim_;
  one.shape_ = shape_;
  one.stride_ = {};
  detail::strided_copy(*this, one);
}

namespace {
detail::ElementWrite write_of(const ArrayBase& to, const ArrayBase& from) {
  return {.to = to.storage(), .from = from.storage(), .list = {}, .whole = detail::is_whole(to)};
}

// Arrays in elements cannot follow these to another device.
void refuse_held(detail::Storage& from) {
  if (from.references() || from.holds_itself())
    throw Error(ErrorKind::unsupported,
                "an array of structs that hold arrays is copied to another device: their arrays would stay behind");
}

// Comes before a tape is told of the copy and before anything is noted.
void refuse_copy(const ArrayBase& to, const ArrayBase& from) {
  if (!from.storage()->may_hold_arrays) return;
  const bool across = to.storage()->device != from.storage()->device;
  if (across) refuse_held(*from.storage());
  // From another device elements come without arrays.
  if (!to.is_contiguous() || (!from.is_contiguous() && !across)) detail::refuse_freed(*to.storage(), {from.storage()});
  write_of(to, from).refuse_circle();
}
}  // namespace

void ArrayBase::copy_from(const ArrayBase& from, std::span<const detail::Leaf> leaves) {
  if (is_null() && !from.is_null() && !from.is_freed()) {
    ArrayBase made(ndim_, element_bytes_);
    made.create(from.device(), extent_of(from.shape_, ndim_), ndim_);
    made.copy_from(from, leaves);
    return take_same(made);
  }
  const bool differs = !is_null() && !from.is_null() && shape_ == from.shape_ && size() > 0 &&
                       (storage_ != from.storage_ || address_ != from.address_ || stride_ != from.stride_);
  if (!differs || is_freed() || from.is_freed()) return copy_elements(from);
  refuse_copy(*this, from);
  const Told told(*this, from, leaves);
  write_of(*this, from).run([&] { copy_bytes(from); });
}

void ArrayBase::copy_elements(const ArrayBase& from) {
  const detail::HeardBy nobody(nullptr);
  // Before anything is compared by address: another array may have that memory now.
  require_memory(from, "the source of a copy is a null array");
  if (!is_null()) storage_->check_present();
  if (is_null()) create(from.device(), extent_of(from.shape_, ndim_), ndim_);  // a scratch array of the same shape
  if (shape_ != from.shape_)
    invalid(fmt::format("a copy from shape {} to shape {}", shape_text(from.shape_, ndim_), shape_text(shape_, ndim_)));
  if (size() == 0) return;
  refuse_copy(*this, from);
  write_of(*this, from).run([&] { copy_bytes(from); });
}

void ArrayBase::copy_bytes(const ArrayBase& from) {
  if (storage_->device != from.storage_->device) return copy_between_devices(from);
  const bool overlap = storage_ == from.storage_ && address_ < from.address_ + from.extent_bytes() &&
                       from.address_ < address_ + extent_bytes();
  if (!is_contiguous() || !from.is_contiguous()) {
    if (!overlap) return detail::strided_copy(*this, from);
    // Views that interleave or overlap: through a copy, so that no element is read after it was written.
    ArrayBase packed(ndim_, element_bytes_);
    packed.copy_elements(from);
    return detail::strided_copy(*this, packed);
  }
  const std::uint64_t bytes = std::uint64_t(size()) * element_bytes_;
  if (address_ == from.address_) return;
  if (overlap) {
    ArrayBase packed(ndim_, element_bytes_);
    packed.copy_elements(from);
    return copy_bytes(packed);
  }
  detail::copy_bytes(stream_of(*storage_), *storage_, address_, *from.storage_, from.address_, bytes);
}

namespace {
bool is_adopted(backend::Device& device) {
  return backend::VulkanAccess::fits(device) && backend::VulkanAccess(device, "copy_from()").adopted();
}
}  // namespace

void ArrayBase::copy_between_devices(const ArrayBase& from) {
  if (const detail::Capture* capture = detail::Capture::current())
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("elements are copied from device {} to device {} while {}: that goes through the host, and "
                    "what is captured is on one device",
                    from.device().name(), name_beside(*storage_->device, *from.storage_->device), capture->doing()));
  // Strided views are packed by their own devices.
  if (!from.is_contiguous()) {
    ArrayBase packed(ndim_, element_bytes_);
    packed.copy_elements(from);
    return copy_between_devices(packed);
  }
  if (!is_contiguous()) {
    ArrayBase packed(ndim_, element_bytes_);
    packed.create(device(), extent_of(shape_, ndim_), ndim_);
    packed.copy_between_devices(from);
    return detail::strided_copy(*this, packed);
  }
  const std::uint64_t bytes = std::uint64_t(size()) * element_bytes_;
  // Others may be reading memory of an adopted device, which only its queue knows.
  if (storage_->allocation.host && !is_adopted(*storage_->device->device) && !from.storage_->may_hold_arrays)
    return from.storage_->download(host_bytes(), from.address_, bytes);
  // Through the host, a part at a time: it may have less memory than the devices.
  auto part = detail::host_vector<std::byte>(std::min<std::uint64_t>(bytes, 64 << 20));
  for (std::uint64_t at = 0; at < bytes; at += part.size()) {
    const std::uint64_t n = std::min<std::uint64_t>(part.size(), bytes - at);
    from.storage_->download(part.data(), from.address_ + at, n);
    refuse_held(*from.storage_);  // another thread may have assigned arrays to elements meanwhile
    write_to(*storage_, [&](backend::Stream& s) { return s.upload(address_ + at, part.data(), n); });
  }
}

void ArrayBase::copy_range(const ArrayBase& to, const ArrayBase& from, std::int64_t to_offset, std::int64_t from_offset,
                           std::int64_t count, std::span<const detail::Leaf> leaves) {
  if (to.is_null()) invalid("the target of a copy is a null array");
  if (from.is_null()) invalid("the source of a copy is a null array");
  const auto part = [](const ArrayBase& a, std::int64_t offset, std::int64_t n, const char* what) {
    if (!a.is_contiguous())
      invalid(fmt::format("a copy of a range of elements, where the {} is a view that is not contiguous", what));
    if (offset < 0 || n < 0 || offset > a.size() || n > a.size() - offset)
      invalid(fmt::format("a copy of {} elements at number {} of a {} with {} elements", n, offset, what, a.size()));
    ArrayBase p(1, a.element_bytes_);
    p.storage_ = a.storage_;
    p.address_ = a.address_ + std::uint64_t(offset) * a.element_bytes_;
    p.shape_ = {n};
    p.stride_ = {a.element_bytes_};
    return p;
  };
  if (count == -1) count = std::max<std::int64_t>(from.size() - from_offset, 0);
  const ArrayBase source = part(from, from_offset, count, "source");
  part(to, to_offset, count, "target").copy_from(source, leaves);
}

namespace {
// As in Python, where negative numbers count from the end; but nothing is clipped.
std::int64_t from_end(std::int64_t i, std::int64_t n) { return i < 0 ? i + n : i; }
}  // namespace

void ArrayBase::restrict(int k, std::int64_t lo, std::int64_t hi, std::int64_t step) {
  if (is_null()) invalid("a slice of a null array");
  if (k < 0 || k >= ndim_) invalid(fmt::format("a slice along dimension {} of an array of {}", k, ndim_));
  const std::int64_t n = shape_[std::size_t(k)];
  const std::int64_t asked_lo = lo, asked_hi = hi;
  lo = from_end(lo, n);
  hi = from_end(hi, n);
  if (lo < 0 || hi > n || lo > hi || step < 1)
    invalid(fmt::format("a slice [{}, {}) with step {} of a dimension of size {}", asked_lo, asked_hi, step, n));
  address_ += std::uint64_t(lo * stride_[std::size_t(k)]);
  shape_[std::size_t(k)] = (hi - lo) / step + ((hi - lo) % step != 0);
  if (shape_[std::size_t(k)] > 1) stride_[std::size_t(k)] *= step;
}

void ArrayBase::take_row(const ArrayBase& from, std::int64_t i) {
  if (from.is_null()) invalid("a row of a null array");
  if (i < -from.shape_[0] || i >= from.shape_[0])
    invalid(fmt::format("row {} of an array of {} rows", i, from.shape_[0]));
  i = from_end(i, from.shape_[0]);
  storage_ = from.storage_;
  address_ = from.address_ + std::uint64_t(i * from.stride_[0]);
  for (int k = 0; k < ndim_; ++k) {
    shape_[std::size_t(k)] = from.shape_[std::size_t(k) + 1];
    stride_[std::size_t(k)] = from.stride_[std::size_t(k) + 1];
  }
}

void ArrayBase::take_reshaped(const ArrayBase& from, const Extent& asked, int ndim) {
  if (from.is_null()) invalid("another shape of a null array");
  Extent extent = asked;
  if (!from.is_contiguous()) invalid("a view that is not contiguous cannot be given another shape; clone() it first");
  if (extent.rank != ndim) invalid(fmt::format("{} sizes for {} dimension(s)", extent.rank, ndim));
  std::int64_t n = 1;
  int open = -1;
  for (int k = 0; k < ndim && n >= 0; ++k) {
    if (extent[k] == -1 && open < 0) {
      open = k;
      continue;
    }
    if (extent[k] < 0)
      invalid(fmt::format("size {} of dimension {} is negative{}", extent[k], k,
                          extent[k] == -1 ? "; one dimension alone may be left open by -1" : ""));
    if (__builtin_mul_overflow(n, extent[k], &n)) n = -1;
  }
  if (open >= 0 && n > 0 && from.size() % n == 0) {
    extent.n[std::size_t(open)] = from.size() / n;
    n = from.size();
  }
  if (n != from.size() || extent[std::max(open, 0)] < 0)
    invalid(fmt::format("{} elements cannot take the shape {}", from.size(), shape_text(asked.n, ndim)));
  storage_ = from.storage_;
  address_ = from.address_;
  shape_ = extent.n;
  stride_ = tight_strides(shape_, ndim, element_bytes_);
}

void ArrayBase::take_permuted(const ArrayBase& from, const Extent& axes) {
  if (from.is_null()) invalid("a transpose of a null array");
  bool used[4] = {};
  bool good = axes.rank == ndim_;
  for (int k = 0; k < ndim_ && good; ++k) {
    good = axes[k] >= 0 && axes[k] < ndim_ && !used[axes[k]];
    if (good) used[axes[k]] = true;
  }
  if (!good)
    invalid(fmt::format("a transpose of {} dimensions by {}, which does not name each once", ndim_,
                        shape_text(axes.n, axes.rank)));
  storage_ = from.storage_;
  address_ = from.address_;
  for (int k = 0; k < ndim_; ++k) {
    shape_[std::size_t(k)] = from.shape_[std::size_t(axes[k])];
    stride_[std::size_t(k)] = from.stride_[std::size_t(axes[k])];
  }
}

void ArrayBase::take_scalars(const ArrayBase& from) {
  if (from.is_null()) invalid("the scalars of a null array");
  storage_ = from.storage_;
  address_ = from.address_;
  shape_ = from.shape_;
  stride_ = from.stride_;
  shape_[std::size_t(ndim_ - 1)] = from.element_bytes_ / element_bytes_;
  stride_[std::size_t(ndim_ - 1)] = element_bytes_;
}

void ArrayBase::take_same(const ArrayBase& from) {
  storage_ = from.storage_;
  address_ = from.address_;
  shape_ = from.shape_;
  stride_ = from.stride_;
}

void ArrayBase::read_element(const std::int64_t* indices, void* out) const {
  require_memory(*this, "an element of a null array");
  std::uint64_t at = address_;
  for (int k = 0; k < ndim_; ++k) {
    const std::int64_t n = shape_[std::size_t(k)];
    if (indices[k] < -n || indices[k] >= n) {
      if (ndim_ == 1) invalid(fmt::format("index {} of an array of {} elements", indices[k], n));
      invalid(fmt::format("index {} of dimension {}, which has {}", indices[k], k, n));
    }
    at += std::uint64_t(from_end(indices[k], n) * stride_[std::size_t(k)]);
  }
  const Read told(*this);
  storage_->download(out, at, element_bytes_);
}

std::byte* ArrayBase::host_bytes() const {
  require_memory(*this, "a span of a null array");
  if (!is_contiguous()) throw Error(ErrorKind::unsupported, "a span of a view that is not contiguous");
  if (size() == 0) return nullptr;
  storage_->device->device->check_alive();
  if (!storage_->allocation.host)
    throw Error(ErrorKind::unsupported,
                fmt::format("the memory of device {} is not the host's, or the array stands on another's buffer; use "
                            "to_vector()",
                            storage_->device->device->info().name));
  if (detail::Recorder* r = detail::recorder()) r->exposing(*this, "host_span()");
  detail::before_write(*this, stream_of(*storage_), {.by = "host_span()"});
  storage_->wait_for_everybody();
  return storage_->allocation.host + (address_ - storage_->allocation.address);
}

}  // namespace weft
