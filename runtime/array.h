// Arrays on a device: 1 to 4 dimensions, owning or a view of another.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "../frontend/support/error.h"
#include "../frontend/types/layout.h"
#include "../frontend/types/names.h"
#include "detail/host_vector.h"
#include "detail/packed.h"
#include "detail/sizes.h"
#include "device.h"
#include "host_copy.h"

namespace weft {

namespace detail {
/// A range whose values are contiguous on the host: a vector, a span, an array. (A std::vector<bool> is not.)
template <class R>
concept HostSequence = requires(const R& r) {
  *std::data(r);
  std::size(r);
};
/// Whether an element holds a real number.
template <class T>
inline constexpr bool holds_reals = [] {
  for (const Leaf& l : Layout<T>::leaves)
    if (l.type == ir::Type::f16 || l.type == ir::Type::f32 || l.type == ir::Type::f64) return true;
  return false;
}();
template <HostSequence R>
using SequenceElement = std::remove_cvref_t<decltype(*std::data(std::declval<const R&>()))>;
/// A contiguous range of T on the host.
template <class R, class T>
concept SequenceOf = HostSequence<R> && std::is_same_v<SequenceElement<R>, T>;
/// A range that a range-based `for` takes. (<ranges> would add 4,500 lines to each of a user's files.)
template <class R>
concept Iterable = requires(const R& r) {
  std::begin(r);
  std::end(r);
};
/// A contiguous range of another type than T on the host.
template <class R, class T>
concept RangeOfOthers = Iterable<R> && !SequenceOf<R, T>;

/// Refuses values of the host that are not of type T, by a message of the compiler.
template <class R, class T>
constexpr void check_values() {
  constexpr bool bits = std::is_same_v<R, std::vector<bool>> && std::is_same_v<T, bool>;
  static_assert(!bits, "weft: a std::vector<bool> has no bools in memory: give a std::array<bool, n> or a std::span");
  static_assert(bits || SequenceOf<R, T>,
                "weft: the values are of another type than the array's elements, or not side by side in memory: "
                "convert them to a std::vector of that type");
}
/// Refuses sizes that are given without elements, by a message of the compiler.
template <class... I>
constexpr void refuse_sizes_alone() {
  static_assert(sizeof...(I) == 0,
                "weft: an array is made of values; n zeros are zeros<T>(device, n), n elements without values "
                "empty<T>(device, n), of two dimensions zeros<T, 2>(device, {rows, columns})");
}
}  // namespace detail

/// The part of an array that does not depend on its element type. Functions that each launch calls for each array are
/// inline.
class ArrayBase {
 public:
  /// True for an array that was default constructed: it has no device and no memory.
  bool is_null() const { return !storage_; }
  int ndim() const { return ndim_; }
  /// The number of elements along dimension k.
  /// Errors: Error(invalid_argument) for a dimension that the array does not have.
  std::int64_t shape(int k, Loc loc = Loc::here()) const { return shape_[checked(k, "shape", loc)]; }
  /// The distance between neighbours along dimension k, in bytes. Errors: as shape().
  std::int64_t stride(int k, Loc loc = Loc::here()) const { return stride_[checked(k, "stride", loc)]; }
  /// The number of elements.
  std::int64_t size() const {
    if (is_null()) return 0;
    std::int64_t n = 1;
    for (int k = 0; k < ndim_; ++k) n *= shape_[static_cast<std::size_t>(k)];
    return n;
  }
  /// Whether the elements lie one after the other, in row-major order.
  bool is_contiguous() const {
    std::int64_t expected = element_bytes_;
    for (int k = ndim_ - 1; k >= 0; --k) {
      const std::int64_t n = shape_[static_cast<std::size_t>(k)];
      if (n != 1 && stride_[static_cast<std::size_t>(k)] != expected) return false;
      expected *= n;
    }
    return true;
  }
  /// Errors: Error(invalid_argument) for a null array.
  Device device(Loc loc = Loc::here()) const;
  /// The device address of the first element, as kernels see it.
  std::uint64_t address() const { return address_; }
  std::uint32_t element_bytes() const { return element_bytes_; }

  /// The buffer and the range from the first to the last element, in Vulkan's terms. Before others use the buffer, the
  /// work on the array that weft was given must be submitted (Stream::submit(), signal()): see docs/embedding.md.
  /// Errors: Error(invalid_argument) for a null or empty array; Error(unsupported) on devices that are not Vulkan's.
  VulkanBuffer vk(Loc loc = Loc::here()) const;

  /// Waits until everything that writes the array has run.
  void wait(Loc loc = Loc::here()) const;

  /// Frees the memory of the array and of all its views at once, even while other handles, graphs, structures or
  /// elements of other arrays name it. Later uses throw, except for questions that need no memory (shapes, views).
  /// Meant for memory that must go now: a renderer's buffer that was wrapped, or memory that a large allocation is to
  /// replace. Otherwise drop the handles, which waits for nothing. Gradients are an array of their own, and stay.
  /// Pointers and spans to the elements dangle. No other thread may use the array meanwhile.
  ///
  /// Errors: Error(invalid_argument) for a null array, a freed one, and gradients; in a capture; and while a tensor of
  /// DLPack, a Recording or a tape needs the memory. Error(unsupported) while a tape records. Error(kernel_fault) when
  /// a kernel that worked on the array failed. After an error the array is as it was. See docs/language.md.
  ///
  /// Cost: waits for the work that uses the array.
  void free(Loc loc = Loc::here());
  /// Whether the memory was freed by free(), called on this array or on another handle or view of its memory.
  bool is_freed() const;

  /// Whether the array's memory has gradient storage: see Array::requires_grad().
  bool has_grad() const;

  const std::shared_ptr<detail::Storage>& storage() const { return storage_; }
  /// The number of bytes from the first to the last element, which begin at address().
  std::uint64_t extent_bytes() const {
    if (size() == 0) return 0;
    std::int64_t last = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(ndim_); ++k) last += (shape_[k] - 1) * stride_[k];
    return static_cast<std::uint64_t>(last) + element_bytes_;
  }

 protected:
  ArrayBase(int ndim, std::uint32_t element_bytes) : ndim_(ndim), element_bytes_(element_bytes) {}
  friend class Tape;
  friend void detail::unpack_handle(ArrayBase& array, const std::byte* from, const detail::References& references);

  /// \param holds_arrays  elements may, by their type
  void create(const Device& device, const Extent& extent, int ndim, bool holds_arrays = false);
  /// The caller's memory, without a copy; kept by `owner`, or by the caller.
  /// \param align  of an element: its address is a multiple of this
  void create_around(const Device& device, const Extent& extent, int ndim, std::span<std::byte> memory,
                     std::size_t align, std::shared_ptr<void> owner);
  /// Stands on a buffer of the caller, without a copy.
  void create_around(const Device& device, const Extent& extent, int ndim, const VulkanBuffer& buffer,
                     std::shared_ptr<void> owner);
  /// \param leaves  the scalars of an element; none: all its bytes count
  void upload(const void* data, std::uint64_t count, std::span<const detail::Leaf> leaves = {}) {
    upload(data, count, leaves, nullptr);
  }
  void download(void* data) const;
  HostCopy start_download(void* data) const;
  void fill_element(const void* element, std::span<const detail::Leaf> leaves = {}) {
    fill_element(element, leaves, nullptr);
  }
  /// Uploads elements that hold arrays, in packed form; this array's memory keeps the arrays that they refer to alive.
  void upload_packed(const std::byte* data, std::uint64_t count, const detail::References& references);
  void fill_packed(const std::byte* element, const detail::References& references);
  /// The references of the elements, in order of address.
  detail::References references() const;
  /// \param leaves  the scalars of an element; none: a tape treats the elements as numbers without gradients
  void copy_from(const ArrayBase& from, std::span<const detail::Leaf> leaves = {});
  void copy_elements(const ArrayBase& from);
  void copy_bytes(const ArrayBase& from);
  void copy_between_devices(const ArrayBase& from);
  static void copy_range(const ArrayBase& to, const ArrayBase& from, std::int64_t to_offset, std::int64_t from_offset,
                         std::int64_t count, std::span<const detail::Leaf> leaves);
  void make_gradient(std::span<const detail::Leaf> leaves) const;
  /// Becomes the array of the gradients of `of`: the same place in the memory of gradients.
  void take_gradient(const ArrayBase& of);
  /// Keeps elements lo, lo + step, ... below hi of dimension k.
  void restrict(int k, std::int64_t lo, std::int64_t hi, std::int64_t step);
  /// Drops the first dimension at index i.
  void take_row(const ArrayBase& from, std::int64_t i);
  void take_reshaped(const ArrayBase& from, const Extent& extent, int ndim);
  /// Dimension k becomes dimension axes[k] of `from`.
  void take_permuted(const ArrayBase& from, const Extent& axes);
  /// Turns each element into a row of its scalars.
  void take_scalars(const ArrayBase& from);
  void take_same(const ArrayBase& from);
  std::byte* host_bytes() const;
  void read_element(const std::int64_t* indices, void* out) const;

 private:
  /// \param held  the memory that addresses in the elements point into
  void upload(const void* data, std::uint64_t count, std::span<const detail::Leaf> leaves,
              const detail::References* held);
  void fill_element(const void* element, std::span<const detail::Leaf> leaves, const detail::References* held);
  std::size_t checked(int k, const char* asked, Loc loc) const {
    if (k < 0 || k >= ndim_) no_dimension(k, asked, loc);
    return static_cast<std::size_t>(k);
  }
  [[noreturn]] void no_dimension(int k, const char* asked, Loc loc) const;

 protected:
  std::shared_ptr<detail::Storage> storage_;
  std::uint64_t address_ = 0;
  std::array<std::int64_t, 4> shape_{}, stride_{};
  int ndim_;
  std::uint32_t element_bytes_;
};

/// An array of T (a scalar, vector, matrix, struct, ...) in the memory of a device. A handle: copies share the
/// elements; clone() copies them. The memory is freed when the last handle is gone and the device has finished with it.
/// Arrays that the elements hold live as long, and longer if only parts are assigned: until all elements are at once.
///
/// Elements are in row-major order; the last dimension is contiguous unless the array is a view. Creating, filling and
/// copying run in order with launches on Device::stream(); only functions that bring data to the host wait.
/// Errors: Error(invalid_argument) for negative sizes, shapes that differ, null arrays; Error(out_of_memory). Each
/// names the file and line of the call, which the last parameter, or one with sizes or an index, brings by itself.
///
/// Negative indices and bounds of slices count from the end, as in Python: row -1 is the last one.
template <class T, int N = 1>
class Array : public ArrayBase {
  static_assert(N >= 1 && N <= 4, "an array has 1 to 4 dimensions");
  static constexpr bool kHoldsArrays = detail::Layout<T>::holds_arrays;
  static constexpr std::size_t kBytes = detail::Layout<T>::size;

 public:
  using value_type = T;

  /// A null array.
  Array() : ArrayBase(N, kBytes) { static_assert(detail::check_layout<T>()); }
  /// Copies a contiguous range of T.
  template <detail::SequenceOf<T> R>
  requires(N == 1) Array(const Device& device, const R& values, Loc loc = Loc::here())
      : Array(device, {std::size(values), loc}, values) {}
  Array(const Device& device, std::initializer_list<T> values, Loc loc = Loc::here()) requires(N == 1)
      : Array(device, std::span<const T>(values.begin(), values.size()), loc) {}
  /// Copies a contiguous range in row-major order, whose length must be the product of the sizes.
  template <detail::SequenceOf<T> R>
  Array(const Device& device, const detail::Sizes<N>& sizes, const R& values) : Array() {
    detail::called_from(sizes.loc, [&] {
      create(device, sizes, N, kHoldsArrays);
      write(std::data(values), std::size(values));
    });
  }

  // These overloads refuse other values that programs hold, with a message that says what to write.
  template <detail::RangeOfOthers<T> R>
  requires(N == 1) Array(const Device&, const R&, Loc = {}) : Array() { detail::check_values<R, T>(); }
  template <detail::RangeOfOthers<T> R>
  Array(const Device&, const detail::Sizes<N>&, const R&) : Array() {
    detail::check_values<R, T>();
  }
  template <detail::Countable... I>
  requires(sizeof...(I) > 0) Array(const Device&, I...) : Array() { detail::refuse_sizes_alone<I...>(); }
  template <detail::Countable... I>
  requires(sizeof...(I) > 0) explicit Array(I...) : Array() { detail::refuse_sizes_alone<I...>(); }
  template <int M = N>
  requires(M > 1) Array(const Device&, const detail::Sizes<M>&) : Array() {
    detail::refuse_sizes_alone<detail::Sizes<M>>();
  }
  template <detail::Iterable R>
  requires(N > 1) Array(const Device&, const R&) : Array() {
    static_assert(!detail::Iterable<R>,
                  "weft: an array of several dimensions is made of its sizes and a range of all its elements: Array<T, "
                  "2>(device, {rows, columns}, values)");
  }

  /// An array whose elements are not initialised, except that arrays in structs are null.
  static Array empty(const Device& device, const detail::Sizes<N>& sizes) {
    Array a;
    detail::called_from(sizes.loc, [&] { a.create(device, sizes, N, kHoldsArrays); });
    if constexpr (kHoldsArrays) a.zero(sizes.loc);
    return a;
  }
  static Array full(const Device& device, const detail::Sizes<N>& sizes, const T& value) {
    Array a = empty(device, sizes);
    a.fill(value, sizes.loc);
    return a;
  }
  static Array zeros(const Device& device, const detail::Sizes<N>& sizes) {
    Array a = empty(device, sizes);
    a.zero(sizes.loc);
    return a;
  }
  /// See weft::wrap().
  static Array around(const Device& device, const detail::Sizes<N>& sizes, std::span<T> memory,
                      std::shared_ptr<void> owner = {}) requires(!kHoldsArrays) {
    Array a;
    const std::span<std::byte> bytes = std::as_writable_bytes(memory);
    detail::called_from(sizes.loc, [&] { a.create_around(device, sizes, N, bytes, alignof(T), std::move(owner)); });
    return a;
  }
  /// See weft::wrap_buffer().
  static Array around(const Device& device, const detail::Sizes<N>& sizes, const VulkanBuffer& buffer,
                      std::shared_ptr<void> owner = {}) requires(!kHoldsArrays) {
    Array a;
    detail::called_from(sizes.loc, [&] { a.create_around(device, sizes, N, buffer, std::move(owner)); });
    return a;
  }
  /// The array on another device: this handle if it is there already, else a copy.
  Array to(const Device& device, Loc loc = Loc::here()) const {
    if (device == this->device(loc)) return *this;
    Array a = empty(device, {extent(), loc});
    a.copy_from(*this, loc);
    return a;
  }
  Array clone(Loc loc = Loc::here()) const {
    Array a = empty(device(loc), {extent(), loc});
    a.copy_from(*this, loc);
    return a;
  }

  Extent extent() const {
    Extent e(0);
    e.rank = N;
    e.n = shape_;
    return e;
  }
  void fill(const T& value, Loc loc = Loc::here()) {
    detail::called_from(loc, [&] {
      if constexpr (kHoldsArrays) {
        if (is_null()) return fill_element(nullptr);
        std::array<std::byte, kBytes> bytes{};
        detail::References references;
        detail::pack(value, *storage(), bytes.data(), references);
        fill_packed(bytes.data(), references);
      } else {
        fill_element(&value, detail::Layout<T>::leaves);
      }
    });
  }
  void zero(Loc loc = Loc::here()) {
    const std::array<std::byte, kBytes> bytes{};
    detail::called_from(loc, [&] { fill_element(bytes.data()); });
  }
  /// Replaces all elements, given in row-major order.
  template <detail::SequenceOf<T> R>
  void assign(const R& values, Loc loc = Loc::here()) {
    detail::called_from(loc, [&] { write(std::data(values), std::size(values)); });
  }
  template <detail::RangeOfOthers<T> R>
  void assign(const R&, Loc = {}) {
    detail::check_values<R, T>();
  }
  /// Replaces all elements by those of an array of the same shape, on this device or another. The two may be
  /// overlapping views of one array: the result is as if everything were read first.
  void copy_from(const Array& other, Loc loc = Loc::here()) {
    detail::called_from(loc, [&] { ArrayBase::copy_from(other, detail::Layout<T>::leaves); });
  }
  template <int M>
  static void copy_range(const Array& to, const Array<T, M>& from, std::int64_t to_offset, std::int64_t from_offset,
                         std::int64_t count, Loc loc = Loc::here()) {
    detail::called_from(
        loc, [&] { ArrayBase::copy_range(to, from, to_offset, from_offset, count, detail::Layout<T>::leaves); });
  }

  /// Gives the array's memory gradient storage, set to zero, unless it has it already; Tape::backward() adds to it.
  /// Views of one array share the storage: the gradient of a slice is a slice of the gradient.
  /// \return the array itself: `auto x = zeros<float>(device, n).requires_grad();`
  /// Errors: Error(invalid_argument) for a null array; Error(out_of_memory).
  /// Cost: as much memory as the whole array has, even for a view of a part.
  Array requires_grad(Loc loc = Loc::here()) const {
    static_assert(detail::holds_reals<T>, "weft: only arrays of real numbers have gradients");
    detail::called_from(loc, [&] { make_gradient(detail::Layout<T>::leaves); });
    return *this;
  }
  /// The gradient: an array of the same shape, each element of which is the derivative by that element of this array
  /// (integers in structs stay 0). A view: it shows what later calls of backward() and zero() make of it.
  /// Errors: Error(invalid_argument) for an array without gradient storage: call requires_grad(), or ask the tape with
  /// Tape::gradient().
  Array grad(Loc loc = Loc::here()) const {
    Array a;
    detail::called_from(loc, [&] { a.take_gradient(*this); });
    return a;
  }
  /// Sets the gradient to zero. Errors: as grad().
  void zero_grad(Loc loc = Loc::here()) const { grad(loc).zero(loc); }

  /// Copies the elements to the host, in row-major order. Waits for the work that writes them; on a GPU also for
  /// whatever the queue had before the copy.
  /// Errors: Error(out_of_memory) when the host has no memory for them.
  std::vector<T> to_vector(Loc loc = Loc::here()) const {
    return detail::called_from(loc, [&] {
      std::vector<T> values = detail::host_vector<T>(static_cast<std::uint64_t>(size()));
      if constexpr (std::is_same_v<T, bool>) {  // a vector of bool has no memory to copy to
        std::vector<char> bytes = detail::host_vector<char>(values.size());
        download(bytes.data());
        std::copy(bytes.begin(), bytes.end(), values.begin());
      } else {
        read(values.data());
      }
      return values;
    });
  }
  /// Copies the elements to memory of the caller, which has exactly size() elements. Waits.
  void copy_to(std::span<T> out, Loc loc = Loc::here()) const {
    detail::called_from(loc, [&] {
      check_length(out.size());
      read(out.data());
    });
  }
  /// Copies as copy_to() does, without waiting. `out` must live until the result's wait() has returned; it then holds
  /// the elements as they were at this point of the stream.
  /// Errors: Error(invalid_argument) for memory that partly is the array's own.
  HostCopy copy_to_async(std::span<T> out, Loc loc = Loc::here()) const requires(!kHoldsArrays) {
    return detail::called_from(loc, [&] {
      check_length(out.size());
      return start_download(out.data());
    });
  }
  /// One element: a.at(i), a.at(i, j). Waits, so it suits a look at a result, not a loop.
  template <detail::Countable... I>
  requires(sizeof...(I) == N - 1) T at(detail::GivenIndex first, I... others)
  const {
    const std::int64_t indices[] = {first.value, static_cast<std::int64_t>(others)...};
    T value;
    detail::called_from(first.loc, [&] {
      if constexpr (kHoldsArrays) {
        std::array<std::byte, kBytes> bytes;
        read_element(indices, bytes.data());
        detail::unpack(value, bytes.data(), references());
      } else {
        read_element(indices, &value);
      }
    });
    return value;
  }

  /// The elements themselves, without a copy, where the device's memory is also the host's (software and integrated
  /// devices, wrapped memory). Waits for all work that uses them. Valid until the next launch that uses the array, and
  /// while a named array keeps the memory (a temporary array is refused).
  /// Errors: Error(unsupported) on a device with memory of its own, or for a view that is not contiguous.
  std::span<T> host_span() && = delete;
  std::span<T> host_span(Loc loc = Loc::here()) & requires(!kHoldsArrays) {
    std::byte* const first = detail::called_from(loc, [&] { return host_bytes(); });
    return {reinterpret_cast<T*>(first), static_cast<std::size_t>(size())};
  }

  /// A view of elements lo, lo + step, ... below hi of dimension k (the first one by default). Shares the elements.
  Array slice(std::int64_t lo, std::int64_t hi, std::int64_t step = 1, int k = 0, Loc loc = Loc::here()) const {
    Array a = *this;
    detail::called_from(loc, [&] { a.restrict(k, lo, hi, step); });
    return a;
  }
  /// A view of the elements from lo to the end of the first dimension.
  Array slice(detail::GivenIndex lo) const { return slice(lo.value, this->shape(0), 1, 0, lo.loc); }
  /// A view of row i: the array without its first dimension.
  Array<T, N - 1> operator[](detail::GivenIndex i) const requires(N > 1) {
    Array<T, N - 1> a;
    detail::called_from(i.loc, [&] { a.take_row(*this, i.value); });
    return a;
  }
  // These overloads refuse access to elements, with a message: the host has no elements, and a kernel takes the array.
  template <class I>
  requires(N == 1 || !detail::Countable<I>) T& operator[](const I&) const { return no_elements<I>(); }
  template <class... I>
  requires(sizeof...(I) > 0) T& operator()(const I&...) const { return no_elements<I...>(); }
  /// A view of the same elements in another shape. One size may be -1, which stands for whatever is left. The array
  /// must be contiguous.
  template <int M>
  Array<T, M> reshape(const detail::Sizes<M>& sizes) const {
    Array<T, M> a;
    detail::called_from(sizes.loc, [&] { a.take_reshaped(*this, sizes, M); });
    return a;
  }
  /// A view with one dimension. The array must be contiguous.
  Array<T, 1> flatten(Loc loc = Loc::here()) const { return reshape<1>({-1, loc}); }
  /// A view with the dimensions reversed, or in the order given: dimension k is dimension axes[k] of this array.
  Array transpose(const detail::Sizes<N>& axes = detail::reversed<N>()) const requires(N > 1) {
    Array a;
    detail::called_from(axes.loc, [&] { a.take_permuted(*this, axes); });
    return a;
  }
  /// This array if it is contiguous, else a contiguous copy.
  Array contiguous(Loc loc = Loc::here()) const { return is_contiguous() ? *this : clone(loc); }
  /// A view with one more dimension, in which each element is a row of its scalars.
  auto scalars(Loc loc = Loc::here()) const requires(N < 4) {
    Array<typename Flat<T>::scalar, N + 1> a;
    detail::called_from(loc, [&] { a.take_scalars(*this); });
    return a;
  }
  /// A view of the same bytes as elements of another type of the same size: floats as unsigned, vec3 as vec3i.
  template <class U>
  Array<U, N> view_as() const {
    static_assert(
        sizeof(U) == sizeof(T) && !kHoldsArrays && !detail::Layout<U>::holds_arrays,
        "weft: an array can be viewed as elements of the same size only, and not of structs that hold arrays");
    Array<U, N> a;
    a.take_same(*this);
    return a;
  }

 private:
  template <class U, int M>
  friend class Array;
  template <class... I>
  static T& no_elements() {
    static_assert(sizeof...(I) == 0,
                  "weft: an Array has no elements to name: in a kernel pass the array as a parameter, an Arr, and do "
                  "not capture it; on the host read one by at()");
    return *static_cast<T*>(nullptr);
  }
  void check_length(std::size_t n) const;
  void write(const T* values, std::size_t n) {
    if constexpr (kHoldsArrays) {
      std::vector<std::byte> bytes = detail::host_vector<std::byte>(n * kBytes);
      detail::References references;
      for (std::size_t i = 0; i < n; ++i) detail::pack(values[i], *storage(), bytes.data() + i * kBytes, references);
      upload_packed(bytes.data(), n, references);
    } else {
      upload(values, n, detail::Layout<T>::leaves);
    }
  }
  void read(T* values) const {
    if constexpr (kHoldsArrays) {
      const std::size_t n = static_cast<std::size_t>(size());
      std::vector<std::byte> bytes = detail::host_vector<std::byte>(n * kBytes);
      download(bytes.data());
      const detail::References known = references();
      for (std::size_t i = 0; i < n; ++i) detail::unpack(values[i], bytes.data() + i * kBytes, known);
    } else {
      download(values);
    }
  }
};

namespace detail {
/// An array of T in memory that another array describes.
template <class T, int N>
class ArrayOn : public Array<T, N> {
 public:
  explicit ArrayOn(const ArrayBase& place) { this->take_same(place); }
};

[[noreturn]] void length_mismatch(std::size_t given, std::int64_t expected);
}  // namespace detail

template <class T, int N>
void Array<T, N>::check_length(std::size_t n) const {
  if (static_cast<std::int64_t>(n) != size()) detail::length_mismatch(n, size());
}

/// Copies all elements between arrays of one shape, on one device or two.
template <class T, int N>
void copy(Array<T, N> to, const Array<T, N>& from, Loc loc = Loc::here()) {
  to.copy_from(from, loc);
}
/// Copies `count` elements (-1: all that follow) from element `from_offset` of `from` on to element `to_offset` of `to`
/// on, each counted in row-major order. Both arrays must be contiguous; they may overlap.
template <class T, int N, int M>
void copy(Array<T, N> to, const Array<T, M>& from, std::int64_t to_offset, std::int64_t from_offset = 0,
          std::int64_t count = -1, Loc loc = Loc::here()) {
  Array<T, N>::copy_range(to, from, to_offset, from_offset, count, loc);
}

}  // namespace weft
