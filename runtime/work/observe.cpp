// Finds out whether views share elements, and watches those that structures stand on.
#include "observe.h"

#include <algorithm>

namespace weft::detail {

namespace {

/// Ends a structure's generation when elements change on which it stands.
class StructureWatch : public Watcher {
 public:
  StructureWatch(const ArrayBase& elements, const char* name, const char* of)
      : generation(name, of), elements_(elements) {}
  void before_write(const ArrayBase& changed, StreamState&, const Change&) override {
    if (stands_on(changed)) generation.hold(Generation::kNone);
  }
  const Generation* structure() const override { return &generation; }
  bool stands_on(const ArrayBase& others) const override { return may_overlap(others, elements_); }

  Generation generation;

 private:
  const View elements_;
};

}  // namespace

std::shared_ptr<Generation> generation_over(const ArrayBase& elements, const char* name, const char* of) {
  const auto watch = std::make_shared<StructureWatch>(elements, name, of);
  elements.storage()->watch(watch);
  return {watch, &watch->generation};
}

bool same_elements(const ArrayBase& a, const ArrayBase& b) {
  if (a.ndim() != b.ndim() || a.element_bytes() != b.element_bytes() || a.address() != b.address()) return false;
  for (int k = 0; k < a.ndim(); ++k)
    if (a.shape(k) != b.shape(k) || a.stride(k) != b.stride(k)) return false;
  return true;
}

bool may_overlap(const ArrayBase& a, const ArrayBase& b) {
  if (a.storage() != b.storage() || a.size() == 0 || b.size() == 0) return false;
  if (a.address() >= b.address() + b.extent_bytes() || b.address() >= a.address() + a.extent_bytes()) return false;
  // Dimensions whose strides are multiples of some size s vanish modulo s. If each view is short without them, it is
  // one interval of bytes on a circle of length s, and the views are apart if these intervals are.
  std::int64_t candidates[8];
  int n = 0;
  for (const ArrayBase* v : {&a, &b})
    for (int k = 0; k < v->ndim(); ++k)
      if (v->shape(k) > 1) candidates[n++] = v->stride(k);
  for (int c = 0; c < n; ++c) {
    const std::int64_t s = candidates[c];
    const auto inner = [&](const ArrayBase& v) {
      std::int64_t bytes = v.element_bytes();
      for (int k = 0; k < v.ndim(); ++k)
        if (v.shape(k) > 1 && v.stride(k) % s != 0) bytes += (v.shape(k) - 1) * v.stride(k);
      return bytes;
    };
    if (s <= 0) continue;
    const std::int64_t length_a = inner(a), length_b = inner(b);
    const std::int64_t distance = std::int64_t(b.address() - a.address());
    const std::int64_t apart = (distance % s + s) % s;
    if (length_a <= apart && apart + length_b <= s) return false;
  }
  return true;
}

}  // namespace weft::detail
