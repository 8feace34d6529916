// Copies elements of arrays to and from the host.
#include <algorithm>
#include <cstring>

#include "../../frontend/support/invalid.h"
#include "../array.h"
#include "../core/view.h"
#include "../extent.h"
#include "../work/element_write.h"
#include "announced.h"
#include "host_copy_state.h"
#include "strided_copy.h"

namespace weft {

using detail::AnnouncedRead;
using detail::AnnouncedWrite;
using detail::from_end;
using detail::overwrite;
using detail::require_memory;
using detail::View;
using detail::write_to;

namespace {
// Whether some bytes of the host are the memory of an array's elements. Copies between them go through other memory,
// because devices make long ones in pieces.
bool overlaps(const ArrayBase& a, const void* data, std::uint64_t bytes) {
  const backend::Allocation& memory = a.storage()->allocation;
  if (!memory.host) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(data),
             begin = reinterpret_cast<std::uintptr_t>(memory.host + (a.address() - memory.address));
  return first < begin + a.extent_bytes() && begin < first + bytes;
}

// Writes all elements of an array that has some. The recorder and the watchers were told.
void write_elements(const ArrayBase& to, const void* data) {
  if (to.is_contiguous() && !overlaps(to, data, to.extent_bytes())) {
    const std::uint64_t bytes = std::uint64_t(to.size()) * to.element_bytes();
    return write_to(*to.storage(), [&](backend::Stream& s) { return s.upload(to.address(), data, bytes); });
  }
  const View packed = View::like(to);
  write_elements(packed, data);
  detail::strided_copy(to, packed);
}

// Writes one element to all places of an array that has some. The recorder and the watchers were told.
void fill_elements(const ArrayBase& to, const std::byte* element) {
  const std::uint32_t each = to.element_bytes();
  const std::uint64_t bytes = std::uint64_t(to.size()) * each;
  // A pattern that repeats every word takes the device's own fill, also for whole allocations, which are padded to
  // words unless they are memory of others.
  bool repeats = 4 % each == 0 || each % 4 == 0;
  for (std::uint32_t i = 0; i < std::max(each, 4u); ++i)
    repeats = repeats && element[i % each] == element[i % 4 % each];
  const std::uint64_t padded = (bytes + 3) / 4 * 4;
  const bool in_words = bytes == padded || (detail::is_whole(to) && to.storage()->allocation.bytes >= padded);
  if (to.is_contiguous() && repeats && in_words && to.address() % 4 == 0) {
    std::uint32_t pattern;
    std::byte word[4];
    for (std::uint32_t i = 0; i < 4; ++i) word[i] = element[i % each];
    std::memcpy(&pattern, word, 4);
    return write_to(*to.storage(), [&](backend::Stream& s) { return s.fill(to.address(), padded, pattern); });
  }
  const auto storage = detail::allocate(to.storage()->device, each);
  write_elements(View(storage, 1, each), element);
  const View repeated(storage, storage->allocation.address, to.ndim(), each, View(to).extent().n, {});
  detail::strided_copy(to, repeated);
}
}  // namespace

void ArrayBase::upload(const void* data, std::uint64_t count, std::span<const detail::Leaf> leaves,
                       const detail::References* held) {
  require_memory(*this, "elements are assigned to a null array");
  if (count != std::uint64_t(size())) detail::length_mismatch(count, size());
  if (count == 0) return;
  const std::span bytes(static_cast<const std::byte*>(data), std::size_t(count * element_bytes_));
  const AnnouncedWrite announced("assign()", overwrite(*this, {bytes, leaves, element_bytes_, held}));
  write_elements(*this, data);
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
  const std::uint64_t bytes = std::uint64_t(size()) * element_bytes_;
  if (!overlaps(*this, data, bytes)) return storage_->download(data, address_, bytes);
  auto between = detail::host_vector<std::byte>(bytes);
  storage_->download(between.data(), address_, bytes);
  std::memcpy(data, between.data(), bytes);
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
  if (overlaps(*this, data, std::uint64_t(size()) * element_bytes_))
    invalid("elements are copied to memory that partly is the array's own, while the host goes on");
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
  const std::span bytes(data, std::size_t(count * element_bytes_));
  const AnnouncedWrite announced("assign()", overwrite(*this, {bytes, {}, element_bytes_, &references}));
  elements.run([&] { write_elements(*this, data); });
}

void ArrayBase::fill_packed(const std::byte* element, const detail::References& references) {
  require_memory(*this, "a null array is filled");
  if (size() == 0) return;
  // One fill() replaces elements that hold freed arrays, but never brings some.
  if (!is_contiguous() || !storage_->leads_to_freed()) detail::refuse_freed(*storage_, references);
  const detail::ElementWrite elements{
      .to = storage_, .from = nullptr, .list = references, .whole = detail::is_whole(*this)};
  elements.refuse_circle();
  const AnnouncedWrite announced("fill()",
                                 overwrite(*this, {{element, element_bytes_}, {}, element_bytes_, &references}));
  elements.run([&] { fill_elements(*this, element); });
}

void ArrayBase::fill_element(const void* element, std::span<const detail::Leaf> leaves,
                             const detail::References* held) {
  require_memory(*this, "a null array is filled");
  if (size() == 0) return;
  const auto* bytes = static_cast<const std::byte*>(element);
  // Elements given without `held` are zeros, which hold no arrays.
  if (!held && storage_->may_hold_arrays) return fill_packed(bytes, {});
  const AnnouncedWrite announced("fill()", overwrite(*this, {{bytes, element_bytes_}, leaves, element_bytes_, held}));
  fill_elements(*this, bytes);
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
