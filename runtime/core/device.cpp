// Opens devices by name, makes their streams, and waits for work and its reports.
#include "../device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

#include "../../backends/native/native.h"
#include "../../backends/reference/reference.h"
#include "../../backends/vulkan/interop.h"
#include "../../backends/vulkan/vulkan.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"
#include "context.h"
#include "process.h"
#include "state.h"

namespace weft {

namespace detail {

StreamState::~StreamState() {
  Reports found;
  try {
    if (reporting() || kept_.failures) synchronize(found);
  } catch (const std::exception&) {
    // The device is lost, as every call on it said. Its kernels' reports are lost, too, except those read before.
    found.add(std::exchange(kept_, {}));
  }
  found.deliver_quietly();
}

// Called after a wait for everything: objects that were dropped before are not needed any more, and the thread that
// waited may have no work for the device for a long time.
void StreamState::give_back() { device->device->give_back(); }

bool StreamState::held_up() const { return backend::held_up(*device->device); }

void StreamState::release() {
  bool reports = false;
  {
    const Held s = hold();
    s->submit();
    reports = reporting();
  }
  if (reports && !held_up()) keep_from([&](Reports& found) { synchronize(found); });
}

void StreamState::end() noexcept {
  Reports found;
  try {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || held_up()) return;
    given_->synchronize();
    collect(*given_, backend::kAllWork, found);
  } catch (const std::exception&) {
    // A lost device runs nothing any more.
  }
  found.deliver_quietly();
}

bool StreamState::free_for_another() {
  const Held s = hold();
  if (!reporting()) return true;
  const auto runs = [&](const std::shared_ptr<ReportBuffer>& r) { return r->pending() && !s->done(r->last()); };
  if (held_up() || std::ranges::any_of(reports_, runs)) return false;
  read_reports(*s, backend::kAllWork, kept_);
  return true;
}

void StreamState::keep(Reports&& found) {
  Reports lines;
  lines.lines = std::move(found.lines);
  found.lines.clear();
  if (found.failures) {
    const Held s = hold();
    kept_.add(std::move(found));
  }
  lines.show();
}

ReportBuffer& StreamState::report_buffer() {
  // Work from now on may wait for another program: a wait for the earlier work then reads the earlier reports alone.
  const std::uint64_t waits = device->waits.load();
  const bool divides = std::exchange(waits_seen_, waits) != waits && !reports_.empty() && reports_.back()->pending();
  if (reports_.empty() || divides || (reports_.back()->of_graph() && !capture)) {
    const auto idle = std::ranges::find_if(reports_, [](const auto& r) { return !r->of_graph() && !r->pending(); });
    if (idle != reports_.end())
      std::rotate(idle, idle + 1, reports_.end());
    else
      reports_.push_back(std::make_shared<ReportBuffer>(*device->device, capture != nullptr));
  }
  return *reports_.back();
}

void StreamState::settle(ReportBuffer& reports) {
  std::function<void()> waiting;
  {
    const Held s = hold();
    if (reports.pending()) waiting = s->waiting(reports.last());
  }
  if (waiting) waiting();
  const Held s = hold();
  if (reports.pending()) read_reports(*s, reports.last(), kept_);
}

void StreamState::read_reports(backend::Stream& s, backend::Ticket ticket, Reports& into) {
  for (const auto& r : reports_) r->collect(s, ticket, into);
  bool idle = false;
  std::erase_if(reports_, [&](const auto& r) { return !r->pending() && (r->of_graph() || std::exchange(idle, true)); });
}

StreamClock& StreamState::clock() {
  if (!clock_) clock_ = std::make_unique<StreamClock>(*device->device);
  return *clock_;
}

Pacer& StreamState::pacer() {
  if (!pacer_) pacer_ = std::make_unique<Pacer>(clock());
  return *pacer_;
}

DeviceState::~DeviceState() {
  // Streams wait for their work when they are destroyed. Programs must outlive that, and the device everything.
  streams.clear();
  programs.clear();
  handles.end(*device);
  parked.free_finished(*device);  // memory that stays parked goes with the device
}

}  // namespace detail

using detail::DeviceState;
using detail::StreamState;

namespace {

StreamState* make_stream(DeviceState& device) {
  auto s = std::make_unique<StreamState>(device, device.device->create_stream());
  if (device.profile) device.profile(*s);
  return device.streams.emplace_back(std::move(s)).get();
}

std::shared_ptr<DeviceState> make_state(std::unique_ptr<backend::Device> device) {
  static std::atomic<std::uint64_t> next_id{1};
  auto state = std::make_unique<DeviceState>();
  state->id = next_id++;
  state->device = std::move(device);
  state->dispatch_budget = state->device->info().dispatch_budget;
  state->default_stream = make_stream(*state);
  return detail::make_known(std::move(state));
}

std::optional<int> adapter_number(std::string_view name) {
  constexpr std::string_view prefix = "vulkan:";
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  int number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0) return {};
  return number;
}

std::vector<backend::DeviceInfo> adapters() {
  const detail::InDriver looking;
  detail::refuse_half_forked();
  return backend::list_vulkan_devices();
}

bool has_native(std::string* why = nullptr) {
  const detail::InDriver looking;
  detail::refuse_half_forked();
  return backend::has_native(why);
}

std::optional<backend::DeviceInfo> software_adapter() {
  for (backend::DeviceInfo& info : adapters())
    if (info.software) return std::move(info);
  return {};
}

// Says once in a process what stands in for the native device, and why.
void tell_of_stand_in(const std::string& name, const std::string& why) {
  static std::atomic_flag told;
  if (told.test_and_set()) return;
  std::fputs(fmt::format("weft: device \"cpu\" is {}, which is slower: {}\n", name, why).c_str(), stderr);
}

// "cpu" is the native device. Where that has no compiler, it is the first software adapter, with which it shares its
// device, or else the interpreter. Where code that a process writes may not run, software adapters fail too.
std::string resolve_cpu() {
  std::string why;
  if (has_native(&why)) return "cpu";
  const auto adapter = platform::allows_code() ? software_adapter() : std::nullopt;
  tell_of_stand_in(adapter ? fmt::format("{} ({})", adapter->name, adapter->adapter) : "the interpreter", why);
  return adapter ? adapter->name : "reference";
}

std::string resolve(std::string_view name) {
  if (name == "cpu") return resolve_cpu();
  if (name == "vulkan") return "vulkan:0";
  if (backend::fused_by_reference(name) || adapter_number(name)) return std::string(name);
  throw Error(ErrorKind::no_device,
              fmt::format("there is no device \"{}\"; devices here: {}", name, fmt::join(Device::list(), ", ")));
}

std::unique_ptr<backend::Device> open_backend(const std::string& name) {
  if (const auto fused = backend::fused_by_reference(name)) return backend::open_reference(*fused);
  detail::refuse_half_forked();
  if (name == "cpu") return backend::open_native();
  return backend::open_vulkan(*adapter_number(name));
}

// The device that is open under a name, or null.
// Errors: those of its backend if a fork has left it behind.
std::shared_ptr<DeviceState> find_open(const detail::OpenDevices& open, std::string_view name) {
  const auto at = open.by_name.find(name);
  if (at == open.by_name.end()) return nullptr;
  std::shared_ptr<DeviceState> state = at->second.lock();
  if (state && state->left_behind.load()) state->device->check_alive();
  return state;
}

std::shared_ptr<DeviceState> open_shared(std::string_view asked) {
  const detail::InDriver opening;
  detail::OpenDevices& open = detail::open_devices();
  std::lock_guard lock(open.mutex);
  // Most names are those of devices, and to resolve "cpu" is to look for LLVM.
  std::shared_ptr<DeviceState> state = find_open(open, asked);
  if (!state) {
    const std::string name = resolve(asked);
    state = find_open(open, name);
    if (!state) open.by_name[name] = state = make_state(open_backend(name));
  }
  detail::end_with_process();
  return state;
}

}  // namespace

Device::Device(std::string_view name, Loc loc) : state_(detail::called_from(loc, [&] { return open_shared(name); })) {}

Device Device::open(std::string_view name, Loc loc) {
  return detail::called_from(loc, [&] {
    const std::string resolved = resolve(name);
    const detail::InDriver opening;
    return Device(make_state(open_backend(resolved)));
  });
}

Device Device::adopt(const VulkanHandles& handles, Loc loc) {
  return detail::called_from(loc, [&] {
    const detail::InDriver opening;
    return Device(make_state(backend::adopt_vulkan(handles)));
  });
}

Device Device::best(Loc loc) {
  if (auto name = platform::environment("WEFT_DEVICE")) return Device(*name, loc);
  const std::vector<backend::DeviceInfo> all = detail::called_from(loc, [&] { return adapters(); });
  for (const backend::DeviceInfo& info : all)
    if (!info.software) return Device(info.name, loc);
  return Device("cpu", loc);
}

// In the child of a fork, what the parent had opened has stayed there.
std::vector<std::string> Device::list() {
  const auto unless_left_behind = [](const auto& f) {
    try {
      f();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::device_lost) throw;
    }
  };
  std::vector<std::string> names;
  bool software = false;
  unless_left_behind([&] {
    for (const backend::DeviceInfo& info : adapters()) {
      names.push_back(info.name);
      software = software || info.software;
    }
  });
  unless_left_behind([&] {
    if (has_native() || software) names.push_back("cpu");
  });
  names.push_back("reference");
  return names;
}

std::string detail::name_beside(const DeviceState& device, const DeviceState& other) {
  const std::string& name = device.device->info().name;
  return &device != &other && name == other.device->info().name ? name + " (another Device of that name)" : name;
}

const std::string& Device::name() const { return state_->device->info().name; }
const std::string& Device::adapter() const { return state_->device->info().adapter; }
const std::string& Device::driver() const { return state_->device->info().driver; }
bool Device::is_software() const { return state_->device->info().software; }
std::uint64_t Device::memory_bytes() const { return state_->device->info().memory_bytes; }
bool Device::wraps_host() const { return state_->device->info().wraps_host; }
bool Device::has_ray_query() const { return state_->device->info().ray_query; }
bool Device::fuses_float32(Loc loc) const {
  return detail::called_from(loc, [&] { return state_->device->fused().f32; });
}
bool Device::fuses_float64(Loc loc) const {
  return detail::called_from(loc, [&] { return state_->device->fused().f64; });
}
backend::Device& Device::native() const { return *state_->device; }

Stream Device::stream() const {
  if (const StreamScope* scope = StreamScope::of(*state_)) return scope->stream_;
  // The pointer is aliased: the handle keeps the device, which owns its streams.
  return Stream(std::shared_ptr<StreamState>(state_, state_->default_stream));
}

Stream Device::create_stream(StreamPriority priority, Loc loc) const {
  return detail::called_from(loc, [&] {
    state_->device->check_alive();
    std::unique_lock lock(state_->mutex);
    StreamState* s = nullptr;
    detail::Reports of_last_owner;
    // The stream that became idle last is taken, because its memory is the warmest.
    auto& idle = state_->idle;
    const auto found = std::find_if(idle.rbegin(), idle.rend(), [](StreamState* i) { return i->free_for_another(); });
    if (found == idle.rend()) {
      s = make_stream(*state_);
      state_->several_streams = true;
    } else {
      s = *found;
      idle.erase(std::next(found).base());
      of_last_owner = s->take_kept();
    }
    lock.unlock();
    {
      const StreamState::Held b = s->hold();
      b->start_at_once(priority == StreamPriority::high);
      b->track_hazards(s->track_hazards = true);
      b->barrier_always(s->barrier_always = false);
    }
    Stream made(std::shared_ptr<StreamState>(s, [keep = state_](StreamState* done) {
      try {
        done->release();
        std::lock_guard lock(keep->mutex);
        keep->idle.push_back(done);
      } catch (const std::exception&) {
        // The device is lost, as the next call on it says. The stream stays with the device, unused.
      }
    }));
    state_->default_stream->keep(std::move(of_last_owner));  // without a lock: a print sink may use the device
    return made;
  });
}

void Device::synchronize(Loc loc) const {
  detail::called_from(loc, [&] {
    detail::refuse_waits();
    state_->default_stream->deliver_from([&](detail::Reports& found) {
      for (StreamState* s : state_->all_streams()) s->synchronize(found);
      state_->parked.free_finished(*state_->device);
    });
  });
}

void Device::set_dispatch_budget(double seconds, Loc loc) const {
  detail::called_from(loc, [&] {
    if (!(seconds >= 0)) invalid("a dispatch budget of {} seconds", seconds);
    state_->device->check_alive();
    if (seconds > 0) state_->device->create_timestamps(2);  // throws if there is no clock
    state_->dispatch_budget = seconds;
  });
}
double Device::dispatch_budget() const { return state_->dispatch_budget; }

CompileCounts Device::compile_counts() const {
  backend::CompileStats s = state_->device->stats();
  return {s.emitted, s.loaded, s.rejected};
}

void Stream::submit(Loc loc) {
  detail::called_from(loc, [&] { state_->hold()->submit(); });
}
void Stream::synchronize(Loc loc) {
  detail::called_from(loc, [&] {
    detail::refuse_waits();
    state_->deliver_from([&](detail::Reports& found) { state_->synchronize(found); });
  });
}
void Stream::track_hazards(bool on) {
  state_->device->device->check_alive();
  state_->hold()->track_hazards(state_->track_hazards = on);
}
void Stream::barrier_always(bool on) {
  state_->device->device->check_alive();
  state_->hold()->barrier_always(state_->barrier_always = on);
}
backend::Stream& Stream::native() { return *state_->stream_; }

StreamState& detail::state_of(const Stream& stream) { return *stream.state_; }

}  // namespace weft
