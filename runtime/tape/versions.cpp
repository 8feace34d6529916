// Finds and copies the versions that a change would touch.
#include "versions.h"

#include <algorithm>
#include <bit>

#include "../work/element_write.h"
#include "../work/work.h"

namespace weft::detail {

namespace {

int length_class(const ArrayBase& a) { return std::bit_width(a.extent_bytes()); }

}  // namespace

// A version is never copied while it ends, because the thread that copies it holds a reference.
Version::~Version() {
  if (!copied_) live_->forget(where_);
}

Version::Hold::Hold(const Version& version) : lock_(version.live_->mutex_), version_(&version) {
  // A copied version stays in its place for good and needs no lock.
  if (version.copied_) lock_.unlock();
}

std::optional<View> Version::copy() const {
  const Hold held(*this);
  return copied_ ? std::optional(where_) : std::nullopt;
}

std::shared_ptr<Version> LiveVersions::take(const ArrayBase& elements) {
  const std::lock_guard lock(mutex_);
  Entries& entries = by_length_[length_class(elements)];
  for (auto [e, end] = entries.equal_range(elements.address()); e != end; ++e)
    if (same_elements(e->second.where, elements))
      if (auto known = e->second.version.lock()) return known;
  auto made = std::make_shared<Version>(shared_from_this(), elements);
  entries.emplace(elements.address(), Entry{View(elements), made});
  return made;
}

void LiveVersions::forget(const View& where) {
  const std::lock_guard lock(mutex_);
  const auto entries = by_length_.find(length_class(where));
  auto [e, end] = entries->second.equal_range(where.address());
  while (e != end) e = e->second.version.expired() ? entries->second.erase(e) : std::next(e);
  if (entries->second.empty()) by_length_.erase(entries);
}

bool LiveVersions::needs(const ArrayBase& elements) {
  const std::lock_guard lock(mutex_);
  for (const auto& [bits, entries] : by_length_)
    for (const auto& [address, entry] : entries)
      if (!entry.version.expired() && may_overlap(entry.where, elements)) return true;
  return false;
}

void LiveVersions::before_write(const ArrayBase& elements, StreamState& stream, const Change&) {
  if (elements.size() == 0) return;
  const std::uint64_t begin = elements.address(), end = begin + elements.extent_bytes();
  std::vector<std::shared_ptr<Version>> touched;
  std::vector<std::pair<Entries*, Entries::iterator>> places;
  const std::lock_guard lock(mutex_);
  for (auto& [bits, entries] : by_length_) {
    const std::uint64_t longest = bits < 64 ? (1ull << bits) - 1 : ~0ull;
    auto e = begin > longest ? entries.upper_bound(begin - longest) : entries.begin();
    for (; e != entries.end() && e->first < end; ++e) {
      if (!may_overlap(e->second.where, elements)) continue;
      // A copied version leaves the list, so that the last owner to drop it does not come back here.
      if (auto version = e->second.version.lock()) {
        touched.push_back(std::move(version));
        places.emplace_back(&entries, e);
      }
    }
  }
  if (touched.empty()) return;

  std::ranges::sort(touched, {}, [](const auto& v) { return v->where_.address(); });
  for (std::size_t first = 0; first < touched.size();) {
    std::uint64_t covered = touched[first]->where_.end();
    std::size_t next = first + 1;
    for (; next < touched.size() && touched[next]->where_.address() <= covered; ++next)
      covered = std::max(covered, touched[next]->where_.end());
    save(std::span(touched).subspan(first, next - first), stream);
    first = next;
  }
  for (const auto& [entries, place] : places) entries->erase(place);
}

void LiveVersions::save(std::span<const std::shared_ptr<Version>> versions, StreamState& stream) {
  const std::uint64_t begin = versions.front()->where_.address();
  std::uint64_t end = begin;
  for (const auto& v : versions) end = std::max(end, v->where_.end());
  const std::shared_ptr<Storage> from = versions.front()->where_.storage();

  const std::uint64_t shift = begin % 256;  // kernels rely on alignments
  const std::shared_ptr<Storage> to = allocate(from->device, shift + (end - begin));
  to->is_copy = true;
  const ElementWrite elements{.to = to, .from = from, .list = {}, .whole = true};
  const std::uint64_t at = to->allocation.address + shift;
  elements.run([&] { copy_bytes(stream, *to, at, *from, begin, end - begin); });
  for (const auto& v : versions) {
    v->where_ = View(v->where_, to, at + (v->where_.address() - begin));
    v->copied_ = true;
  }
}

}  // namespace weft::detail
