// The settings that tests give the stand-in for CUDA's driver, and its counts.
#pragma once
#include <cstddef>

struct CUstream_st;

/// The state of the stand-in. Its memory is mapped files that lavapipe has exported or takes, so that a pointer of
/// "CUDA's" and an array of weft's on lavapipe are the same bytes. Calls do their work at once, unless `late` is set.
struct CudaStandIn {
  // Settings. Devices are asked for once, when the driver is loaded.
  int devices = 0;
  unsigned char uuids[4][16] = {};
  std::size_t before_memory = 0;  ///< bytes of the file before the memory; learned
  const char* failing = nullptr;  ///< the function that returns `failure`
  int failure = 999;              ///< CUDA_ERROR_UNKNOWN
  bool late = false;              ///< copies run when somebody waits for them
  /// A stream that waits for the default stream is being captured, globally. Calls that break the capture are counted.
  bool capturing = false;
  bool in_other_context = false;  ///< cuMemAlloc is called in a context of its own
  /// Called at the beginning of each call, without a lock.
  void (*on_call)(const char* name) = nullptr;

  // Objects that exist
  int contexts = 0;   ///< times that primary contexts are held
  int externals = 0;  ///< imported, not destroyed
  int mappings = 0;   ///< buffers that were mapped from these
  int handles = 0;    ///< from cuMemCreate and cuMemRetainAllocationHandle, not released

  // Calls so far
  int context_waits = 0;
  int stream_waits = 0;
  int copies = 0;
  CUstream_st* last_stream = nullptr;  ///< the last stream that was waited for
  CUstream_st* last_copied_in = nullptr;
  std::size_t copied = 0;  ///< bytes
  int captures_broken = 0;
  /// Calls without a context, or in another context than that of their memory; memory that is freed twice or in the
  /// wrong order; imports whose size or flags are not those of the memory (all of it is dedicated to a buffer).
  int misuses = 0;
  const char* last_misuse = nullptr;
};

extern "C" {
using CudaStandInState = CudaStandIn*();
/// Learns the header of exported files from a descriptor of the Vulkan driver, so that cuMemCreate can make memory that
/// the driver takes.
using CudaStandInLearn = bool(int fd);
}
