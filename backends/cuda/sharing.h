// Memory that CUDA shares with other interfaces: theirs mapped for CUDA, CUDA's exported to them, and copies between.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "../../frontend/support/file_descriptor.h"
#include "driver.h"

namespace weft::backend::cuda {

/// Memory of another interface to the same GPU, mapped for CUDA.
class ExternalMemory {
 public:
  /// Takes over the descriptor (of the kind "opaque") if it succeeds.
  /// \param bytes      size of the allocation that the descriptor stands for
  /// \param mapped     bytes, from the beginning, that are mapped
  /// \param dedicated  whether the allocation is dedicated to one buffer
  /// Errors: as Driver::check().
  ExternalMemory(std::shared_ptr<const Context> context, FileDescriptor&& fd, std::uint64_t bytes, std::uint64_t mapped,
                 bool dedicated);
  ~ExternalMemory();
  ExternalMemory(const ExternalMemory&) = delete;
  ExternalMemory& operator=(const ExternalMemory&) = delete;

  abi::Pointer pointer() const { return pointer_; }
  const std::shared_ptr<const Context>& context() const { return context_; }

 private:
  void release() noexcept;

  const std::shared_ptr<const Context> context_;
  abi::External memory_ = nullptr;
  abi::Pointer pointer_ = 0;
};

/// CUDA's description of a pointer.
struct PointerInfo {
  int device = 0;
  bool on_device = false;  ///< the memory is a device's, not the host's
  bool elsewhere = false;  ///< it belongs to another context than the device's primary one, as far as CUDA tells
};
/// Returns nothing for memory that CUDA does not know. Errors: as Driver::check().
std::optional<PointerInfo> look_up(const Context& context, abi::Pointer pointer);

/// An allocation of CUDA's, exported for other interfaces.
struct ExportedAllocation {
  FileDescriptor fd;
  abi::Pointer base = 0;  ///< where it is mapped
  std::uint64_t bytes = 0;
};
/// Exports the allocation that contains a pointer.
/// Errors: Error(unsupported) for memory that was not allocated with cuMemCreate, or is not exportable; as
/// Driver::check().
ExportedAllocation export_allocation(const Context& context, abi::Pointer pointer);

/// Waits for the stream. Null is the context's legacy default stream, as everywhere in CUDA.
/// Errors: Error(invalid_argument) for a stream that is being captured; as Driver::check().
void wait(const Context& context, abi::Stream stream);
/// Copies pieces of `bytes` from these offsets into one contiguous row, after the work that the stream was given, and
/// waits for it. Each side may be memory of any device or of the host. Errors: as wait().
void copy(const Context& context, abi::Stream stream, abi::Pointer to, abi::Pointer from, std::uint64_t bytes,
          std::span<const std::uint64_t> offsets);

}  // namespace weft::backend::cuda
