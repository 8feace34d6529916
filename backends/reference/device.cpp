// The reference device and its stream: every operation runs when it is recorded.
#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"
#include "../operations.h"
#include "interpreter.h"
#include "memory.h"
#include "plan.h"
#include "reference.h"

namespace weft::backend {

namespace {

// The host overcommits: memory that it grants may not exist. The limit turns a mistaken size into an error.
constexpr std::uint64_t kMemoryLimit = sizeof(void*) == 8 ? 64ull << 30 : std::numeric_limits<std::uint32_t>::max() / 2;

// Moments of the host's clock. Only the operation that is measured into a pair writes it.
class HostTimestamps : public Timestamps {
 public:
  explicit HostTimestamps(std::uint32_t places) : moments_(places, -1) {}
  std::optional<std::array<std::int64_t, 2>> read(std::uint32_t first) override {
    if (moments_.at(first) < 0 || moments_.at(first + 1) < 0) return {};
    return std::array{moments_[first], moments_[first + 1]};
  }
  void write(std::uint32_t place) {
    moments_.at(place) = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

 private:
  std::vector<std::int64_t> moments_;
};

class HostStream : public Stream {
 public:
  HostStream(HostMemory& memory, std::recursive_mutex& queue) : memory_(memory), queue_(queue) {}

  Ticket launch(Program& program, Grid grid, std::span<const std::byte> args, std::span<const MemoryRange>) override {
    const auto* plan = dynamic_cast<const Plan*>(&program);
    if (!plan) invalid("a program of another device was launched on \"reference\"");
    const std::lock_guard turn(queue_);
    const HostMemory::Use use(memory_);
    if (grid.at) {
      std::uint32_t words[3];
      std::memcpy(words, device_bytes(grid.at, sizeof words, "launch"), sizeof words);
      grid = {words[0], words[1], words[2]};
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return last_;
    const Measured measured(*this);
    interpret(*plan, grid, args, memory_, scratch_);
    return ++last_;
  }

  Ticket copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) override {
    const std::lock_guard turn(queue_);
    const Measured measured(*this);
    const HostMemory::Use use(memory_);
    if (bytes) std::memmove(device_bytes(to, bytes, "copy"), device_bytes(from, bytes, "copy"), bytes);
    return ++last_;
  }

  Ticket fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) override {
    if (bytes % 4 || to % 4) {
      invalid("fill: {} bytes at address {:#x}: both must be multiples of 4", bytes, to);
    }
    const std::lock_guard turn(queue_);
    const Measured measured(*this);
    const HostMemory::Use use(memory_);
    if (bytes) {
      auto* words = device_bytes(to, bytes, "fill");
      for (std::size_t at = 0; at < bytes; at += 4) std::memcpy(words + at, &pattern, 4);
    }
    return ++last_;
  }

  Ticket upload(std::uint64_t to, const void* from, std::size_t bytes) override {
    const std::lock_guard turn(queue_);
    const HostMemory::Use use(memory_);
    if (bytes) std::memcpy(device_bytes(to, bytes, "upload"), from, bytes);
    return ++last_;
  }

  void download(void* to, std::uint64_t from, std::size_t bytes, Ticket) override {
    const std::lock_guard turn(queue_);
    const HostMemory::Use use(memory_);
    if (bytes) std::memcpy(to, device_bytes(from, bytes, "download"), bytes);
  }

  Ticket replay(Graph& graph) override {
    const std::lock_guard turn(queue_);
    const Measured measured(*this);  // the graph is measured as a whole
    run(graph.operations(), *this);
    return last_;
  }

  bool measure(Timestamps* into, std::uint32_t first) override {
    measure_first_ = first;
    return std::exchange(measure_, static_cast<HostTimestamps*>(into)) != nullptr;
  }
  void start_at_once(bool) override {}

  Ticket submit() override { return last_; }
  void start(Ticket) override {}
  bool done(Ticket ticket) override { return ticket <= last_; }
  void wait(Ticket) override {}
  void synchronize() override {}
  void track_hazards(bool) override {}
  void barrier_always(bool) override {}

 private:
  // Lives around an operation. The outermost one measures, so that a graph is not measured by its parts.
  class Measured {
   public:
    explicit Measured(HostStream& stream)
        : into_(std::exchange(stream.measure_, nullptr)), first_(stream.measure_first_) {
      if (into_) into_->write(first_);
    }
    Measured(const Measured&) = delete;
    ~Measured() {
      if (into_) into_->write(first_ + 1);
    }

   private:
    HostTimestamps* into_;
    std::uint32_t first_;
  };

  std::byte* device_bytes(std::uint64_t address, std::size_t bytes, const char* operation) const {
    if (!memory_.find(address).holds(address, bytes)) {
      invalid("{}: {} bytes at address {:#x} are not in device memory", operation, bytes, address);
    }
    return reinterpret_cast<std::byte*>(address);
  }

  HostMemory& memory_;
  std::recursive_mutex& queue_;  ///< the device's: streams share one, as on a GPU, and operations run one at a time
  Scratch scratch_;
  Ticket last_ = 0;
  HostTimestamps* measure_ = nullptr;
  std::uint32_t measure_first_ = 0;
};

class ReferenceDevice : public Device {
 public:
  ReferenceDevice() : memory_(kMemoryLimit) {
    info_.name = "reference";
    info_.adapter = "interpreter on the host";
    info_.driver = "weft";
    info_.cache_key = "reference";
    info_.memory_bytes = kMemoryLimit;
    info_.max_allocation = kMemoryLimit;
    info_.host_visible = true;
    info_.int64 = true;
    info_.wraps_host = true;
    info_.software = true;
    info_.max_block = 1024;
    info_.max_shared = 65536;
    const std::uint64_t lanes = platform::environment_number("WEFT_SUBGROUP_SIZE", 32);
    if (lanes < 4 || lanes > 128 || !std::has_single_bit(lanes))
      invalid("WEFT_SUBGROUP_SIZE is {}; a subgroup has 4, 8, 16, 32, 64 or 128 threads", lanes);
    info_.subgroup_size = static_cast<std::uint32_t>(lanes);
  }

  const DeviceInfo& info() const override { return info_; }
  Allocation allocate(std::size_t bytes, MemoryKind) override { return memory_.allocate(bytes); }
  void free(const Allocation& allocation) override { memory_.free(allocation); }
  Allocation wrap(std::byte* memory, std::size_t bytes) override { return memory_.wrap(memory, bytes); }

  std::shared_ptr<Program> compile(const ir::Module& module, ir::Hash) override {
    check_groups(module, info_);
    auto plan = std::make_shared<Plan>(module, info_.subgroup_size);
    ++emitted_;
    return plan;
  }

  std::unique_ptr<Graph> create_graph(std::unique_ptr<Operations> operations) override {
    return std::make_unique<ListGraph>(std::move(operations));
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<HostStream>(memory_, queue_); }
  std::unique_ptr<Timestamps> create_timestamps(std::uint32_t places) override {
    return std::make_unique<HostTimestamps>(places);
  }
  CompileStats stats() const override { return {emitted_, 0, 0}; }

 private:
  DeviceInfo info_;
  HostMemory memory_;
  std::recursive_mutex queue_;
  std::atomic<std::uint64_t> emitted_ = 0;
};

}  // namespace

std::unique_ptr<Device> open_reference() { return std::make_unique<ReferenceDevice>(); }

}  // namespace weft::backend
