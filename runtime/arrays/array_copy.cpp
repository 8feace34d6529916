// Copies between arrays, on one device or two.
#include <fmt/format.h>

#include <algorithm>

#include "../../backends/vulkan/interop.h"
#include "../../frontend/support/invalid.h"
#include "../array.h"
#include "../core/view.h"
#include "../detail/host_vector.h"
#include "../extent.h"
#include "../work/element_write.h"
#include "announced.h"
#include "strided_copy.h"

namespace weft {

using detail::AnnouncedWrite;
using detail::extent_of;
using detail::require_memory;
using detail::shape_text;
using detail::stream_of;
using detail::write_to;

namespace {
detail::ElementWrite write_of(const ArrayBase& to, const ArrayBase& from) {
  return {.to = to.storage(), .from = from.storage(), .list = {}, .whole = detail::is_whole(to)};
}

// Refuses elements that hold arrays, which cannot follow them to another device.
void refuse_held(detail::Storage& from) {
  if (from.references())
    unsupported("an array of structs that hold arrays is copied to another device: their arrays would stay behind");
}

// Checks a copy before a tape is told of it, and before anything is noted.
void refuse_copy(const ArrayBase& to, const ArrayBase& from) {
  if (!from.storage()->may_hold_arrays) return;
  const bool across = to.storage()->device != from.storage()->device;
  if (across) refuse_held(*from.storage());
  // Elements from another device bring no arrays.
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
  const AnnouncedWrite announced("copy_from()",
                                 {.kind = detail::OperationKind::copy, .to = this, .from = &from, .leaves = leaves});
  write_of(*this, from).run([&] { copy_bytes(from); });
}

void ArrayBase::copy_elements(const ArrayBase& from) {
  const detail::HeardBy nobody(nullptr);
  // Freed arrays are refused before addresses are compared, because another array may have that memory now.
  require_memory(from, "the source of a copy is a null array");
  if (!is_null()) storage_->check_present();
  if (is_null()) create(from.device(), extent_of(from.shape_, ndim_), ndim_);  // a scratch array of the same shape
  if (shape_ != from.shape_)
    invalid("a copy from shape {} to shape {}", shape_text(from.shape_, ndim_), shape_text(shape_, ndim_));
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
    // Views that interleave or overlap take a copy in between, so that no element is read after it was written.
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
  // The caller's own commands may be reading memory of an adopted device, which only its queue knows.
  if (storage_->allocation.host && !is_adopted(*storage_->device->device) && !from.storage_->may_hold_arrays)
    return from.storage_->download(host_bytes(), from.address_, bytes);
  // The copy goes through the host a part at a time, because the host may have less memory than the devices.
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
  const auto part = [](const ArrayBase& a, std::int64_t offset, std::int64_t n, const char* what) -> ArrayBase {
    if (!a.is_contiguous())
      invalid("a copy of a range of elements, where the {} is a view that is not contiguous", what);
    if (offset < 0 || n < 0 || offset > a.size() || n > a.size() - offset)
      invalid("a copy of {} elements at number {} of a {} with {} elements", n, offset, what, a.size());
    return detail::View(a.storage_, a.address_ + std::uint64_t(offset) * a.element_bytes_, n, a.element_bytes_);
  };
  if (count == -1) count = std::max<std::int64_t>(from.size() - from_offset, 0);
  const ArrayBase source = part(from, from_offset, count, "source");
  part(to, to_offset, count, "target").copy_from(source, leaves);
}

}  // namespace weft
