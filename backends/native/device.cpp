// What the native device makes and keeps, and what it refuses in the child of a fork and at the end of the process.
#include "device.h"

#include <fmt/format.h>

#include <utility>

#include "../../frontend/support/error.h"
#include "../operations.h"
#include "stream.h"

namespace weft::backend::native {

namespace {
std::atomic<bool> was_left_behind = false;
}

bool left_behind_by_fork() { return was_left_behind.load(); }

NativeDevice::NativeDevice(Options options, std::unique_ptr<ProgramSource> programs)
    : info_(std::move(options.info)),
      fused_(options.fused),
      memory_(info_.name, host_memory_limit(), HostMemory::Pages::large),
      queue_{*this, memory_},
      launcher_(options.threads, info_.subgroup_size, memory_),
      programs_(std::move(programs)) {
  info_.memory_bytes = host_memory_limit();
  info_.max_allocation = host_memory_limit();
  info_.host_visible = true;
  info_.wraps_host = true;
  info_.wraps_bytes = true;
  info_.software = true;
  info_.int64 = true;
  info_.max_block = 1024;
  info_.max_shared = 65536;
}

bool NativeDevice::leave_behind() noexcept {
  left_behind_.store(true);
  was_left_behind.store(true);
  return true;
}

void NativeDevice::process_ends() noexcept {
  if (ends_.load(std::memory_order_relaxed))
    return;  // the end is announced twice: by the thread's objects and by atexit()
  ending_thread_ = std::this_thread::get_id();
  ends_.store(true, std::memory_order_release);
}

void NativeDevice::refuse_left_behind() const {
  throw Error(ErrorKind::device_lost,
              fmt::format("{} ({}) was opened before this process was forked, and its threads have stayed with its "
                          "parent: fork before the first device is opened, or start another program in the child",
                          info_.name, info_.adapter));
}

// Other threads may still be at work, and never see the end.
void NativeDevice::refuse_at_end() const {
  if (std::this_thread::get_id() == ending_thread_)
    throw Error(ErrorKind::device_lost,
                fmt::format("a kernel is launched on {} ({}) after main() has returned or exit() was called: the "
                            "compiler may be gone. Arrays can still be read",
                            info_.name, info_.adapter));
}

Allocation NativeDevice::allocate(std::size_t bytes, MemoryKind) {
  check_alive();
  return memory_.allocate(bytes);
}

void NativeDevice::free(const Allocation& allocation) {
  if (!left_behind_.load()) memory_.free(allocation);
}

Allocation NativeDevice::wrap(std::byte* memory, std::size_t bytes) {
  check_alive();
  return memory_.wrap(memory, bytes);
}

std::shared_ptr<Program> NativeDevice::compile(const ir::Module& module, detail::Hash128 hash) {
  check_runs();
  check_groups(module, info_);
  return programs_->program(module, hash);
}

std::unique_ptr<Graph> NativeDevice::create_graph(std::unique_ptr<Operations> operations) {
  check_runs();
  return std::make_unique<ListGraph>(std::move(operations));
}

std::unique_ptr<Stream> NativeDevice::create_stream() {
  check_alive();
  return std::make_unique<NativeStream>(*this, queue_, launcher_);
}

std::unique_ptr<Timestamps> NativeDevice::create_timestamps(std::uint32_t places) {
  check_alive();
  return std::make_unique<HostTimestamps>(places);
}

}  // namespace weft::backend::native
