// Functions that make arrays: empty, zeros, ones, full, arange, from the scalars of elements, around the caller's
// memory.
#pragma once
#include <algorithm>
#include <memory>
#include <type_traits>

#include "array.h"

namespace weft {

/// An array whose elements are not initialised.
template <class T, int N = 1>
Array<T, N> empty(const Device& device, detail::SizesOf<N> sizes) {
  return Array<T, N>::empty(device, sizes);
}
template <class T, int N = 1>
Array<T, N> zeros(const Device& device, detail::SizesOf<N> sizes) {
  return Array<T, N>::zeros(device, sizes);
}
template <class T, int N = 1>
Array<T, N> full(const Device& device, detail::SizesOf<N> sizes, const std::type_identity_t<T>& value) {
  return Array<T, N>::full(device, sizes, value);
}
/// An array of which every scalar of every element is 1: a matrix of ones, not the identity.
template <class T, int N = 1>
Array<T, N> ones(const Device& device, detail::SizesOf<N> sizes) {
  using S = typename Flat<T>::scalar;
  S scalars[Flat<T>::count];
  for (S& s : scalars) s = S(1);
  T value;
  static_assert(sizeof value == sizeof scalars);
  std::memcpy(static_cast<void*>(&value), scalars, sizeof value);
  return Array<T, N>::full(device, sizes, value);
}

/// These functions make arrays of the shape, type and device of another one.
template <class T, int N>
Array<T, N> empty_like(const Array<T, N>& a, Loc loc = Loc::here()) {
  return Array<T, N>::empty(a.device(loc), {a.extent(), loc});
}
template <class T, int N>
Array<T, N> zeros_like(const Array<T, N>& a, Loc loc = Loc::here()) {
  return Array<T, N>::zeros(a.device(loc), {a.extent(), loc});
}
template <class T, int N>
Array<T, N> ones_like(const Array<T, N>& a, Loc loc = Loc::here()) {
  return ones<T, N>(a.device(loc), {a.extent(), loc});
}
template <class T, int N>
Array<T, N> full_like(const Array<T, N>& a, const std::type_identity_t<T>& value, Loc loc = Loc::here()) {
  return Array<T, N>::full(a.device(loc), {a.extent(), loc}, value);
}

namespace detail {
/// The number of values start, start + step, ... before stop.
/// Errors: Error(invalid_argument) for a step of 0, NaN, or more values than can be counted.
std::int64_t arange_size(double start, double stop, double step);
/// The number of integers start, start + step, ... before stop, by their distance and the magnitude of the step.
std::int64_t arange_size(std::uint64_t distance, std::uint64_t step);
/// The number of elements of `each` scalars. Errors: Error(invalid_argument) when some scalars are left over.
std::int64_t whole_elements(std::size_t scalars, int each);
}  // namespace detail

/// The values start, start + step, ... below stop (above it for a negative step), as in numpy's arange. Real values are
/// computed in float64 as start + i * step and rounded once. arange(device, n) counts from 0.
/// Errors: Error(invalid_argument) for a step of 0 or NaN.
/// Cost: the host computes the values and uploads them.
template <NumericScalar T>
Array<T> arange(const Device& device, T start, T stop, T step = T(1), Loc loc = Loc::here()) {
  // Integers are computed in 64 bits without sign: whatever overflows there is cut off again by the conversion to T.
  using Wide = std::conditional_t<RealScalar<T>, double, std::uint64_t>;
  const Wide first = static_cast<Wide>(start), last = static_cast<Wide>(stop), by = static_cast<Wide>(step);
  const std::int64_t n = detail::called_from(loc, [&] {
    if constexpr (RealScalar<T>) {
      return detail::arange_size(first, last, by);
    } else {
      const bool down = step < T(0), any = down ? stop < start : start < stop;
      return detail::arange_size(!any ? 0 : down ? first - last : last - first, down ? 0 - by : by);
    }
  });
  Array<T> a = Array<T>::empty(device, {n, loc});
  std::vector<T> values;
  for (std::int64_t at = 0; at < n; at += std::int64_t(values.size())) {
    values.resize(std::size_t(std::min<std::int64_t>(n - at, 1 << 20)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(first + static_cast<Wide>(at + std::int64_t(i)) * by);
    a.slice(at, at + std::int64_t(values.size())).assign(values, loc);
  }
  return a;
}
template <NumericScalar T>
Array<T> arange(const Device& device, T stop, Loc loc = Loc::here()) {
  return arange<T>(device, T(0), stop, T(1), loc);
}

/// Copies the scalars of elements, one after the other, into an array of T: from_flat<vec3>(device, floats) of 3 n
/// floats has n elements.
/// Errors: Error(invalid_argument) when the number of scalars is no multiple of those of an element, or does not fit
/// the extent.
template <class T, int N, detail::SequenceOf<typename Flat<T>::scalar> R>
Array<T, N> from_flat(const Device& device, detail::SizesOf<N> sizes, const R& scalars) {
  Array<T, N> a = Array<T, N>::empty(device, sizes);
  a.flatten().scalars().assign(scalars, sizes.loc);
  return a;
}
template <class T, detail::SequenceOf<typename Flat<T>::scalar> R>
Array<T> from_flat(const Device& device, const R& scalars, Loc loc = Loc::here()) {
  const std::int64_t n =
      detail::called_from(loc, [&] { return detail::whole_elements(std::size(scalars), Flat<T>::count); });
  return from_flat<T, 1>(device, {n, loc}, scalars);
}

/// An array around memory of the host, without a copy: kernels read and write that memory.
///
/// wrap(device, x) uses a vector, a span or an array of the caller. It must stay, unmoved, until the last array that
/// shares it is gone (the end of that array waits for the device) or was freed by Array::free(). wrap(device,
/// std::move(vector)) keeps the vector itself, so that nothing can dangle.
///
/// The host may read the elements after wait() or through host_span(), and write them through host_span(). The memory
/// must be aligned to its elements, as C++ has it. Except on the native device ("cpu"), it must also begin at a
/// multiple of 4 bytes and have a multiple of 4; on Vulkan the device sees the whole pages that it lies in. Errors:
/// Error(unsupported) on a device that cannot use the host's memory (Device::wraps_host()), or not this memory;
/// Error(invalid_argument) for memory that is badly aligned, or part of which is wrapped on this device already.
template <detail::HostSequence R>
requires(std::is_lvalue_reference_v<R> ||
         std::ranges::enable_borrowed_range<std::remove_cvref_t<R>>) auto wrap(const Device& device, R&& memory,
                                                                               Loc loc = Loc::here()) {
  using T = std::remove_pointer_t<decltype(std::data(memory))>;
  static_assert(!std::is_const_v<T>, "weft::wrap: kernels may write the memory of an array, and this one is const");
  if constexpr (!std::is_const_v<T>)
    return Array<T>::around(device, {std::size(memory), loc}, std::span<T>(std::data(memory), std::size(memory)));
}
template <class T>
Array<T> wrap(const Device& device, std::vector<T>&& values, Loc loc = Loc::here()) {
  auto owner = std::make_shared<std::vector<T>>(std::move(values));
  return Array<T>::around(device, {owner->size(), loc}, *owner, owner);
}

}  // namespace weft
