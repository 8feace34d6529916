// DLPack, both ways: gives arrays to other libraries and takes theirs, without a copy for memory of the host or of
// CUDA.
//
// The structs are those of <dlpack/dlpack.h>, which only code that looks inside them needs.
#pragma once
#include "array.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;
struct CUstream_st;  // *CUstream, *cudaStream_t

namespace weft {

/// The owner of the memory of a tensor that to_dlpack() makes.
enum class DlpackMemory {
  /// cuda for memory that CUDA has too, unless the memory is mapped and the host reads it through its caches; otherwise
  /// host. Always host for copies.
  automatic,
  host,  ///< DLPack's CPU (kDLCPU, 0)
  cuda,  ///< the CUDA device that is the same GPU (kDLCUDA, its number)
};

struct DlpackOptions {
  bool copy = false;  ///< whether elements are copied; without a copy, the memory itself is shared
  DlpackMemory memory = DlpackMemory::automatic;
  /// For from_dlpack() of CUDA's memory: the stream on which the other library works on the tensor. Null is the legacy
  /// default stream, which comes after all others except those made with cudaStreamNonBlocking.
  CUstream_st* stream = nullptr;
  /// For from_dlpack() of CUDA's memory: whether to wait for that stream first. Pass false after a wait of your own,
  /// where DLPack's protocol passes the stream -1. (A copy runs on the stream and is waited for in any case.)
  bool wait = true;
};

namespace detail {

/// The scalars of an element: DLPack's type of one scalar, and the dimensions that they add to those of the array.
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

DLManagedTensorVersioned* export_versioned(const ArrayBase& array, const DlpackElement& element,
                                           const DlpackOptions& options);
DLManagedTensor* export_unversioned(const ArrayBase& array, const DlpackElement& element, const DlpackOptions& options);

/// An array of a tensor's elements.
ArrayBase import_tensor(const Device& device, DLManagedTensorVersioned* tensor, const DlpackElement& element, int ndim,
                        std::uint32_t element_bytes, const DlpackOptions& options);
ArrayBase import_tensor(const Device& device, DLManagedTensor* tensor, const DlpackElement& element, int ndim,
                        std::uint32_t element_bytes, const DlpackOptions& options);

}  // namespace detail

/// Gives an array to another library. The library calls the tensor's deleter when it has finished, from any thread;
/// until then the memory stays, whatever becomes of the array and of the device's handles. The tensor has the array's
/// strides, and one more dimension for elements that are vectors, two for matrices; bool is kDLBool.
///
/// Memory that the host reads through its caches becomes DLPack's CPU memory. Memory of a GPU with memory of its own,
/// mapped or not, becomes CUDA's if CUDA has the same GPU, by the UUID that both drivers tell: CUDA maps it for the
/// device's primary context. It maps a whole page of weft's (64 MiB, or one large array), from the first tensor of the
/// page until the page goes back to the driver. {.memory = ...} asks for one of the two.
///
/// The elements are ready when this returns: it waits for all work on the array. Call array.wait() after later launches
/// on it, before the other library looks again. That library's writes must be complete before a launch: for CUDA, wait
/// for its stream. Memory that a tape needs is copied first, as for Array::host_span().
///
/// Memory that CUDA was given is not used for anything else before CUDA has finished all work of its primary context on
/// that GPU. Dropping array and tensor does not wait for that. Device::synchronize(), the end of the device, and an
/// allocation do (once 64 MiB of such memory have been dropped, or none is left): no work of CUDA's may then be waiting
/// for something that only the same thread does later (see docs/dlpack.md).
///
/// The versioned struct is that of DLPack 1.0. With {.copy = true} the tensor has memory of its own, on the host from
/// any device; the versioned struct says so by DLPACK_FLAG_BITMASK_IS_COPIED.
/// Errors: Error(invalid_argument) for a null array; Error(unsupported) if the memory can be neither the host's nor
/// CUDA's, or not the one that options.memory asks for. See docs/dlpack.md.
template <class T, int N>
[[nodiscard]] DLManagedTensorVersioned* to_dlpack(const Array<T, N>& array, DlpackOptions options = {},
                                                  Loc loc = Loc::here()) {
  return detail::called_from(loc,
                             [&] { return detail::export_versioned(array, detail::dlpack_element<T>(), options); });
}
/// Gives an array as to_dlpack() does, in the struct of DLPack before 1.0, which most libraries still ask for.
template <class T, int N>
[[nodiscard]] DLManagedTensor* to_dlpack_unversioned(const Array<T, N>& array, DlpackOptions options = {},
                                                     Loc loc = Loc::here()) {
  return detail::called_from(loc,
                             [&] { return detail::export_unversioned(array, detail::dlpack_element<T>(), options); });
}

/// An array on the memory of another library's tensor: kernels read and write that memory. The tensor is taken over:
/// its deleter is called once, when the last array that shares the memory is gone and the device has finished with it.
/// After an error the tensor is still the caller's.
///
/// Strides and byte_offset are kept. Memory that to_dlpack() gave away, and that an array still uses, comes back as
/// what it is on its own device, whichever library made the tensor; the tensor is deleted at once. For other memory the
/// rules of wrap() hold: the other library's writes are complete before a launch, and its reads follow wait(). Memory
/// of CUDA's is ready when `options.stream` has run everything that it has, which from_dlpack() waits for unless
/// `options.wait` is false. Stream and memory belong to the primary context of the tensor's GPU, which is that of
/// CUDA's runtime library and of everything on top of it. Pinned memory (kDLCUDAHost) is the host's; managed memory
/// (kDLCUDAManaged) is copied.
///
/// CUDA's memory can be shared if the device is the same GPU and the memory was allocated by cuMemCreate() with
/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR among its handle types. Memory of cudaMalloc() cannot, on any device.
///
/// With {.copy = true} elements are copied and the deleter (which may then be null) is called before this returns. A
/// copy from CUDA to the same GPU stays there; to other devices it goes by way of the host. Either takes memory for the
/// elements and at most 16 KiB more for each run of them that lies in a row. A copy of memory that to_dlpack() gave
/// away comes after weft's work on it.
///
/// Errors: Error(invalid_argument) for a null or malformed tensor, one that does not fit the array, and a stream that
/// cannot be waited for; Error(unsupported) for a tensor that weft or CUDA cannot take; Error(no_device) without a CUDA
/// driver; Error(device_lost) after a kernel of CUDA's has failed. See docs/dlpack.md for each case.
template <class T, int N = 1>
Array<T, N> from_dlpack(const Device& device, DLManagedTensorVersioned* tensor, DlpackOptions options = {},
                        Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] {
    return detail::ArrayOn<T, N>(
        detail::import_tensor(device, tensor, detail::dlpack_element<T>(), N, detail::Layout<T>::size, options));
  });
}
template <class T, int N = 1>
Array<T, N> from_dlpack(const Device& device, DLManagedTensor* tensor, DlpackOptions options = {},
                        Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] {
    return detail::ArrayOn<T, N>(
        detail::import_tensor(device, tensor, detail::dlpack_element<T>(), N, detail::Layout<T>::size, options));
  });
}

}  // namespace weft
