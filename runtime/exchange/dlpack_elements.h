// The elements of another library's tensor in an array's terms. Internal to the runtime.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../dlpack.h"
#include "dlpack_abi.h"

namespace weft::detail {

/// A tensor's elements as an array's: checked, in bytes.
struct Elements {
  std::byte* data = nullptr;  ///< null if there are none
  int cuda_device = -1;       ///< owner of the memory; -1: the host
  std::array<std::int64_t, 4> shape{}, stride{};
  std::int64_t count = 1;
  std::uint64_t extent = 0;  ///< bytes from the first element to the last one's end
};

/// Runs of bytes to be copied into one row.
struct Runs {
  std::uint64_t bytes = 0;             ///< of each run
  std::vector<std::uint64_t> offsets;  ///< from the first element
  bool gathers = false;  ///< only the elements are copied, in row-major order; otherwise their whole extent
};
/// Plans how to copy elements, which must not be empty, in few copies and little memory: besides the elements at most
/// 16 KiB per run of contiguous elements.
Runs runs_of(const Elements& elements, int ndim, std::uint32_t element_bytes);

/// The checked elements of a tensor.
/// Errors: Error(invalid_argument, unsupported) naming what from_dlpack() does not accept, whatever the device.
Elements elements_of(const DLTensor& tensor, const DlpackElement& element, int ndim, std::uint32_t element_bytes);

}  // namespace weft::detail
