// What tests tell the stand-in for CUDA's driver, and what it counts.
#pragma once
#include <cstddef>

struct CUstream_st;

/// Memory is mapped files that lavapipe has exported or takes, so that a pointer of "CUDA's" and an array of weft's on
/// lavapipe are the same bytes. Nothing runs later than it is called, unless `late` says so.
struct CudaStandIn {
  // Told. Devices are asked for once, by who loads the driver.
  int devices = 0;
  unsigned char uuids[4][16] = {};
  std::size_t before_memory = 0;  ///< bytes of the file before the memory, learned
  const char* failing = nullptr;  ///< the function that gives `failure`
  int failure = 999;              ///< CUDA_ERROR_UNKNOWN
  bool late = false;              ///< copies run when somebody waits for them
  /// A stream that waits for the default stream is being captured, globally. What breaks the capture is counted.
  bool capturing = false;
  bool in_other_context = false;  ///< cuMemAlloc is called in a context of its own
  /// Called at the begin of each call, without a lock.
  void (*on_call)(const char* name) = nullptr;

  // What there is of each kind
  int contexts = 0;   ///< times that primary contexts are held
  int externals = 0;  ///< imported, not destroyed
  int mappings = 0;   ///< of those
  int handles = 0;    ///< of cuMemCreate and cuMemRetainAllocationHandle, not released

  // What there was
  int context_waits = 0;
  int stream_waits = 0;
  int copies = 0;
  CUstream_st* last_stream = nullptr;  ///< waited for
  CUstream_st* last_copied_in = nullptr;
  std::size_t copied = 0;  ///< bytes
  int captures_broken = 0;
  /// Calls without a context or in another than that of what they work on, what is freed twice or in the wrong order,
  /// imports whose size or flags are not those of the memory (which is all dedicated to a buffer).
  int misuses = 0;
  const char* last_misuse = nullptr;
};

extern "C" {
using CudaStandInState = CudaStandIn*();
/// The driver of the memory behind a descriptor made it: cuMemCreate makes such for it to take.
using CudaStandInLearn = bool(int fd);
}
