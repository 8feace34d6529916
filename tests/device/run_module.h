// Runs a module in whatever form it has, through the backend itself, as launch() runs traced kernels.
#pragma once
#include <span>

#include "../../backends/backend.h"
#include "device_test.h"

namespace weft::test {

/// Runs a kernel whose parameters are contiguous arrays, and waits.
inline void run_module(const Device& device, const ir::Module& module, int threads,
                       std::span<const ArrayBase* const> arrays) {
  std::shared_ptr<backend::Program> program = device.native().compile(module, ir::hash(module));
  std::vector<std::byte> args(module.args_bytes);
  std::memcpy(args.data(), &threads, 4);
  std::vector<backend::MemoryRange> ranges;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const std::uint64_t address = arrays[k]->address();
    std::byte* at = args.data() + module.params[k].offset;
    std::memcpy(at, &address, 8);
    for (int d = 0; d < arrays[k]->ndim(); ++d) {
      const std::int32_t extent = std::int32_t(arrays[k]->shape(d));
      std::memcpy(at + 8 + 4 * d, &extent, 4);
    }
    ranges.push_back({address, arrays[k]->extent_bytes(), ir::Access::read | ir::Access::write});
  }
  backend::Stream& stream = device.stream().native();
  const std::uint32_t groups = (std::uint32_t(threads) + module.block - 1) / module.block;
  stream.wait(stream.launch(*program, {groups, 1, 1}, args, ranges));
}

}  // namespace weft::test
