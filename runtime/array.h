// Arrays on a device: 1 to 4 dimensions, owning or a view of another.
#pragma once
#include <array>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "../frontend/types/layout.h"
#include "../frontend/types/mat.h"
#include "../frontend/types/vec.h"
#include "device.h"
#include "packed.h"

namespace weft {

/// The sizes of up to four dimensions: `n`, or `{nx, ny}`. Checked where it is used.
struct Extent {
  std::array<std::int64_t, 4> n{};
  int rank = 0;

  template <std::integral I>
  Extent(I size) : n{static_cast<std::int64_t>(size)}, rank(1) {}
  Extent(std::initializer_list<std::int64_t> sizes);
  std::int64_t operator[](int k) const { return n[static_cast<std::size_t>(k)]; }
};

/// The part of an array that does not depend on its element type.
class ArrayBase {
 public:
  /// True for an array that was default constructed: it has no device and no memory.
  bool is_null() const { return !storage_; }
  int ndim() const { return ndim_; }
  std::int64_t shape(int k) const;
  /// Distance of neighbours along dimension k, in bytes.
  std::int64_t stride(int k) const;
  /// Number of elements.
  std::int64_t size() const;
  bool is_contiguous() const;
  /// Errors: Error(invalid_argument) for a null array.
  Device device() const;
  /// Of the first element, as kernels see it.
  std::uint64_t address() const { return address_; }
  std::uint32_t element_bytes() const { return element_bytes_; }

  /// Waits until everything that writes the array has run.
  void wait() const;

  const std::shared_ptr<detail::Storage>& storage() const { return storage_; }
  /// First byte and length of the memory from the first to the last element.
  std::uint64_t extent_bytes() const;

 protected:
  ArrayBase(int ndim, std::uint32_t element_bytes) : ndim_(ndim), element_bytes_(element_bytes) {}
  friend void detail::unpack_handle(ArrayBase& array, const std::byte* from, const detail::References& references);

  void create(const Device& device, const Extent& extent, int ndim);
  void upload(const void* data, std::uint64_t count);
  void download(void* data) const;
  void fill_element(const void* element);
  /// Elements that hold arrays, packed; the memory keeps what they refer to.
  void upload_packed(const std::byte* data, std::uint64_t count, const detail::References& references);
  void fill_packed(const std::byte* element, const detail::References& references);
  /// In order of address.
  detail::References references() const;
  void copy_from(const ArrayBase& from);
  /// Keeps elements lo, lo + step, ... below hi of dimension k.
  void restrict(int k, std::int64_t lo, std::int64_t hi, std::int64_t step);
  /// Drops the first dimension at index i.
  void take_row(const ArrayBase& from, std::int64_t i);
  void take_reshaped(const ArrayBase& from, const Extent& extent, int ndim);
  std::byte* host_bytes() const;
  void check_index(std::int64_t i) const;

  std::shared_ptr<detail::Storage> storage_;
  std::uint64_t address_ = 0;
  std::array<std::int64_t, 4> shape_{}, stride_{};
  int ndim_;
  std::uint32_t element_bytes_;
};

/// An array of T (a scalar, vector, matrix, struct, ...) in the memory of a device. A handle: copies share the
/// elements; `clone()` copies them. Memory is freed when the last handle is gone and the device has finished with it;
/// arrays that its elements hold live as long.
///
/// Row-major; the last dimension is contiguous unless the array is a view. Creating, filling and copying is done in
/// order with launches on the device's default stream; only functions that bring data to the host wait.
/// Errors: Error(invalid_argument) for negative sizes, shapes that differ, null arrays; Error(out_of_memory).
template <class T, int N = 1>
class Array : public ArrayBase {
  static_assert(N >= 1 && N <= 4, "an array has 1 to 4 dimensions");
  static constexpr bool kHoldsArrays = detail::Layout<T>::holds_arrays;
  static constexpr std::size_t kBytes = detail::Layout<T>::size;

 public:
  using value_type = T;

  /// A null array.
  Array() : ArrayBase(N, kBytes) { static_assert(detail::check_layout<T>()); }
  /// From a contiguous range of T, by copy.
  template <std::ranges::contiguous_range R>
  requires(N == 1 && std::is_same_v<std::ranges::range_value_t<R>, T>) Array(const Device& device, const R& values)
      : Array() {
    create(device, Extent(std::ranges::size(values)), N);
    write(std::ranges::data(values), std::ranges::size(values));
  }
  Array(const Device& device, std::initializer_list<T> values) requires(N == 1)
      : Array(device, std::span<const T>(values.begin(), values.size())) {}
  /// From a contiguous range in row-major order; its length must be the product of the sizes.
  template <std::ranges::contiguous_range R>
  requires std::is_same_v<std::ranges::range_value_t<R>, T> Array(const Device& device, const Extent& extent,
                                                                  const R& values)
      : Array() {
    create(device, extent, N);
    write(std::ranges::data(values), std::ranges::size(values));
  }

  /// Not initialised, but for arrays in structs, which are null.
  static Array empty(const Device& device, const Extent& extent) {
    Array a;
    a.create(device, extent, N);
    if constexpr (kHoldsArrays) a.zero();
    return a;
  }
  static Array full(const Device& device, const Extent& extent, const T& value) {
    Array a = empty(device, extent);
    a.fill(value);
    return a;
  }
  static Array zeros(const Device& device, const Extent& extent) {
    Array a = empty(device, extent);
    a.zero();
    return a;
  }
  /// The array on another device: itself when it is there already, else a copy.
  Array to(const Device& device) const {
    if (device == this->device()) return *this;
    Array a = empty(device, extent());
    a.copy_from(*this);
    return a;
  }
  Array clone() const {
    Array a = empty(device(), extent());
    a.copy_from(*this);
    return a;
  }

  Extent extent() const {
    Extent e(0);
    e.rank = N;
    e.n = shape_;
    return e;
  }
  void fill(const T& value) {
    if constexpr (kHoldsArrays) {
      if (is_null()) return fill_element(nullptr);
      std::array<std::byte, kBytes> bytes{};
      detail::References references;
      detail::pack(value, *storage(), bytes.data(), references);
      fill_packed(bytes.data(), references);
    } else {
      fill_element(&value);
    }
  }
  void zero() {
    const std::array<std::byte, kBytes> bytes{};
    fill_element(bytes.data());
  }
  /// Replaces all elements, in row-major order.
  template <std::ranges::contiguous_range R>
  requires std::is_same_v<std::ranges::range_value_t<R>, T>
  void assign(const R& values) { write(std::ranges::data(values), std::ranges::size(values)); }
  /// Replaces all elements by those of an array of the same shape, on this device or another. Views of one array may
  /// overlap: the result is as if all were read first.
  void copy_from(const Array& other) { ArrayBase::copy_from(other); }

  /// The elements in row-major order. Waits for what writes them, nothing else.
  std::vector<T> to_vector() const {
    if constexpr (std::is_same_v<T, bool>) {  // a vector of bool has no memory to copy to
      std::vector<char> bytes(static_cast<std::size_t>(size()));
      download(bytes.data());
      return {bytes.begin(), bytes.end()};
    } else {
      std::vector<T> values(static_cast<std::size_t>(size()));
      read(values.data());
      return values;
    }
  }
  /// Copies to memory of the caller, which holds exactly size() elements.
  void copy_to(std::span<T> out) const {
    check_length(out.size());
    read(out.data());
  }
  /// One element. Waits; for a look at a result, not for loops.
  T at(std::int64_t i) const requires(N == 1) {
    check_index(i);
    T value;
    slice(i, i + 1).copy_to({&value, 1});
    return value;
  }

  /// The elements themselves, without a copy, where the device's memory is the host's too (software and integrated
  /// devices). Waits for all work that uses them. Valid until the next launch that uses the array.
  /// Errors: Error(unsupported) on a device with memory of its own, or for a view that is not contiguous.
  std::span<T> host_span() requires(!kHoldsArrays) {
    return {reinterpret_cast<T*>(host_bytes()), static_cast<std::size_t>(size())};
  }

  /// A view of elements lo, lo + step, ... below hi of the first dimension (of dimension k). Shares the elements.
  Array slice(std::int64_t lo, std::int64_t hi, std::int64_t step = 1, int k = 0) const {
    Array a = *this;
    a.restrict(k, lo, hi, step);
    return a;
  }
  /// A view of row i: the array without its first dimension.
  Array<T, N - 1> operator[](std::int64_t i) const requires(N > 1) {
    Array<T, N - 1> a;
    a.take_row(*this, i);
    return a;
  }
  /// A view of the same elements in another shape. The array must be contiguous.
  template <int M>
  Array<T, M> reshape(const Extent& extent) const {
    Array<T, M> a;
    a.take_reshaped(*this, extent, M);
    return a;
  }

 private:
  template <class U, int M>
  friend class Array;
  void check_length(std::size_t n) const;
  void write(const T* values, std::size_t n) {
    if constexpr (kHoldsArrays) {
      std::vector<std::byte> bytes(n * kBytes);
      detail::References references;
      for (std::size_t i = 0; i < n; ++i) detail::pack(values[i], *storage(), bytes.data() + i * kBytes, references);
      upload_packed(bytes.data(), n, references);
    } else {
      upload(values, n);
    }
  }
  void read(T* values) const {
    if constexpr (kHoldsArrays) {
      const std::size_t n = static_cast<std::size_t>(size());
      std::vector<std::byte> bytes(n * kBytes);
      download(bytes.data());
      const detail::References known = references();
      for (std::size_t i = 0; i < n; ++i) detail::unpack(values[i], bytes.data() + i * kBytes, known);
    } else {
      download(values);
    }
  }
};

namespace detail {
[[noreturn]] void length_mismatch(std::size_t given, std::int64_t expected);
}

template <class T, int N>
void Array<T, N>::check_length(std::size_t n) const {
  if (static_cast<std::int64_t>(n) != size()) detail::length_mismatch(n, size());
}

template <class T, int N = 1>
Array<T, N> empty(const Device& device, const Extent& extent) {
  return Array<T, N>::empty(device, extent);
}
template <class T, int N = 1>
Array<T, N> zeros(const Device& device, const Extent& extent) {
  return Array<T, N>::zeros(device, extent);
}
template <class T, int N = 1>
Array<T, N> full(const Device& device, const Extent& extent, const std::type_identity_t<T>& value) {
  return Array<T, N>::full(device, extent, value);
}
template <class T, int N>
Array<T, N> empty_like(const Array<T, N>& a) {
  return Array<T, N>::empty(a.device(), a.extent());
}
template <class T, int N>
Array<T, N> zeros_like(const Array<T, N>& a) {
  return Array<T, N>::zeros(a.device(), a.extent());
}
/// Copies all elements between arrays of one shape, on one device or two.
template <class T, int N>
void copy(Array<T, N>& to, const Array<T, N>& from) {
  to.copy_from(from);
}

}  // namespace weft
