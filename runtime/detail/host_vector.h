// Vectors on the host that are as long as an array is. Internal.
#pragma once
#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

namespace weft::detail {

[[noreturn]] void refuse_host_vector(std::uint64_t count, std::uint64_t bytes);

/// Makes a vector of zeros.
/// Errors: Error(out_of_memory) with the number of bytes, where the C++ library's own exceptions say less.
template <class T>
std::vector<T> host_vector(std::uint64_t count) {
  try {
    return std::vector<T>(count);
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  refuse_host_vector(count, sizeof(T));
}

}  // namespace weft::detail
