// Kernels of the native device's tests: C++ functions with the interface of compiled ones.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

#include "../../../backends/native/program.h"
#include "../../../frontend/support/error.h"

namespace weft::backend::native::test {

/// A kernel whose argument block is {u32 count, u64 x, i32 n}, and {u32 extent, u32, u32} for each dimension of
/// tid<N>() but the first.
struct StandIn {
  static constexpr std::uint32_t kX = 8, kN = 16, kExtents = 20;

  llvm::Entry entry = nullptr;
  llvm::Split split = llvm::Split::threads;
  std::uint32_t block = 256;
  std::uint32_t rank = 1;
  std::uint64_t arena_bytes = 0;
  llvm::Entry by_threads = nullptr;

  ir::Interface interface() const {
    ir::Interface made;
    made.name = "stand-in";
    made.loc = {"stand_in.cpp", 12};
    made.block = block;
    made.tid_rank = rank;
    made.tid_offset = kExtents;
    made.args_bytes = kExtents + 12 * (rank - 1);
    return made;
  }
  std::shared_ptr<DeviceProgram> program() const;
};

/// A program of one C++ function, or of two: the second one is split by threads.
class StandInProgram final : public DeviceProgram {
 public:
  StandInProgram(const ir::Interface& kernel, llvm::Entry entry, llvm::Split split = llvm::Split::threads,
                 std::uint64_t arena_bytes = 0, llvm::Entry by_threads = nullptr)
      : DeviceProgram(kernel),
        body_(entry, split, arena_bytes),
        by_threads_(by_threads, llvm::Split::threads, arena_bytes) {}
  const Body& body() const override { return body_; }
  const Body& by_threads() const override { return by_threads_.entry ? by_threads_ : body_; }

 private:
  const Body body_, by_threads_;
};

inline std::shared_ptr<DeviceProgram> StandIn::program() const {
  return std::make_shared<StandInProgram>(interface(), entry, split, arena_bytes, by_threads);
}

/// An argument block.
inline std::vector<std::byte> arguments(std::uint32_t count, const void* x, std::int32_t n = 0,
                                        std::initializer_list<std::uint32_t> extents = {}) {
  std::vector<std::byte> block(StandIn::kExtents + 12 * extents.size());
  const auto address = reinterpret_cast<std::uint64_t>(x);
  std::memcpy(block.data(), &count, 4);
  std::memcpy(block.data() + StandIn::kX, &address, 8);
  std::memcpy(block.data() + StandIn::kN, &n, 4);
  std::uint32_t at = StandIn::kExtents;
  for (const std::uint32_t extent : extents) {
    std::memcpy(block.data() + at, &extent, 4);
    at += 12;
  }
  return block;
}

template <class T>
T argument(const std::byte* args, std::uint32_t at) {
  T value;
  std::memcpy(&value, args + at, sizeof value);
  return value;
}
inline std::int32_t* x_of(const std::byte* args) {
  return reinterpret_cast<std::int32_t*>(argument<std::uint64_t>(args, StandIn::kX));
}

/// x[k] += 1 for each unit k, whatever units are.
inline void count_units(const std::byte* args, const llvm::Worker*, std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) ++x_of(args)[k];
}

/// Compiles each kernel to x[k] += 1 by thread, and knows that it was asked.
class StandInSource : public ProgramSource {
 public:
  std::shared_ptr<DeviceProgram> program(const ir::Module& module, detail::Hash128) override {
    ++emitted_;
    return std::make_shared<StandInProgram>(module, count_units);
  }
  CompileStats stats() const override { return {emitted_, 0, 0}; }

 private:
  std::atomic<std::uint64_t> emitted_ = 0;
};

}  // namespace weft::backend::native::test
