// Where the output of kernels goes, and how much of it a stream holds.
#pragma once
#include <cstdint>
#include <string_view>

namespace weft {

/// Receives the lines that kernels print.
struct PrintSink {
  /// Called with one line, without its newline, at a time. It may come from any thread that waits for a stream, must
  /// not throw, and may not wait for a device itself.
  void (*write)(void* context, std::string_view line) = nullptr;
  void* context = nullptr;
};

/// Replaces the sink of the process and returns the one before. Without a function: the standard output, which is where
/// lines go at the start. Thread-safe.
PrintSink set_print_sink(PrintSink sink);

/// Bytes of device memory in which each stream gathers lines of print() between two waits; at least 4 KiB, at most
/// 1 GiB. At the start WEFT_REPORT_BYTES, else 1 MiB. Taken up by a stream when it next holds no lines; a stream has
/// this memory only once a kernel that reports was launched on it. Thread-safe.
void set_report_bytes(std::uint64_t bytes);

}  // namespace weft
