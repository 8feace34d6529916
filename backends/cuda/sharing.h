// Memory that CUDA and others have together: theirs as CUDA sees it, CUDA's as others import it, and copies between.
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
  /// Takes the descriptor (of the kind "opaque") over when it succeeds.
  /// \param bytes      of the allocation behind it
  /// \param mapped     of them, from the beginning, are mapped
  /// \param dedicated  to one buffer
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

/// What CUDA says of a pointer.
struct PointerInfo {
  int device = 0;
  bool on_device = false;  ///< the memory is a device's, not the host's
  bool elsewhere = false;  ///< it is of another context than the device's primary one, as far as CUDA tells
};
/// Nothing for memory that CUDA does not know. Errors: as Driver::check().
std::optional<PointerInfo> look_up(const Context& context, abi::Pointer pointer);

/// An allocation of CUDA's, for others.
struct ExportedAllocation {
  FileDescriptor fd;
  abi::Pointer base = 0;  ///< where it is mapped
  std::uint64_t bytes = 0;
};
/// The one that a pointer lies in.
/// Errors: Error(unsupported) for memory that was not allocated with cuMemCreate, or not to be exported; as
/// Driver::check().
ExportedAllocation export_allocation(const Context& context, abi::Pointer pointer);

/// Waits for the stream. Null is the context's legacy default stream, as everywhere in CUDA.
/// Errors: Error(invalid_argument) for a stream that is being captured; as Driver::check().
void wait(const Context& context, abi::Stream stream);
/// Copies pieces of `bytes` from these offsets to one behind the other, after what the stream has been given, and waits
/// for it. Each side may be of any device or the host's. Errors: as above.
void copy(const Context& context, abi::Stream stream, abi::Pointer to, abi::Pointer from, std::uint64_t bytes,
          std::span<const std::uint64_t> offsets);

}  // namespace weft::backend::cuda
