// Launches, fills and copies on the device, ordered by their hazards.
#include "stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../spirv/emit.h"
#include "../commands/graph.h"
#include "../commands/ray_structure.h"
#include "../commands/timestamps.h"
#include "../device.h"

namespace weft::backend::vulkan {

using ir::Access;

static_assert(3 * VulkanStream::kMost < Kept::kMost);

VulkanStream::VulkanStream(VulkanDevice& device)
    : DeviceObject(device),
      vk_(device.vk()),
      timeline_(std::make_shared<Timeline>()),
      commands_(device),
      next_limit_(device.most_when_idle()) {
  try {
    create();
  } catch (...) {
    destroy(recorded_);
    throw;
  }
  device_.retirement().add(timeline_);
}

void VulkanStream::create() {
  const Point point = device_.semaphores().take();
  timeline_->semaphore = point.semaphore;
  timeline_->recorded = timeline_->submitted = timeline_->completed = recorded_ = point.value;
  // A stream in ordinary use has these from the start, so recording makes none.
  for (int k = 0; k < kBatches; ++k) spare_.push_back(make_batch());
}

std::unique_ptr<VulkanStream::Batch> VulkanStream::make_batch() {
  auto batch = std::make_unique<Batch>();
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool.queueFamilyIndex = device_.queue_family();
  device_.check_made(vk_.vkCreateCommandPool(device_.handle(), &pool, batch->memory.callbacks(), &batch->pool),
                     batch->pool, "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = batch->pool;
  allocate.commandBufferCount = 1;
  const VkResult made = vk_.vkAllocateCommandBuffers(device_.handle(), &allocate, &batch->commands);
  if (made != VK_SUCCESS || !batch->commands) end(*batch);
  device_.check_made(made, batch->commands, "vkAllocateCommandBuffers");
  return batch;
}

void VulkanStream::end(Batch& batch) {
  vk_.vkDestroyCommandPool(device_.handle(), batch.pool, batch.memory.callbacks());
}

// \param ended  the value that the semaphore has reached
void VulkanStream::destroy(Ticket ended) {
  if (current_) end(*current_);
  for (const auto& batch : in_flight_) end(*batch);
  for (const auto& batch : spare_) end(*batch);
  current_.reset();
  in_flight_.clear();
  spare_.clear();
  vk_.vkDestroyCommandPool(device_.handle(), download_pool_, nullptr);
  device_.semaphores().give({download_semaphore_, download_value_});
  device_.semaphores().give({timeline_->semaphore, ended});
}

VulkanStream::~VulkanStream() { abandon(); }

void VulkanStream::abandon() {
  if (device_.detached()) return;
  if (!timeline_->semaphore) return;
  try {
    if (!device_.lost()) flush(Urgency::now);
  } catch (const std::exception&) {
    // The device is lost, and the work with it.
  }
  if (!in_flight_.empty()) device_.submitter().finish(in_flight_.back()->work.place);
  Ticket submitted = timeline_->completed.load();
  for (const auto& batch : in_flight_)
    if (!batch->work.failed()) submitted = std::max(submitted, batch->last());
  // On a device that was lost while it ran, signals of others may never come.
  const std::uint64_t patience = device_.lost() ? 1'000'000'000 : ~0ull;
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &timeline_->semaphore;
  wait.pValues = &submitted;
  vk_.vkWaitSemaphores(device_.handle(), &wait, patience);
  device_.retirement().remove(timeline_);
  device_.memory().free(ring_.handle);
  destroy(submitted);
  timeline_->semaphore = VK_NULL_HANDLE;
}

// Starts a batch, with a barrier against all earlier work of the queue, of this stream and of others.
void VulkanStream::begin() {
  free_batch();
  device_.check(vk_.vkResetCommandPool(device_.handle(), current_->pool, 0), "vkResetCommandPool");
  commands_.begin(current_->commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  count_ = 0;
  if (waited_ && in_flight_.empty()) next_limit_ = device_.most_when_idle();
  waited_ = false;
  limit_ = next_limit_;
}

// Ensures that there is a batch to use next.
void VulkanStream::free_batch() {
  if (!in_flight_.empty()) retire(poll());
  while (in_flight_.size() >= kBatches && !held_up(*in_flight_.front())) wait_for_oldest();
  if (current_) return;
  if (spare_.empty()) {
    current_ = make_batch();
  } else {
    current_ = std::move(spare_.back());
    spare_.pop_back();
  }
}

// Whether the batch may need a signal from others before it runs.
bool VulkanStream::held_up(const Batch& batch) { return device_.waits().any_before(batch.work.place); }

bool VulkanStream::held_up(Ticket ticket) {
  const auto at = batch_of(ticket);
  return at != in_flight_.end() && held_up(**at);
}

void VulkanStream::wait_for_oldest() {
  const Ticket oldest = in_flight_.front()->last();
  start_now(oldest);
  device_.wait_for(timeline_->semaphore, oldest);
  retire(oldest);
}

// Opens a batch if there is none.
Commands& VulkanStream::open() {
  if (!commands_.open()) begin();
  begin_measured();
  return commands_;
}

bool VulkanStream::measure(Timestamps* into, std::uint32_t first) {
  measure_first_ = first;
  return std::exchange(measure_, static_cast<VulkanTimestamps*>(into)) != nullptr;
}

void VulkanStream::begin_measured() {
  if (!measure_) return;
  commands_.barrier();
  measure_->write_first(commands_, measure_first_);
}

void VulkanStream::end_measured(std::uint64_t grid_at) {
  if (!measure_) return;
  std::exchange(measure_, nullptr)->write_second(commands_, measure_first_, grid_at);
  commands_.barrier();
}

// Closes the recording of one operation.
Ticket VulkanStream::recorded(std::uint64_t grid_at) {
  timeline_->recorded.store(++recorded_, std::memory_order_release);
  end_measured(grid_at);
  commands_.done();
  ++count_;
  if (at_once_)
    flush(Urgency::now);
  else if (count_ >= limit_ || timeline_->submit_soon.load(std::memory_order_relaxed))
    flush();
  return recorded_;
}

void VulkanStream::flush(Urgency urgency, const Point& signal) {
  if (!commands_.open()) return;
  timeline_->submit_soon.store(false, std::memory_order_relaxed);
  // The host reads mapped memory as soon as the semaphore says so.
  commands_.end(Commands::For::everybody, current_->work.first);
  if (count_ == 0) {  // its first operation was refused
    current_->work.first.commands = VK_NULL_HANDLE;
    return;
  }
  if (count_ >= limit_) next_limit_ = std::min(2 * limit_, kMost);
  if (urgency == Urgency::much && count_ <= kFew) urgency = Urgency::little;
  submit({.signal = signal}, urgency);
}

// Gives the current batch to the queue, up to the last ticket.
void VulkanStream::submit(const Beside& beside, Urgency urgency) {
  current_->ring_end = ring_head_;
  Submission& work = current_->work;
  work.second = beside.commands;
  work.wait = beside.wait;
  work.signal = beside.signal;
  work.ticket = {timeline_->semaphore, recorded_};
  if (work.wait.semaphore) device_.waits().add(timeline_, recorded_, device_.submitter().last_place());
  in_flight_.push_back(std::move(current_));
  device_.submitter().add(work, urgency);
  if (work.failed()) device_.check_alive();
  timeline_->submitted.store(recorded_, std::memory_order_release);
}

Ticket VulkanStream::replay(Graph& graph) {
  device_.check_runs();
  auto& ready = static_cast<VulkanGraph&>(graph);
  if (ready.device() != &device_) invalid("a graph is launched on another device than it was made for");
  const VkCommandBuffer commands = ready.commands();
  if (!commands) return recorded_;
  const auto timestamp = [&](auto write) {
    if (!commands_.open()) begin();
    write();
    recorded();
    flush();
  };
  VulkanTimestamps* const measured = std::exchange(measure_, nullptr);
  if (measured) timestamp([&] { measured->write_first(commands_, measure_first_); });
  flush();
  if (ready.has_arguments()) {
    begin();
    ready.write_arguments(commands_);
    commands_.end(Commands::For::queue, current_->work.first);
  } else {
    free_batch();
  }
  timeline_->recorded.store(++recorded_, std::memory_order_release);
  submit({.commands = commands}, Urgency::little);
  ready.arguments_written();
  if (measured) timestamp([&] { measured->write_second(commands_, measure_first_, 0); });
  return recorded_;
}

// Semaphores order the whole queue: work submitted after a waiting submission waits too.
Ticket VulkanStream::submit_empty(const Point& signal) {
  flush();
  free_batch();
  timeline_->recorded.store(++recorded_, std::memory_order_release);
  submit({.signal = signal}, Urgency::now);
  return recorded_;
}

Ticket VulkanStream::mark() {
  device_.check_alive();
  return submit_empty({});
}

// An empty batch between full barriers: they make what others wrote before the semaphore visible to the host, too,
// which may read mapped memory as soon as the ticket is reached.
Ticket VulkanStream::await(VkSemaphore semaphore, std::uint64_t value) {
  device_.check_alive();
  flush();
  begin();
  commands_.end(Commands::For::everybody, current_->work.first);
  timeline_->recorded.store(++recorded_, std::memory_order_release);
  submit({.wait = {semaphore, value}}, Urgency::now);
  return recorded_;
}

Ticket VulkanStream::signal(VkSemaphore semaphore, std::uint64_t value) {
  device_.check_alive();
  const bool with_batch = commands_.open() && count_ > 0;
  if (!with_batch) {  // calls that can fail come before the value counts as given
    flush();
    free_batch();
  }
  device_.signals().add(semaphore, value, timeline_, with_batch ? recorded_ : recorded_ + 1);
  if (!with_batch) return submit_empty({semaphore, value});
  flush(Urgency::now, {semaphore, value});
  return recorded_;
}

Ticket VulkanStream::poll() {
  std::uint64_t value = 0;
  device_.check(vk_.vkGetSemaphoreCounterValue(device_.handle(), timeline_->semaphore, &value),
                "vkGetSemaphoreCounterValue");
  timeline_->reach(value);
  return value;
}

// Takes back the batches that have run.
void VulkanStream::retire(Ticket completed) {
  timeline_->reach(completed);
  while (!in_flight_.empty() && in_flight_.front()->last() <= completed && in_flight_.front()->work.over()) {
    std::unique_ptr<Batch> done = std::move(in_flight_.front());
    in_flight_.pop_front();
    ring_tail_ = done->ring_end;
    if (batches() < kBatches)
      spare_.push_back(std::move(done));
    else
      end(*done);
  }
}

// Whether the host may write there now, because nothing that could use the memory is recorded or in flight, on any
// stream. What others do with memory of an adopted device is not known.
bool VulkanStream::writes_at_once(const Place& target) {
  if (!target.host || device_.adopted() || commands_.open()) return false;
  if (!in_flight_.empty()) retire(poll());
  return in_flight_.empty() && device_.retirement().idle();
}

// Mapped upload memory that is the host's until the batch that reads it is submitted. The caller frees it when the
// batch is recorded.
Allocation VulkanStream::staging(std::uint64_t bytes) {
  if (bytes <= kRingBytes / 4)
    if (const Allocation place = ring(bytes); place.host) return place;
  return device_.allocate(bytes, MemoryKind::upload);
}

// A piece of the ring; nothing if it is full of pieces that others hold up.
Allocation VulkanStream::ring(std::uint64_t bytes) {
  constexpr std::uint64_t kAlign = 64;
  if (ring_.handle == 0) ring_ = device_.allocate(kRingBytes, MemoryKind::upload);
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  std::uint64_t start = ring_head_;
  if (start % kRingBytes + bytes > kRingBytes) start = (start / kRingBytes + 1) * kRingBytes;
  const auto full = [&] { return start + bytes - ring_tail_ > kRingBytes; };
  const auto stuck = [&] { return !in_flight_.empty() && held_up(*in_flight_.front()); };
  if (full()) {
    if (!in_flight_.empty()) retire(poll());
    if (full() && stuck()) return {};
    if (full()) flush();
    while (full() && !in_flight_.empty()) {
      if (stuck()) return {};
      wait_for_oldest();
    }
    // Without any batch, in flight or open, the whole ring is free, including what was skipped at its end.
    if (in_flight_.empty() && !commands_.open()) ring_tail_ = start;
  }
  ring_head_ = start + bytes;
  const std::uint64_t place = start % kRingBytes;
  return {ring_.address + place, bytes, ring_.host + place, 0};
}

Ticket VulkanStream::launch(Program& program, Grid grid, std::span<const std::byte> args,
                            std::span<const MemoryRange> ranges) {
  device_.check_runs();
  auto& shader = static_cast<VulkanProgram&>(program);
  if (shader.device() != &device_)
    throw Error(ErrorKind::invalid_argument, "it was compiled for another device than it is launched on",
                shader.name());
  if (args.size() != shader.args_bytes())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} bytes of arguments given, {} expected", args.size(), shader.args_bytes()),
                shader.name());
  const std::uint32_t* most = device_.adapter().properties.limits.maxComputeWorkGroupCount;
  if (grid.x > most[0] || grid.y > most[1] || grid.z > most[2])
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a grid of {} x {} x {} workgroups; {} allows {} x {} x {}", grid.x, grid.y, grid.z,
                            device_.info().name, most[0], most[1], most[2]),
                shader.name());
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return recorded_;

  // Large arguments come first, because making room for them may close the batch.
  Allocation large;
  const Freed freed{device_, large};
  const bool indirect = args.size() > spirv::kPushConstantBytes;
  if (indirect) {
    large = staging(args.size());
    std::memcpy(large.host, args.data(), args.size());
  }
  open().order_launch(ranges, grid.at);
  commands_.dispatch(shader, args, large.address, grid);
  return recorded(grid.at);
}

Ticket VulkanStream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  device_.check_alive();
  if (bytes == 0 || to == from) return recorded_;
  if (to < from + bytes && from < to + bytes)
    invalid("a copy of {} bytes from {:#x} to {:#x} overlaps itself", bytes, from, to);
  open().copy(to, from, bytes);
  return recorded();
}

Ticket VulkanStream::fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) {
  device_.check_alive();
  if (bytes == 0) return recorded_;
  if (bytes % 4 != 0 || to % 4 != 0) invalid("a fill of {} bytes at {:#x}: both must be multiples of 4", bytes, to);
  open().fill(to, bytes, pattern);
  return recorded();
}

Ticket VulkanStream::build(RayStructure& structure, const RayTriangles& triangles) {
  device_.check_runs();
  if (!device_.adapter().ray_query) return Stream::build(structure, triangles);
  open().build(static_cast<VulkanRayStructure&>(structure), triangles);
  return recorded();
}

Ticket VulkanStream::submit() {
  device_.check_alive();
  flush();
  return recorded_;
}

// Submission order suffices: a batch begins with a barrier against everything that the queue was given before.
void VulkanStream::start(Ticket ticket) {
  device_.check_alive();
  check_ticket(ticket);
  if (ticket > timeline_->submitted.load(std::memory_order_relaxed)) flush();
}

// Call before a wait: the caller submits what the submitter's thread has not yet given to the queue.
void VulkanStream::start_now(Ticket ticket) {
  if (ticket > timeline_->submitted.load(std::memory_order_relaxed)) {
    flush(Urgency::now);
  } else if (const auto at = batch_of(ticket); at != in_flight_.end()) {
    device_.submitter().finish((*at)->work.place);
    if ((*at)->work.failed()) device_.check_alive();
  }
}

void VulkanStream::check_ticket(Ticket ticket) const {
  if (ticket > recorded_) invalid("ticket {} is not of this stream, whose last is {}", ticket, recorded_);
}

bool VulkanStream::done(Ticket ticket) {
  device_.check_alive();
  check_ticket(ticket);
  if (timeline_->completed.load(std::memory_order_acquire) >= ticket) return true;
  if (ticket > timeline_->submitted.load(std::memory_order_relaxed)) return false;
  retire(poll());
  return timeline_->completed.load(std::memory_order_acquire) >= ticket;
}

void VulkanStream::wait(Ticket ticket) {
  device_.check_alive();
  check_ticket(ticket);
  waited_ = true;
  if (timeline_->completed.load(std::memory_order_acquire) >= ticket) return;
  start_now(ticket);
  device_.wait_for(timeline_->semaphore, signal_of(ticket));
  retire(poll());
}

std::function<void()> VulkanStream::waiting(Ticket ticket) {
  device_.check_alive();
  waited_ = true;
  if (ticket == kAllWork) ticket = recorded_;
  check_ticket(ticket);
  if (timeline_->completed.load(std::memory_order_acquire) >= ticket) return {};
  start_now(ticket);
  return [&device = device_, timeline = timeline_, value = signal_of(ticket)] {
    device.wait_for(timeline->semaphore, value);
  };
}

// The value that the semaphore takes when a ticket has run. Waiting for a value in between amounts to the same, but
// sends the validation layers on a search that ends after ten seconds.
Ticket VulkanStream::signal_of(Ticket ticket) const {
  const auto at = batch_of(ticket);
  return at == in_flight_.end() ? ticket : (*at)->last();
}

// The batch of a ticket's operation; none if that has run or is being recorded.
VulkanStream::Batches::const_iterator VulkanStream::batch_of(Ticket ticket) const {
  if (timeline_->completed.load(std::memory_order_acquire) >= ticket) return in_flight_.end();
  return std::ranges::lower_bound(in_flight_, ticket, {}, [](const auto& batch) { return batch->last(); });
}

}  // namespace weft::backend::vulkan
