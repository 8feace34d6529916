// The memory and shapes of arrays, and the arrays that elements hold.
#include "../array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "../../backends/vulkan/interop.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/state.h"
#include "../core/view.h"
#include "../extent.h"
#include "../work/capture.h"
#include "../work/observe.h"
#include "announced.h"

namespace weft {

using detail::checked_bytes;
using detail::require_memory;
using detail::shape_text;
using detail::stream_of;
using detail::View;

namespace {
// Throws for a caller at `loc`.
[[noreturn]] void refuse_at(Loc loc, const std::string& message) {
  Error error(ErrorKind::invalid_argument, message);
  error.set_caller(loc);
  throw error;
}

}  // namespace

Extent::Extent(std::initializer_list<std::int64_t> sizes, Loc loc) : rank(int(sizes.size())) {
  if (sizes.size() == 0 || sizes.size() > 4)
    refuse_at(loc, fmt::format("{} dimensions; 1 to 4 are possible", sizes.size()));
  std::ranges::copy(sizes, n.begin());
}

namespace detail {
void length_mismatch(std::size_t given, std::int64_t expected) {
  invalid("{} elements are given where the array has {}", given, expected);
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
  if (extent.rank != ndim) invalid("an array of {} dimension(s) is asked for with {} size(s)", ndim, extent.rank);
  std::uint64_t bytes = element_bytes, strides = element_bytes;
  for (int k = 0; k < ndim; ++k) {
    if (extent[k] < 0) invalid("size {} of dimension {} is negative", extent[k], k);
    bytes *= std::uint64_t(extent[k]);
    // Sizes beside an empty dimension must not overflow either, because strides are made of them.
    if (__builtin_mul_overflow(strides, std::max<std::uint64_t>(std::uint64_t(extent[k]), 1), &strides) ||
        strides > std::uint64_t(INT64_MAX))
      throw Error(ErrorKind::out_of_memory,
                  fmt::format("an array of shape {} and {} bytes an element is larger than any memory",
                              shape_text(extent.n, ndim), element_bytes));
  }
  return bytes;
}
}  // namespace detail

void ArrayBase::create(const Device& device, const Extent& extent, int ndim, bool holds_arrays) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes_);
  // Without a View between, which would count the storage's users up and down: a sixth of the time.
  storage_ = detail::allocate(device.state(), bytes);
  storage_->may_hold_arrays = holds_arrays;
  address_ = storage_->allocation.address;
  shape_ = extent.n;
  stride_ = detail::tight_strides(extent.n, extent.rank, element_bytes_);
}

void ArrayBase::create_around(const Device& device, const Extent& extent, int ndim, std::span<std::byte> memory,
                              std::size_t align, std::shared_ptr<void> owner) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes_);
  if (memory.size() != bytes)
    detail::length_mismatch(memory.size() / element_bytes_, std::int64_t(bytes / element_bytes_));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  if (begin % align)
    invalid("memory at address {:#x} is wrapped, and elements of its type lie at multiples of {} bytes", begin, align);
  take_same(View(detail::wrap(device.state(), memory.data(), bytes, std::move(owner)), extent, element_bytes_));
}

void ArrayBase::create_around(const Device& device, const Extent& extent, int ndim, const VulkanBuffer& buffer,
                              std::shared_ptr<void> owner) {
  const std::uint64_t bytes = checked_bytes(extent, ndim, element_bytes_);
  if (buffer.bytes != bytes) invalid("{} bytes of a VkBuffer are given to an array of {} bytes", buffer.bytes, bytes);
  take_same(View(detail::wrap(device.state(), buffer, std::move(owner)), extent, element_bytes_));
}

void ArrayBase::free(Loc loc) {
  detail::called_from(loc, [&] {
    require_memory(*this, "a null array is freed");
    if (const detail::Capture* capture = detail::Capture::current())
      invalid("an array is freed while {}: call free() before or after it", capture->doing());
    // It is not known yet what steps that are run again will need.
    if (detail::recorder())
      unsupported(
          "an array is freed while a tape records: call free() outside of record() and of steps that are checkpointed, "
          "or let the handles go");
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

detail::References ArrayBase::references() const {
  if (!storage_) return {};
  const detail::ReferenceList held = storage_->references();
  detail::References list = held ? held->others : detail::References();
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
    invalid("a struct for device {} holds an array on device {}", holder.device->device->info().name,
            storage->device->device->info().name);
  if (!array.is_contiguous() || array.address() % wide_alignment(array.element_bytes()) != 0)
    unsupported("a struct in an array holds a strided view: elements hold contiguous arrays; clone() it first");
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
  // The address decides, because a device's allocations do not overlap.
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

std::byte* ArrayBase::host_bytes() const {
  require_memory(*this, "a span of a null array");
  if (!is_contiguous()) unsupported("a span of a view that is not contiguous");
  if (size() == 0) return nullptr;
  storage_->device->device->check_alive();
  if (!storage_->allocation.host)
    unsupported("the memory of device {} is not the host's, or the array stands on another's buffer; use to_vector()",
                storage_->device->device->info().name);
  detail::tell_recorder({.kind = detail::OperationKind::expose, .from = this, .what = "host_span()"});
  detail::before_write(*this, stream_of(*storage_), {.by = "host_span()"});
  storage_->wait_for_everybody();
  return storage_->allocation.host + (address_ - storage_->allocation.address);
}

}  // namespace weft
