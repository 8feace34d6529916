// The elements of another library's tensor, as an array sees them. Internal to the runtime.
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
  std::byte* data = nullptr;  ///< null where there are none
  int cuda_device = -1;       ///< whose memory it is; the host's with -1
  std::array<std::int64_t, 4> shape{}, stride{};
  std::int64_t count = 1;
  std::uint64_t extent = 0;  ///< bytes from the first element to the last one's end
};

/// Where bytes lie that are to be copied in a row.
struct Runs {
  std::uint64_t bytes = 0;             ///< of each
  std::vector<std::uint64_t> offsets;  ///< from the first element
  bool gathers = false;  ///< what is copied is the elements alone, in row-major order; else all their extent
};
/// How to copy elements, of which there are some, by few copies that take little more memory than they: besides the
/// elements themselves at most 16 KiB for each run of elements that lie in a row.
Runs runs_of(const Elements& elements, int ndim, std::uint32_t element_bytes);

/// Errors: Error(invalid_argument, unsupported) naming what from_dlpack() does not take, whatever the device.
Elements elements_of(const DLTensor& tensor, const DlpackElement& element, int ndim, std::uint32_t element_bytes);

}  // namespace weft::detail
