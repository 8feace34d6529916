// DLPack, both ways: arrays handed to other libraries, and theirs taken, without a copy where memory is the host's.
//
// The structs are those of <dlpack/dlpack.h>, which only who looks inside them needs.
#pragma once
#include "array.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace weft {

/// Whether elements are copied; without, the memory itself is shared.
struct DlpackOptions {
  bool copy = false;
};

namespace detail {

/// The scalars of an element: DLPack's type of one, and the dimensions that they add to the array's.
struct DlpackElement {
  std::uint8_t code, bits;
  std::uint32_t bytes;  ///< of a scalar
  int dimensions;       ///< 0 for scalars, 1 for vectors, quaternions and transforms, 2 for matrices
  std::int64_t sizes[2];
};

template <class T>
inline constexpr std::int64_t dlpack_sizes[2] = {Flat<T>::count, 0};
template <int R, int C, class S>
inline constexpr std::int64_t dlpack_sizes<mat<R, C, S>>[2] = {R, C};

template <class T>
constexpr DlpackElement dlpack_element() {
  using S = typename Flat<T>::scalar;
  enum Code : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBool = 6 };
  const Code code = std::is_same_v<S, bool> ? kBool : RealScalar<S> ? kFloat : std::is_signed_v<S> ? kInt : kUInt;
  const std::int64_t first = dlpack_sizes<T>[0], second = dlpack_sizes<T>[1];
  return {code, std::uint8_t(8 * sizeof(S)), sizeof(S), std::is_same_v<T, S> ? 0 : second ? 2 : 1, {first, second}};
}

DLManagedTensorVersioned* export_versioned(const ArrayBase& array, const DlpackElement& element, bool copy);
DLManagedTensor* export_unversioned(const ArrayBase& array, const DlpackElement& element, bool copy);

/// Where an array of a tensor's elements lies.
struct DlpackPlace {
  std::shared_ptr<Storage> storage;
  std::uint64_t address = 0;
  std::array<std::int64_t, 4> shape{}, stride{};  ///< strides in bytes
};
DlpackPlace import_tensor(const Device& device, DLManagedTensorVersioned* tensor, const DlpackElement& element,
                          int ndim, std::uint32_t element_bytes, bool copy);
DlpackPlace import_tensor(const Device& device, DLManagedTensor* tensor, const DlpackElement& element, int ndim,
                          std::uint32_t element_bytes, bool copy);

template <class T, int N>
class DlpackArray : public Array<T, N> {
 public:
  explicit DlpackArray(DlpackPlace place) {
    this->storage_ = std::move(place.storage);
    this->address_ = place.address;
    this->shape_ = place.shape;
    this->stride_ = place.stride;
  }
};

}  // namespace detail

/// The array for another library, which calls the tensor's deleter when it has finished, from any thread; until then
/// the memory stays, whatever becomes of the array and of the device's handles. The tensor is on DLPack's CPU (kDLCPU,
/// 0), has the array's strides, and one dimension more for elements that are vectors, two for matrices; bool is
/// kDLBool.
///
/// The elements are there when this returns: it waits for all work on the array. What is launched on the array later is
/// to be waited for (array.wait()) before the other library looks again, and that one's writes must have been made
/// before a launch. Memory that a tape needs is copied first, as for Array::host_span().
///
/// The versioned struct is that of DLPack 1.0. With {.copy = true} the tensor has memory of its own (the versioned
/// struct says so by DLPACK_FLAG_BITMASK_IS_COPIED), from any device.
/// Errors: Error(invalid_argument) for a null array; Error(unsupported) where the device's memory is not the host's:
/// DLPack gives no meaning to a pointer to Vulkan memory that two libraries would share.
template <class T, int N>
[[nodiscard]] DLManagedTensorVersioned* to_dlpack(const Array<T, N>& array, DlpackOptions options = {}) {
  return detail::export_versioned(array, detail::dlpack_element<T>(), options.copy);
}
/// The same as the struct of DLPack before 1.0, which most libraries still ask for.
template <class T, int N>
[[nodiscard]] DLManagedTensor* to_dlpack_unversioned(const Array<T, N>& array, DlpackOptions options = {}) {
  return detail::export_unversioned(array, detail::dlpack_element<T>(), options.copy);
}

/// An array on the memory of a tensor of another library: kernels read and write it. The tensor is taken over: its
/// deleter is called once, when the last array that shares the memory is gone and the device has finished with it.
/// Where this throws, the tensor is still the caller's.
///
/// Strides and byte_offset are kept. A tensor that to_dlpack() made gives back the very memory on its own device. Else
/// the rules of wrap() hold: the other library's writes are made before a launch, and its reads follow wait().
///
/// With {.copy = true} elements are copied and the deleter (which may be null then) is called before this returns.
/// Errors: Error(invalid_argument) for a null tensor, elements of another type (lanes included), another number of
/// dimensions (see to_dlpack()), vectors that do not lie in a row, negative sizes and strides, elements that lie on
/// each other, memory that is not aligned to its scalars; without a copy for a tensor without deleter, which nothing
/// would keep, and for memory that does not begin and end at words, or of which an array uses a part already.
/// Error(unsupported) for memory that is not DLPack's CPU's, for another version of DLPack than 1, and without a copy
/// for tensors that are read-only and for a device that cannot use the host's memory.
template <class T, int N = 1>
Array<T, N> from_dlpack(const Device& device, DLManagedTensorVersioned* tensor, DlpackOptions options = {}) {
  return detail::DlpackArray<T, N>(
      detail::import_tensor(device, tensor, detail::dlpack_element<T>(), N, detail::Layout<T>::size, options.copy));
}
template <class T, int N = 1>
Array<T, N> from_dlpack(const Device& device, DLManagedTensor* tensor, DlpackOptions options = {}) {
  return detail::DlpackArray<T, N>(
      detail::import_tensor(device, tensor, detail::dlpack_element<T>(), N, detail::Layout<T>::size, options.copy));
}

}  // namespace weft
