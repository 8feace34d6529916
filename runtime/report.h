// The destination of kernels' output, and the amount of it that a stream holds.
#pragma once
#include <cstdint>
#include <string_view>

namespace weft {

/// Receives the lines that kernels print.
struct PrintSink {
  /// Called with one line at a time, without its newline. The call may come from any thread that waits for a stream,
  /// must not throw, and may not wait for a device itself.
  void (*write)(void* context, std::string_view line) = nullptr;
  void* context = nullptr;
};

/// Replaces the sink of the process and returns the previous one. A sink without a function, as at the start, is the
/// standard output. Thread-safe.
PrintSink set_print_sink(PrintSink sink);

/// Sets the bytes of device memory in which each stream gathers lines of print() between two waits: at least 4 KiB, at
/// most 1 GiB. The start value is WEFT_REPORT_BYTES, else 1 MiB. A stream takes up the size when it next holds no
/// lines, and has this memory only after the first launch of a kernel that reports. Thread-safe.
void set_report_bytes(std::uint64_t bytes);

}  // namespace weft
