// Memory shared by weft and CUDA: arrays mapped for CUDA, and CUDA's memory under arrays. Internal to the runtime.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../core/state.h"

struct CUstream_st;

namespace weft::detail {

/// The CUDA device that is the same GPU as a device of weft's.
struct CudaTwin {
  int device = -1;  ///< -1: none
  std::string why;  ///< the reason if there is none
};
CudaTwin cuda_twin(DeviceState& device);

/// Whether CUDA should rather have mapped memory: the host reaches it only over the bus, past its caches, and CUDA can
/// map it.
/// \param address  of the memory, or 0 for arrays' memory
bool nearer_to_cuda(DeviceState& device, std::uint64_t address);

/// The address at which CUDA sees the first byte of a storage, which must not be empty. From now on the storage's
/// memory is parked when it ends.
/// Errors: Error(unsupported) for memory that cannot be exported, and if CUDA refuses.
struct CudaPlace {
  std::byte* data = nullptr;
  int device = 0;
};
CudaPlace map_for_cuda(Storage& storage);

/// A storage on CUDA memory, which `owner` keeps.
/// Errors: Error(invalid_argument) for memory that is under an array already, is not aligned to words at both ends, or
/// is another device's; Error(unsupported) for memory that cannot be exported, or is another GPU's.
std::shared_ptr<Storage> wrap_cuda(const std::shared_ptr<DeviceState>& device, std::byte* data, std::uint64_t bytes,
                                   int cuda_device, std::shared_ptr<void> owner);

/// Waits for the stream. Errors: Error(invalid_argument) for a device that CUDA does not have, and for a stream that is
/// being captured.
void wait_for_cuda(int cuda_device, CUstream_st* stream);

/// Pieces of CUDA memory to be copied into one row.
struct CudaPieces {
  int cuda_device = 0;
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;             ///< of each piece
  std::vector<std::uint64_t> offsets;  ///< from `data`
};
/// Copies to new memory, after the stream's work; null for a device that CUDA cannot reach.
/// Errors: as above; Error(invalid_argument, unsupported) for memory that is not of the device's primary context.
std::shared_ptr<Storage> copy_from_cuda(const std::shared_ptr<DeviceState>& device, const CudaPieces& pieces,
                                        CUstream_st* stream);
/// Copies to the host. Errors: likewise.
std::vector<std::byte> read_cuda(const CudaPieces& pieces, CUstream_st* stream);

}  // namespace weft::detail
