// Views: parts, rows and other shapes of arrays, without a copy.
#include <fmt/format.h>

#include "../../frontend/support/invalid.h"
#include "../array.h"
#include "../core/view.h"
#include "../extent.h"
#include "announced.h"

namespace weft {

using detail::from_end;
using detail::shape_text;
using detail::tight_strides;

void ArrayBase::restrict(int k, std::int64_t lo, std::int64_t hi, std::int64_t step) {
  if (is_null()) invalid("a slice of a null array");
  if (k < 0 || k >= ndim_) invalid("a slice along dimension {} of an array of {}", k, ndim_);
  const std::int64_t n = shape_[std::size_t(k)];
  const std::int64_t asked_lo = lo, asked_hi = hi;
  lo = from_end(lo, n);
  hi = from_end(hi, n);
  if (lo < 0 || hi > n || lo > hi || step < 1)
    invalid("a slice [{}, {}) with step {} of a dimension of size {}", asked_lo, asked_hi, step, n);
  address_ += std::uint64_t(lo * stride_[std::size_t(k)]);
  shape_[std::size_t(k)] = (hi - lo) / step + ((hi - lo) % step != 0);
  if (shape_[std::size_t(k)] > 1) stride_[std::size_t(k)] *= step;
}

void ArrayBase::take_row(const ArrayBase& from, std::int64_t i) {
  if (from.is_null()) invalid("a row of a null array");
  if (i < -from.shape_[0] || i >= from.shape_[0]) invalid("row {} of an array of {} rows", i, from.shape_[0]);
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
  if (extent.rank != ndim) invalid("{} sizes for {} dimension(s)", extent.rank, ndim);
  std::int64_t n = 1;
  int open = -1;
  for (int k = 0; k < ndim && n >= 0; ++k) {
    if (extent[k] == -1 && open < 0) {
      open = k;
      continue;
    }
    if (extent[k] < 0)
      invalid("size {} of dimension {} is negative{}", extent[k], k,
              extent[k] == -1 ? "; one dimension alone may be left open by -1" : "");
    if (__builtin_mul_overflow(n, extent[k], &n)) n = -1;
  }
  if (open >= 0 && n > 0 && from.size() % n == 0) {
    extent.n[std::size_t(open)] = from.size() / n;
    n = from.size();
  }
  if (n != from.size() || extent[std::max(open, 0)] < 0)
    invalid("{} elements cannot take the shape {}", from.size(), shape_text(asked.n, ndim));
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
    invalid("a transpose of {} dimensions by {}, which does not name each once", ndim_, shape_text(axes.n, axes.rank));
  storage_ = from.storage_;
  address_ = from.address_;
  for (int k = 0; k < ndim_; ++k) {
    shape_[std::size_t(k)] = from.shape_[std::size_t(axes[k])];
    stride_[std::size_t(k)] = from.stride_[std::size_t(axes[k])];
  }
}

void ArrayBase::take_scalars(const ArrayBase& from) {
  if (from.is_null()) invalid("the scalars of a null array");
  take_same(from);
  shape_[std::size_t(ndim_ - 1)] = from.element_bytes_ / element_bytes_;
  stride_[std::size_t(ndim_ - 1)] = element_bytes_;
}

void ArrayBase::take_same(const ArrayBase& from) {
  storage_ = from.storage_;
  address_ = from.address_;
  shape_ = from.shape_;
  stride_ = from.stride_;
}

}  // namespace weft
