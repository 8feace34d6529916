// Decides which launches become chains, and records these.
#include "chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "../../../spirv/emit.h"
#include "../device.h"
#include "commands.h"
#include "hazards.h"

namespace weft::backend::vulkan {

namespace {

constexpr std::size_t kMostKernels = 16;  ///< in a chain, whose shader contains all of them
constexpr std::size_t kLongestRound = 8;  ///< longer rounds are not unrolled
constexpr int kMostBeside = 4;            ///< launches in a row that do not wait for each other

std::uint32_t threads_of(const Operation& o) {
  std::uint32_t count;
  std::memcpy(&count, o.args.data(), 4);
  return count;
}

bool is_small_launch(const Operation& o, std::uint32_t max_threads) {
  return o.kind == Operation::Kind::launch && !o.grid.at && !o.always && o.grid.x * o.grid.y * o.grid.z == 1 &&
         static_cast<const VulkanProgram&>(*o.program).step() && threads_of(o) <= max_threads;
}

/// The longest chain that begins at `first`.
Chain longest(std::span<const Operation> operations, std::size_t first, std::uint32_t max_threads) {
  Chain chain;
  chain.first = chain.last = first;
  Hazards hazards;
  int beside = 0;
  std::uint32_t threads = 32;
  for (; chain.last < operations.size() && chain.which.size() < kMostSteps; ++chain.last) {
    const Operation& o = operations[chain.last];
    if (!is_small_launch(o, max_threads)) break;
    beside = hazards.add(o.ranges) == Barrier::none ? beside + 1 : 1;
    if (beside > kMostBeside) break;
    const auto* const program = static_cast<const VulkanProgram*>(o.program.get());
    auto known = std::ranges::find(chain.kernels, program);
    if (known == chain.kernels.end()) {
      if (chain.kernels.size() == kMostKernels) break;
      known = chain.kernels.insert(known, program);
    }
    chain.which.push_back(std::uint32_t(known - chain.kernels.begin()));
    threads = std::max(threads, threads_of(o));
  }
  chain.threads = std::min(std::bit_ceil(threads), max_threads);
  return chain;
}

// If the kernels repeat in one order, each place of a round is a kernel; otherwise one place has all of them.
void find_rounds(Chain& chain) {
  const std::vector<std::uint32_t>& which = chain.which;
  for (std::size_t period = 1; period <= kLongestRound; ++period) {
    if (!std::equal(which.begin() + std::ptrdiff_t(period), which.end(), which.begin())) continue;
    const std::size_t steps = which.size() / period * period;
    chain.last = chain.first + steps;
    chain.which.resize(steps);
    for (std::size_t k = 0; k < period; ++k) chain.places.push_back({which[k]});
    return;
  }
  std::vector<std::uint32_t>& all = chain.places.emplace_back();
  for (std::uint32_t k = 0; k < chain.kernels.size(); ++k) all.push_back(k);
}

}  // namespace

std::vector<Chain> find_chains(std::span<const Operation> operations, std::uint32_t max_threads) {
  std::vector<Chain> found;
  for (std::size_t k = 0; k < operations.size();) {
    Chain chain = longest(operations, k, max_threads);
    if (chain.which.size() >= kLeastSteps) {
      find_rounds(chain);
      k = chain.last;
      found.push_back(std::move(chain));
    } else {
      k = std::max(chain.last, k + 1);
    }
  }
  return found;
}

std::shared_ptr<VulkanProgram> Chains::program(const Chain& chain) {
  std::string key = std::to_string(chain.threads);
  for (const VulkanProgram* kernel : chain.kernels) key += fmt::format(":{}", to_hex(kernel->hash()));
  for (const auto& place : chain.places) key += place.size() == 1 ? fmt::format(":{}", place[0]) : ":any";
  std::lock_guard lock(mutex_);
  if (auto known = programs_[key].lock()) return known;
  std::erase_if(programs_, [&](const auto& entry) { return entry.second.expired() && entry.first != key; });
  std::vector<const ir::Module*> kernels;
  for (const VulkanProgram* kernel : chain.kernels) kernels.push_back(kernel->step());
  const std::vector<std::uint32_t> words =
      spirv::emit_chain(kernels, chain.places, chain.threads, device_.adapter().target);
  auto made = std::make_shared<VulkanProgram>(device_, "chain", device_.pipelines().create(words, "chain", false), 12);
  programs_[key] = made;
  ++made_;
  return made;
}

std::uint64_t Chains::made() const {
  std::lock_guard lock(mutex_);
  return made_;
}

std::vector<std::uint64_t> record(VulkanDevice& device, Commands& commands, const Chain& chain,
                                  const VulkanProgram& program, std::span<const Operation> operations,
                                  std::vector<Allocation>& memory) {
  const auto launches = operations.subspan(chain.first, chain.last - chain.first);
  constexpr std::size_t kStepBytes = 16;
  std::size_t bytes = launches.size() * kStepBytes;
  for (const Operation& o : launches) bytes += (o.args.size() + 15) / 16 * 16;
  const Allocation written = device.allocate(bytes, MemoryKind::upload);
  memory.push_back(written);
  Allocation read = written;
  if (!device.info().host_visible) {  // threads that read each step from host memory would wait for the bus
    read = device.allocate(bytes, MemoryKind::device);
    memory.push_back(read);
  }
  std::size_t at = launches.size() * kStepBytes;
  std::vector<MemoryRange> ranges;
  std::vector<std::uint64_t> arguments;
  for (std::size_t k = 0; k < launches.size(); ++k) {
    const Operation& o = launches[k];
    arguments.push_back(written.address + at);
    const std::uint64_t address = read.address + at;
    std::byte* const step = written.host + k * kStepBytes;
    const std::uint32_t rest[] = {chain.which[k], 0};
    std::memcpy(step, &address, 8);
    std::memcpy(step + 8, rest, 8);
    std::memcpy(written.host + at, o.args.data(), o.args.size());
    at += (o.args.size() + 15) / 16 * 16;
    for (const MemoryRange& range : o.ranges) {
      if (ranges.size() > std::size_t(Hazards::kMost)) break;  // too many ranges to compare: all memory
      const auto known = std::ranges::find_if(
          ranges, [&](const MemoryRange& r) { return r.address == range.address && r.bytes == range.bytes; });
      if (known == ranges.end()) {
        ranges.push_back(range);
      } else {
        known->access = known->access | range.access;
        known->appends = known->appends && range.appends;
      }
    }
  }
  if (read.address != written.address) {
    commands.copy(read.address, written.address, bytes);
    commands.barrier();  // also if the caller's launches have none: steps are addresses
  }
  ranges.push_back({read.address, bytes, ir::Access::read});
  if (ranges.size() > std::size_t(Hazards::kMost)) ranges = {{0, ~0ull, ir::kChanges | ir::Access::read}};
  commands.order_launch(ranges);
  struct {
    std::uint64_t steps;
    std::uint32_t rounds;
  } const pushed{read.address, std::uint32_t(launches.size() / chain.places.size())};
  commands.dispatch(program, {reinterpret_cast<const std::byte*>(&pushed), 12}, 0, {});
  commands.done();
  return arguments;
}

}  // namespace weft::backend::vulkan
