// Copies elements of arrays to and from the host.
#include <cstring>

#include "../../frontend/support/invalid.h"
#include "../array.h"
#include "../core/view.h"
#include "../detail/host_vector.h"
#include "../extent.h"
#include "../work/element_write.h"
#include "announced.h"
#include "host_copy_state.h"
#include "strided_copy.h"

namespace weft {

using detail::AnnouncedRead;
using detail::AnnouncedWrite;
using detail::extent_of;
using detail::from_end;
using detail::require_memory;
using detail::write_to;

void ArrayBase::upload(const void* data, std::uint64_t count, std::span<const detail::Leaf> leaves,
                       const detail::References* held) {
  require_memory(*this, "elements are assigned to a null array");
  if (count != std::uint64_t(size())) detail::length_mismatch(count, size());
  if (count == 0) return;
  const AnnouncedWrite announced(
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
  const AnnouncedRead announced(*this);
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
  const AnnouncedRead announced(*this);
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
  // The checks come before anything is noted.
  if (count != std::uint64_t(size())) detail::length_mismatch(count, size());
  if (count == 0) return;
  if (!is_contiguous()) detail::refuse_freed(*storage_, references);
  const detail::ElementWrite elements{
      .to = storage_, .from = nullptr, .list = references, .whole = detail::is_whole(*this)};
  elements.refuse_circle();
  const AnnouncedWrite announced("assign()", *this,
                                 {{data, std::size_t(count * element_bytes_)}, {}, element_bytes_, &references});
  elements.run([&] { upload(data, count, {}, &references); });
}

void ArrayBase::fill_packed(const std::byte* element, const detail::References& references) {
  require_memory(*this, "a null array is filled");
  if (size() == 0) return;
  // A kernel that fills is also given the memory that elements lead to, which must not be freed. If it was, the host
  // writes the elements of a contiguous array.
  const bool by_host = is_contiguous() && storage_->leads_to_freed();
  if (!by_host) detail::refuse_freed(*storage_, references);
  const detail::ElementWrite elements{
      .to = storage_, .from = nullptr, .list = references, .whole = detail::is_whole(*this)};
  elements.refuse_circle();
  const AnnouncedWrite announced("fill()", *this, {{element, element_bytes_}, {}, element_bytes_, &references});
  elements.run([&] {
    if (!by_host) return fill_element(element, {}, &references);
    auto all = detail::host_vector<std::byte>(std::uint64_t(size()) * element_bytes_);
    for (std::size_t at = 0; at < all.size(); at += element_bytes_)
      std::memcpy(all.data() + at, element, element_bytes_);
    upload(all.data(), std::uint64_t(size()), {}, &references);
  });
}

void ArrayBase::fill_element(const void* element, std::span<const detail::Leaf> leaves,
                             const detail::References* held) {
  require_memory(*this, "a null array is filled");
  if (size() == 0) return;
  const auto* bytes = static_cast<const std::byte*>(element);
  // Elements given without `held` are zeros, which hold no arrays.
  if (!held && storage_->may_hold_arrays) return fill_packed(bytes, {});
  const AnnouncedWrite announced("fill()", *this, {{bytes, element_bytes_}, leaves, element_bytes_, held});
  const std::uint64_t total = std::uint64_t(size()) * element_bytes_;
  // A pattern that repeats every word takes the device's own fill, also for whole allocations, which are padded to
  // words.
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
  // One element is copied as an array of this shape whose strides are 0.
  ArrayBase one(1, element_bytes_);
  one.create(device(), Extent(1), 1);
  one.upload(element, 1);
  one.ndim_ = ndim_;
  one.shape_ = shape_;
  one.stride_ = {};
  detail::strided_copy(*this, one);
}

void ArrayBase::read_element(const std::int64_t* indices, void* out) const {
  require_memory(*this, "an element of a null array");
  std::uint64_t at = address_;
  for (int k = 0; k < ndim_; ++k) {
    const std::int64_t n = shape_[std::size_t(k)];
    if (indices[k] < -n || indices[k] >= n) {
      if (ndim_ == 1) invalid("index {} of an array of {} elements", indices[k], n);
      invalid("index {} of dimension {}, which has {}", indices[k], k, n);
    }
    at += std::uint64_t(from_end(indices[k], n) * stride_[std::size_t(k)]);
  }
  const AnnouncedRead announced(*this);
  storage_->download(out, at, element_bytes_);
}

}  // namespace weft
