// Collects profiles: streams that are listened to, scopes, and two clocks.
#include "profile_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "../../backends/operations.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/context.h"
#include "../core/state.h"

namespace weft::detail {

namespace {

std::atomic<bool> g_collecting = false;  // whether g_log is set
std::mutex g_mutex;
std::shared_ptr<ProfileLog> g_log;

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

std::uint32_t open_scope(const ProfileLog& log) {
  const Context::OpenScope& open = Context::here().profile;
  return open.log == log.id ? open.scope : ProfileLog::kNone;
}
void set_open_scope(const ProfileLog& log, std::uint32_t scope) { Context::here().profile = {log.id, scope}; }
void close_scope(const ProfileLog& log, std::uint32_t scope, std::uint32_t parent) {
  Context::OpenScope& open = Context::here().profile;
  if (open.log == log.id && open.scope == scope) open.scope = parent;
}

ProfileLog::ProfileLog(const ProfilerOptions& options) : id(next_id()), options(options) {}

std::shared_ptr<ProfileLog> ProfileLog::current() {
  if (!g_collecting.load(std::memory_order_relaxed)) return nullptr;
  std::lock_guard lock(g_mutex);
  return g_log;
}

void ProfileLog::make_current() {
  std::lock_guard lock(g_mutex);
  if (g_log) invalid("a profiler is made while another one collects: stop that first");
  g_log = shared_from_this();
  g_collecting = true;
}

void ProfileLog::leave_current() {
  std::lock_guard lock(g_mutex);
  if (g_log.get() != this) return;
  g_collecting = false;
  g_log.reset();
}

// Comparing clocks waits for the device, which may need other threads to go on, so no lock is held.
void ProfileLog::start(const std::vector<std::shared_ptr<DeviceState>>& devices) {
  for (const auto& device : devices) {
    if (std::ranges::find(devices_, device, &Measured::device) != devices_.end()) continue;
    devices_.push_back({device, compare(*device)});
    std::lock_guard lock(device->mutex);
    // The stream of recordings has nothing to run, because callers submit recordings themselves.
    for (const auto& stream : device->streams)
      if (stream.get() != device->recordings) join(*stream);
    device->profile = [log = shared_from_this()](StreamState& made) { log->join(made); };
  }
}

void ProfileLog::join(StreamState& stream) {
  stream.listen([&](backend::Stream& own, std::unique_ptr<backend::Stream>& listener) {
    StreamClock& clock = stream.clock();  // throws where there is none, before the log knows the stream
    std::lock_guard lock(mutex_);
    std::string device = stream.device->device->info().name;
    // Two devices may be on one adapter.
    std::set<const DeviceState*> namesakes;
    int before = 0;
    for (const Track& t : tracks_) {
      if (t.state->device == stream.device) ++before, device = t.device;
      if (t.state->device->device->info().name == stream.device->device->info().name) namesakes.insert(t.state->device);
    }
    if (before == 0 && !namesakes.empty()) device += fmt::format(" ({})", namesakes.size() + 1);
    auto made = std::make_unique<ProfiledStream>(own, clock, shared_from_this(), std::uint32_t(tracks_.size()));
    tracks_.push_back({device, before, &stream});
    listener = std::move(made);
  });
}

void ProfileLog::stop() {
  std::exception_ptr failure;
  for (const Measured& m : devices_) {
    std::lock_guard lock(m.device->mutex);
    m.device->profile = nullptr;
  }
  std::vector<Track> tracks;
  {
    std::lock_guard lock(mutex_);
    tracks = tracks_;
  }
  const auto trying = [&](auto f) {
    try {
      f();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  };
  // All streams are released before any is waited for.
  std::vector<std::unique_ptr<backend::Stream>> ended;
  std::vector<backend::Ticket> last;
  for (const Track& track : tracks)
    track.state->listen([&](backend::Stream&, std::unique_ptr<backend::Stream>& listener) {
      ended.push_back(std::move(listener));
      last.push_back(track.state->clock().last());
    });
  for (std::size_t k = 0; k < tracks.size(); ++k)
    trying([&] {
      StreamState& stream = *tracks[k].state;
      stream.sleep(last[k]);
      const StreamState::Held s = stream.hold();
      stream.clock().finish(s->own(), last[k]);
    });
  for (const Measured& m : devices_)
    trying([&] {
      const Clocks after = compare(*m.device);
      for (std::size_t k = 0; k < tracks.size(); ++k)
        if (tracks[k].state->device == m.device.get()) static_cast<ProfiledStream&>(*ended[k]).tell(m.before, after);
    });
  {
    std::lock_guard lock(mutex_);
    seconds_ = now();
    stopped_ = true;
    for (Scope& s : scopes_)
      if (s.end < 0) s.end = seconds_;
  }
  devices_.clear();
  if (failure) std::rethrow_exception(failure);
}

// Compares the clocks by an operation that does next to nothing, on a stream of its own.
ProfileLog::Clocks ProfileLog::compare(DeviceState& state) const {
  backend::Device& device = *state.device;
  const backend::Allocation scratch = device.allocate(4, backend::MemoryKind::device);
  struct Free {
    backend::Device& device;
    const backend::Allocation& scratch;
    ~Free() { device.free(scratch); }
  } free{device, scratch};
  StreamClock clock(device);
  const std::unique_ptr<backend::Stream> stream = device.create_stream();
  stream->fill(scratch.address, 4, 0);
  stream->synchronize();
  double shortest = 1e9;
  Clocks clocks;
  for (int attempt = 0; attempt < 5; ++attempt) {
    double middle = 0;
    const double before = now();
    {
      StreamClock::Measurement measurement(
          clock, *stream, [&middle](std::int64_t begin, std::int64_t end) { middle = double(begin + end) * 0.5e-9; });
      measurement.given(stream->fill(scratch.address, 4, 0));
    }
    clock.finish(*stream, clock.last());
    const double after = now();
    if (after - before >= shortest) continue;
    shortest = after - before;
    clocks = {(before + after) / 2, (before + after) / 2 - middle};
  }
  return clocks;
}

// Call with the lock held.
int ProfileLog::thread_number() {
  const auto id = std::this_thread::get_id();
  const auto known = std::ranges::find(threads_, id);
  const auto number = known - threads_.begin();
  if (known == threads_.end()) threads_.push_back(id);
  return int(number);
}

std::uint32_t ProfileLog::begin_scope(std::string_view name, std::uint32_t parent) {
  std::lock_guard lock(mutex_);
  if (stopped_) return kNone;
  scopes_.push_back({kept_name(name), parent, thread_number(), now(), -1});
  return std::uint32_t(scopes_.size());
}

void ProfileLog::end_scope(std::uint32_t scope) {
  std::lock_guard lock(mutex_);
  if (scope != kNone && !stopped_) scopes_[scope - 1].end = now();
}

ProfileLog::Recorded ProfileLog::recorded(std::string_view name) {
  std::lock_guard lock(mutex_);
  return {kept_name(name), open_scope(*this), now()};
}

void ProfileLog::ran(const Recorded& operation, std::uint32_t track, double begin, double end) {
  std::lock_guard lock(mutex_);
  ran_.push_back({operation, track, begin, end});
}

Profile ProfileLog::result() {
  std::lock_guard lock(mutex_);
  Profile p;
  p.seconds = seconds_;
  for (const Scope& s : scopes_) p.timers.push_back({*s.name, int(s.parent) - 1, s.thread, s.begin, s.end});
  for (const Ran& r : ran_) {
    const Track& track = tracks_[r.track];
    p.operations.push_back(
        {*r.recorded.name, track.device, track.stream, int(r.recorded.scope) - 1, r.recorded.at, r.begin, r.end});
  }
  summarise(p);
  return p;
}

template <class F>
backend::Ticket ProfiledStream::measured(std::string_view name, F record) {
  const ProfileLog::Recorded recorded = log_->recorded(name);
  StreamClock::Measurement measurement(clock_, own_, [times = times_, recorded](std::int64_t begin, std::int64_t end) {
    times->push_back({recorded, begin, end});
  });
  const backend::Ticket ticket = record();
  measurement.given(ticket);
  return ticket;
}

backend::Ticket ProfiledStream::launch(backend::Program& program, backend::Grid grid, std::span<const std::byte> args,
                                       std::span<const backend::MemoryRange> ranges) {
  const auto launch = [&] { return own_.launch(program, grid, args, ranges); };
  if (program.role.empty()) return measured(program.name(), launch);
  return measured(fmt::format("{} ({})", program.name(), program.role), launch);
}

backend::Ticket ProfiledStream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  return measured("copy", [&] { return own_.copy(to, from, bytes); });
}

backend::Ticket ProfiledStream::fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) {
  return measured("fill", [&] { return own_.fill(to, bytes, pattern); });
}

backend::Ticket ProfiledStream::build(backend::RayStructure& structure, const backend::RayTriangles& triangles) {
  return measured("build", [&] { return own_.build(structure, triangles); });
}

backend::Ticket ProfiledStream::replay(backend::Graph& graph) {
  const std::size_t size = graph.operations().list.size();
  if (size == 0) return own_.replay(graph);
  if (log_->options.whole_graphs)
    return measured(fmt::format("graph of {} operation{}", size, size == 1 ? "" : "s"),
                    [&] { return own_.replay(graph); });
  return backend::run(graph.operations(), *this);
}

// The clocks drift apart, so moments in between are interpolated. Durations come from the device's clock alone.
void ProfiledStream::tell(const ProfileLog::Clocks& before, const ProfileLog::Clocks& after) {
  for (const Times& t : *times_) {
    const double begin = double(t.begin) * 1e-9;
    const double share = std::clamp((begin + before.offset - before.at) / std::max(after.at - before.at, 1e-9), 0., 1.);
    const double on_host = begin + before.offset + (after.offset - before.offset) * share;
    log_->ran(t.recorded, track_, on_host, on_host + double(t.end - t.begin) * 1e-9);
  }
}

}  // namespace weft::detail
