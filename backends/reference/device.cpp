// The reference device and its stream, which interprets launches.
#include <algorithm>
#include <atomic>
#include <bit>

#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"
#include "../host/memory.h"
#include "../host/stream.h"
#include "../operations.h"
#include "interpreter.h"
#include "plan.h"
#include "reference.h"

namespace weft::backend {

namespace {

class ReferenceStream final : public HostStream {
 public:
  using HostStream::HostStream;

 private:
  void run(Program& program, const Grid& grid, std::span<const std::byte> args) override {
    const auto* plan = dynamic_cast<const Plan*>(&program);
    if (!plan) invalid("a program of another device was launched on a reference device");
    const platform::FloatMode mode;
    interpret(*plan, grid, args, memory(), scratch_);
  }

  Scratch scratch_;
};

struct Name {
  std::string_view name;
  FusedTypes fused;
};
constexpr Name kNames[] = {{"reference", {}},
                           {"reference:split", {false, false}},
                           {"reference:split32", {false, true}},
                           {"reference:split64", {true, false}}};

class ReferenceDevice : public Device {
 public:
  explicit ReferenceDevice(FusedTypes fused)
      : fused_(fused), memory_("reference", host_memory_limit()), queue_{*this, memory_} {
    info_.name = std::ranges::find(kNames, fused, &Name::fused)->name;
    info_.adapter = "interpreter on the host";
    info_.driver = "weft";
    info_.cache_key = info_.name;
    info_.memory_bytes = host_memory_limit();
    info_.max_allocation = host_memory_limit();
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
  FusedTypes fused() override { return fused_; }
  Allocation allocate(std::size_t bytes, MemoryKind) override { return memory_.allocate(bytes); }
  void free(const Allocation& allocation) override { memory_.free(allocation); }
  Allocation wrap(std::byte* memory, std::size_t bytes) override { return memory_.wrap(memory, bytes); }

  std::shared_ptr<Program> compile(const ir::Module& module, detail::Hash128) override {
    check_groups(module, info_);
    auto plan = std::make_shared<Plan>(module, info_.subgroup_size, fused_);
    ++emitted_;
    return plan;
  }

  std::unique_ptr<Graph> create_graph(std::unique_ptr<Operations> operations) override {
    return std::make_unique<ListGraph>(std::move(operations));
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<ReferenceStream>(queue_); }
  std::unique_ptr<Timestamps> create_timestamps(std::uint32_t places) override {
    return std::make_unique<HostTimestamps>(places);
  }
  CompileStats stats() const override { return {emitted_, 0, 0}; }

 private:
  DeviceInfo info_;
  const FusedTypes fused_;
  HostMemory memory_;
  HostQueue queue_;
  std::atomic<std::uint64_t> emitted_ = 0;
};

}  // namespace

std::unique_ptr<Device> open_reference(FusedTypes fused) { return std::make_unique<ReferenceDevice>(fused); }

std::optional<FusedTypes> fused_by_reference(std::string_view name) {
  const Name* const known = std::ranges::find(kNames, name, &Name::name);
  return known == std::end(kNames) ? std::nullopt : std::optional(known->fused);
}

}  // namespace weft::backend
