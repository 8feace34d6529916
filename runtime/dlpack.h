// DLPack, both ways: arrays handed to other libraries, and theirs taken, without a copy where memory is the host's or
// CUDA's.
//
// The structs are those of <dlpack/dlpack.h>, which only who looks inside them needs.
#pragma once
#include "array.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;
struct CUstream_st;  // *CUstream, *cudaStream_t

namespace weft {

/// Whose memory a tensor is to be that to_dlpack() makes.
enum class DlpackMemory {
  /// cuda for memory that CUDA has too, unless it is mapped and the host reads it through its caches; else host. For
  /// copies, host.
  automatic,
  host,  ///< DLPack's CPU (kDLCPU, 0)
  cuda,  ///< the CUDA device that is the same GPU (kDLCUDA, its number)
};

struct DlpackOptions {
  bool copy = false;  ///< elements are copied; without, the memory itself is shared
  DlpackMemory memory = DlpackMemory::automatic;
  /// from_dlpack() of memory of CUDA's: the stream on which the other library works on the tensor. Null is the legacy
  /// default stream, which comes after all others but those made cudaStreamNonBlocking.
  CUstream_st* stream = nullptr;
  /// from_dlpack() of memory of CUDA's: whether to wait for that stream first. false is for who has waited already,
  /// where DLPack's protocol passes the stream -1. (A copy runs on the stream and is waited for in any case.)
  bool wait = true;
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

DLManagedTensorVersioned* export_versioned(const ArrayBase& array, const DlpackElement& element,
                                           const DlpackOptions& options);
DLManagedTensor* export_unversioned(const ArrayBase& array, const DlpackElement& element, const DlpackOptions& options);

/// Where an array of a tensor's elements lies.
struct DlpackPlace {
  std::shared_ptr<Storage> storage;
  std::uint64_t address = 0;
  std::array<std::int64_t, 4> shape{}, stride{};  ///< strides in bytes
};
DlpackPlace import_tensor(const Device& device, DLManagedTensorVersioned* tensor, const DlpackElement& element,
                          int ndim, std::uint32_t element_bytes, const DlpackOptions& options);
DlpackPlace import_tensor(const Device& device, DLManagedTensor* tensor, const DlpackElement& element, int ndim,
                          std::uint32_t element_bytes, const DlpackOptions& options);

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
/// the memory stays, whatever becomes of the array and of the device's handles. The tensor has the array's strides, and
/// one dimension more for elements that are vectors, two for matrices; bool is kDLBool.
///
/// Memory that the host reads through its caches is DLPack's CPU memory. That of a GPU which has a memory of its own,
/// mapped or not, is CUDA's where CUDA has the same GPU, by the UUID that both drivers tell: CUDA maps the memory
/// itself, for the device's primary context. It maps a page of weft's (64 MiB, or one large array) at once, at the
/// first tensor of it, and until the page goes back to the driver. {.memory = ...} asks for one of the two.
///
/// The elements are there when this returns: it waits for all work on the array. What is launched on the array later is
/// to be waited for (array.wait()) before the other library looks again, and that one's writes must have been made
/// before a launch: for CUDA, its stream waited for. Memory that a tape needs is copied first, as for
/// Array::host_span(). Memory that CUDA was given is not used for anything else before CUDA has finished all work of
/// its primary context on that GPU. Dropping array and tensor does not wait for that. Who waits is who asks for memory
/// when 64 MiB of it have been dropped or none is left, Device::synchronize(), and the end of the device: no work of
/// CUDA's may then be waiting for something that only the same thread does later (see docs/dlpack.md).
///
/// The versioned struct is that of DLPack 1.0. With {.copy = true} the tensor has memory of its own (the versioned
/// struct says so by DLPACK_FLAG_BITMASK_IS_COPIED), on the host from any device.
/// Errors: Error(invalid_argument) for a null array; Error(unsupported) where the device's memory is neither the host's
/// nor CUDA's, or not that of the two which is asked for: without a CUDA driver, without a CUDA device that is the same
/// GPU, for memory that the device cannot export (only that of shareable() and import_memory() can be, but on NVIDIA's
/// driver), and for what CUDA refuses.
template <class T, int N>
[[nodiscard]] DLManagedTensorVersioned* to_dlpack(const Array<T, N>& array, DlpackOptions options = {},
                                                  Loc loc = Loc::here()) {
  return detail::called_from(loc,
                             [&] { return detail::export_versioned(array, detail::dlpack_element<T>(), options); });
}
/// The same as the struct of DLPack before 1.0, which most libraries still ask for.
template <class T, int N>
[[nodiscard]] DLManagedTensor* to_dlpack_unversioned(const Array<T, N>& array, DlpackOptions options = {},
                                                     Loc loc = Loc::here()) {
  return detail::called_from(loc,
                             [&] { return detail::export_unversioned(array, detail::dlpack_element<T>(), options); });
}

/// An array on the memory of a tensor of another library: kernels read and write it. The tensor is taken over: its
/// deleter is called once, when the last array that shares the memory is gone and the device has finished with it.
/// Where this throws, the tensor is still the caller's.
///
/// Strides and byte_offset are kept. Memory that to_dlpack() gave away and that still is an array's comes back as what
/// it is on its own device, whichever library made the tensor; the tensor is deleted at once then. Else the rules of
/// wrap() hold: the other library's writes are made before a launch, and its reads follow wait(). Memory of CUDA's is
/// ready when `options.stream` has run what it has, which this waits for unless `options.wait` is false. The stream is
/// one of the primary context of the tensor's GPU, as the memory is: that of CUDA's runtime library and of all on top
/// of it. Pinned memory (kDLCUDAHost) is the host's; managed memory (kDLCUDAManaged) is taken by copy.
///
/// CUDA's memory can be shared where the device is the same GPU and the memory was allocated by cuMemCreate() with
/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR among its handle types; that of cudaMalloc() cannot, on no device.
///
/// With {.copy = true} elements are copied and the deleter (which may be null then) is called before this returns. A
/// copy from CUDA to the same GPU stays there; to other devices it goes by way of the host. Either takes memory for the
/// elements and at most 16 KiB more for each run of them that lies in a row. A copy of memory that to_dlpack() gave
/// away comes behind weft's work on it. Errors: Error(invalid_argument) for a null tensor, elements of another type
/// (lanes included), another number of dimensions (see to_dlpack()), vectors that do not lie in a row, negative sizes
/// and strides, elements that lie on each other, memory that is not aligned to its scalars, a number that no CUDA
/// device has, or another than the one of the memory; without a copy for a tensor without deleter, which nothing would
/// keep, and for memory that does not begin and end at words, or of which an array uses a part already; for a stream
/// that is being captured, is none, or is -1. Error(device_lost) where CUDA runs nothing more since one of its kernels
/// failed. Error(no_device) for memory of CUDA's without a CUDA driver. Error(unsupported) for memory that is neither
/// the host's nor CUDA's, for another version of DLPack than 1, for what CUDA refuses, and without a copy for tensors
/// that are read-only, for a device that cannot use the host's memory, for a CUDA device that is another GPU and for
/// CUDA memory without such a handle; for CUDA memory of another context than the primary one, where CUDA tells.
template <class T, int N = 1>
Array<T, N> from_dlpack(const Device& device, DLManagedTensorVersioned* tensor, DlpackOptions options = {},
                        Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] {
    return detail::DlpackArray<T, N>(
        detail::import_tensor(device, tensor, detail::dlpack_element<T>(), N, detail::Layout<T>::size, options));
  });
}
template <class T, int N = 1>
Array<T, N> from_dlpack(const Device& device, DLManagedTensor* tensor, DlpackOptions options = {},
                        Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] {
    return detail::DlpackArray<T, N>(
        detail::import_tensor(device, tensor, detail::dlpack_element<T>(), N, detail::Layout<T>::size, options));
  });
}

}  // namespace weft
