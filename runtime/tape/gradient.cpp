// Allocates gradient storage of arrays, and sums gradients.
#include "gradient.h"

#include <optional>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../arrays/scalars.h"
#include "../launch.h"
#include "../work/capture.h"
#include "../work/observe.h"

namespace weft {

bool ArrayBase::has_grad() const { return storage_ && storage_->has_gradient(); }

void ArrayBase::make_gradient(std::span<const detail::Leaf> leaves) const {
  if (is_null()) invalid("requires_grad() of a null array");
  storage_->check_present();
  if (has_grad()) return;
  storage_->set_gradient(detail::make_gradient(*this, leaves));
}

void ArrayBase::take_gradient(const ArrayBase& of) {
  if (of.is_null()) invalid("grad() of a null array");
  of.storage_->check_present();
  const auto gradient = of.storage_->gradient();
  if (!gradient)
    invalid(
        "grad() of an array without gradient storage: call requires_grad() before it is used on a tape, or ask the "
        "tape for it: Tape::gradient()");
  *this = gradient->view(of, *of.storage_);
}

namespace detail {

std::shared_ptr<const Gradient> make_gradient(const ArrayBase& like, std::span<const Leaf> leaves) {
  const Storage& of = *like.storage();
  auto g = std::make_shared<Gradient>();
  // Gradients are aligned as the elements are, because kernels rely on the alignment of contiguous arrays.
  const std::uint64_t shift = of.allocation.address % 256;
  g->storage = allocate(of.device, of.bytes + shift);
  g->storage->holds_gradients = true;
  g->storage->may_hold_arrays = of.may_hold_arrays;
  g->first = g->storage->allocation.address + shift;
  g->leaves = leaves;
  g->element_bytes = like.element_bytes();
  g->phase = like.address() - of.allocation.address;
  const HeardBy nobody(nullptr);
  // The gradient of an array that is older than a capture outlives it, and exists before the graph runs.
  std::optional<OutsideCapture> outside;
  if (const Capture* capture = Capture::current(); capture && of.serial < capture->serial) outside.emplace();
  g->zero();
  return g;
}

bool holds_real(std::span<const Leaf> leaves) {
  return std::ranges::any_of(leaves, [](const Leaf& l) { return ir::is_float(l.type); });
}

namespace {

// Adds `count` scalars of each element.
template <class T>
void add(const ArrayBase& to, const ArrayBase& from, std::uint32_t first, std::int64_t count) {
  if (std::uint64_t(count) * sizeof(T) == to.element_bytes() && to.is_contiguous() && from.is_contiguous()) {
    static const auto add_row = kernel("accumulate", [](Arr<T> to, Arr<const T> from) {
      const auto i = tid64();
      to[i] += from[i];
    });
    const Array<T> target = Row<T>(to), source = Row<T>(from);
    return launch(add_row, target.size(), target, source);
  }
  static const auto add_all = kernel("accumulate", [](Arr<T, 4> to, Arr<const T, 4> from) {
    auto [i, j, k, l] = tid<4>();
    to(i, j, k, l) += from(i, j, k, l);
  });
  const std::int64_t at_once = to.ndim() == 4 ? 1 : count;
  for (std::int64_t k = 0; k < count; k += at_once) {
    const std::uint32_t offset = first + std::uint32_t(k) * std::uint32_t(sizeof(T));
    const Array<T, 4> target = Scalars<T>(to, offset, at_once), source = Scalars<T>(from, offset, at_once);
    launch(add_all, target.extent(), target, source);
  }
}

}  // namespace

void accumulate(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) {
  if (to.size() == 0) return;
  for (std::size_t k = 0; k < leaves.size();) {
    const Leaf& first = leaves[k];
    const std::uint32_t bytes = std::uint32_t(ir::bytes(first.type));
    std::uint32_t count = 1;
    while (k + count < leaves.size() && leaves[k + count].type == first.type &&
           leaves[k + count].offset == first.offset + count * bytes)
      ++count;
    k += count;
    if (first.type == ir::Type::f16) add<half>(to, from, first.offset, count);
    if (first.type == ir::Type::f32) add<float>(to, from, first.offset, count);
    if (first.type == ir::Type::f64) add<double>(to, from, first.offset, count);
  }
}

}  // namespace detail
}  // namespace weft
