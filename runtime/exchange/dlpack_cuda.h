// Memory that weft and CUDA have together: arrays as CUDA sees them, and CUDA's memory under arrays. Internal to the
// runtime.
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
  std::string why;  ///< there is none
};
CudaTwin cuda_twin(DeviceState& device);

/// Whether mapped memory is rather CUDA's: the host reaches it only over the bus, past its caches, and CUDA has it.
/// \param address  of the memory, or 0 for that which arrays have
bool nearer_to_cuda(DeviceState& device, std::uint64_t address);

/// Where CUDA sees the first byte of a storage, which has bytes. It is parked at its end from now on.
/// Errors: Error(unsupported) for memory that cannot be exported, and for what CUDA refuses.
struct CudaPlace {
  std::byte* data = nullptr;
  int device = 0;
};
CudaPlace map_for_cuda(Storage& storage);

/// A storage on memory of CUDA's, which `owner` keeps.
/// Errors: Error(invalid_argument) for memory under an array already, and that does not begin and end at words, and for
/// another device than that of the memory; Error(unsupported) for memory that cannot be exported, and of other GPUs.
std::shared_ptr<Storage> wrap_cuda(const std::shared_ptr<DeviceState>& device, std::byte* data, std::uint64_t bytes,
                                   int cuda_device, std::shared_ptr<void> owner);

/// Waits for the stream. Errors: Error(invalid_argument) for a device that CUDA does not have, and for a stream that is
/// being captured.
void wait_for_cuda(int cuda_device, CUstream_st* stream);

/// Pieces of CUDA's memory, to be put in a row.
struct CudaPieces {
  int cuda_device = 0;
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;             ///< of each
  std::vector<std::uint64_t> offsets;  ///< from `data`
};
/// Copies to memory of its own, behind the stream's work; null for a device that CUDA cannot reach.
/// Errors: as above; Error(invalid_argument, unsupported) for what is not memory of the device's primary context.
std::shared_ptr<Storage> copy_from_cuda(const std::shared_ptr<DeviceState>& device, const CudaPieces& pieces,
                                        CUstream_st* stream);
/// The same to the host.
std::vector<std::byte> read_cuda(const CudaPieces& pieces, CUstream_st* stream);

}  // namespace weft::detail
