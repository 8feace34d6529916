// The one interface between the runtime and what runs kernels: device, memory, program, stream.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../frontend/ir/module.h"

namespace weft::backend {

/// What is known of a device.
struct DeviceInfo {
  std::string name;                ///< "vulkan:0", "reference"
  std::string adapter;             ///< as the driver calls it
  std::string driver;              ///< name and version
  std::string cache_key;           ///< changes whenever compiled programs become invalid
  std::uint64_t memory_bytes = 0;  ///< of the device's own heap
  std::uint64_t max_allocation = ~0ull;
  /// MemoryKind::device is mapped: Allocation::host is set. Of a device that is not open: it may be.
  bool host_visible = false;
  bool wraps_host = false;  ///< wrap() works
  bool software = false;    ///< runs on the CPU
  /// Seconds that one submission should take at most, since a system may take the device for hung; 0: it has no such
  /// system, or no clock to tell.
  double dispatch_budget = 0;
  bool int64 = false;  ///< kernels may have 64-bit integers
  std::uint32_t max_block = 128;
  std::uint32_t max_groups = 65535;  ///< per dimension of a launch
  std::uint32_t subgroup_size = 0;   ///< threads that run in step; 0: kernels cannot use it
  std::uint32_t max_shared = 16384;  ///< bytes of memory that a workgroup shares
  bool ray_query = false;            ///< finds what rays hit by itself: RayStructure, ir::Op::trace_ray
};

/// Refuses a kernel whose workgroups do not fit the device.
/// Errors: Error(unsupported) naming the kernel's line, what it asks for and what the device has.
void check_groups(const ir::Module& module, const DeviceInfo& info);

enum class MemoryKind { device, upload, readback };

/// A piece of device memory. Alignment is at least 256 bytes.
struct Allocation {
  std::uint64_t address = 0;  ///< as kernels see it
  std::size_t bytes = 0;
  std::byte* host = nullptr;  ///< mapped, or null
  std::uint64_t handle = 0;   ///< the backend's own
};

/// Memory that a launch touches.
struct MemoryRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< ~0: everything (an address the host cannot see)
  ir::Access access = ir::Access::none;
  /// Whatever launches do there in any order gives the same: each fills places of its own, taken by atomic additions.
  bool appends = false;
};

struct Grid {
  std::uint32_t x = 1, y = 1, z = 1;  ///< workgroups
  bool part = false;                  ///< of a launch that is made in parts, of whole rows each
  std::uint32_t first_y = 0;          ///< the row that the part begins with
  /// Where x, y and z stand when the launch begins, in device memory, at most as many as here; 0: these are it.
  std::uint64_t at = 0;
};

/// A moment on a stream: value v is reached when everything recorded up to it has run. Grows along a stream.
using Ticket = std::uint64_t;
inline constexpr Ticket kAllWork = ~Ticket(0);

/// A kernel, compiled for one device. Held by shared pointers alone.
class Program : public std::enable_shared_from_this<Program> {
 public:
  virtual ~Program() = default;
  /// Of the kernel.
  virtual const std::string& name() const = 0;
  /// What it is for where it is not the kernel itself, for profiles: "adjoint". Set before it is launched.
  std::string role;
};

/// Places for moments of a device's clock. Thread-safe where different places are meant. Must stay until the work that
/// writes to them has run.
class Timestamps {
 public:
  virtual ~Timestamps() = default;
  /// The moments in two neighbouring places, in nanoseconds since a moment of the device's own, of an operation that
  /// has run. Nothing where there are none, as of a launch without workgroups. Does not wait.
  virtual std::optional<std::array<std::int64_t, 2>> read(std::uint32_t first) = 0;
};

/// Triangles on the device: vec3 float points, three i32 or u32 indices for each triangle.
struct RayTriangles {
  std::uint64_t points = 0, indices = 0;  ///< addresses
  std::uint32_t num_points = 0, num_triangles = 0;
};

/// What the device searches for triangles that rays hit, in a form of its own, in memory of the caller's.
class RayStructure : public std::enable_shared_from_this<RayStructure> {
 public:
  virtual ~RayStructure() = default;
  /// By which kernels name it.
  virtual std::uint64_t number() const = 0;
};

/// What was asked of the compiler and its caches since the device was made.
struct CompileStats {
  std::uint64_t emitted = 0;   ///< modules translated (neither memory nor disk had them)
  std::uint64_t loaded = 0;    ///< translations taken from the disk cache
  std::uint64_t rejected = 0;  ///< damaged cache entries that were thrown away
  std::uint64_t chains = 0;    ///< shaders that make several launches of a graph
};

struct Operations;

/// Operations that were made ready to run again and again. May be dropped while it runs.
class Graph {
 public:
  virtual ~Graph() = default;
  /// What it consists of, with the arguments that it has now.
  virtual const Operations& operations() const = 0;
  /// Other arguments, as many bytes, for a launch: from the next replay on. Those that run keep theirs.
  /// \param arrays  what of its memory the arguments name, in the order of the captured launch, where that comes first
  virtual void patch(std::size_t operation, std::span<const std::byte> args, std::span<const MemoryRange> arrays) = 0;
};

/// Work in order. Recording is cheap; work starts at submit(), at wait(), or when enough has gathered.
/// A stream may be used by one thread at a time; different streams by different threads.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Records a launch. `args` is the argument block (see ir::Param); it is copied. `ranges` is what the launch
  /// touches, Grid::at left out: a launch that overlaps an earlier write, or writes what was read, waits for it.
  virtual Ticket launch(Program& program, Grid grid, std::span<const std::byte> args,
                        std::span<const MemoryRange> ranges) = 0;
  virtual Ticket copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) = 0;
  /// `bytes` is a multiple of 4, as is the address.
  virtual Ticket fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) = 0;
  /// The source may be reused at once.
  virtual Ticket upload(std::uint64_t to, const void* from, std::size_t bytes) = 0;
  /// Returns when the data has arrived. `after`: the ticket of the last operation that writes it.
  virtual void download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) = 0;

  /// Builds a structure from its triangles, of which there are as many as when it was made. It reads them, and writes
  /// to the structure's memory. Errors: Error(unsupported) where the device has no such structures.
  virtual Ticket build(RayStructure& structure, const RayTriangles& triangles);

  /// All operations of a graph of this device, in order with the rest of the stream. May be called again while the
  /// graph still runs.
  virtual Ticket replay(Graph& graph) = 0;

  /// The next launch, copy, fill, build or replay runs by itself, between barriers; place `first` gets the moment at
  /// which all before it has run, the one after it that at which the operation has. Null: nothing is measured.
  /// \return whether an earlier call waited for its operation still
  virtual bool measure(Timestamps* into, std::uint32_t first) = 0;
  /// Starts each operation as soon as it is recorded, instead of gathering some.
  virtual void start_at_once(bool on) = 0;
  /// Itself, where it is not another stream that hears what this one is given.
  virtual Stream& own() { return *this; }

  /// Starts all that has been recorded; returns the ticket of the last operation.
  virtual Ticket submit() = 0;
  /// Starts what has been recorded up to the ticket. What any stream of the device is given after this call runs after
  /// that: streams share a queue, and what is started later begins by waiting for what was started before.
  virtual void start(Ticket ticket) = 0;
  virtual bool done(Ticket ticket) = 0;
  /// Submits what is needed and blocks.
  virtual void wait(Ticket ticket) = 0;
  /// What waits for the ticket, or for everything (kAllWork), without the stream, which others may use meanwhile.
  /// Starts what is needed. Empty where nothing is to be waited for, or where wait() alone can say.
  virtual std::function<void()> waiting(Ticket) { return {}; }
  /// Waits for everything.
  virtual void synchronize() = 0;
  /// With false, no barriers are recorded between launches: only to show what they are for.
  virtual void track_hazards(bool on) = 0;
  /// A barrier after every launch: to tell a missing range from another error.
  virtual void barrier_always(bool on) = 0;
};

/// A device. Thread-safe, its streams apart. Streams and programs must be gone before it.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// Before its mapped memory is touched. Errors: Error(device_lost) when that is gone.
  virtual void check_alive() const {}

  /// In a process that was just forked from the one that opened it: what the device needs has stayed there. From then
  /// on every call throws Error(device_lost), and the end of what is held does nothing. The object itself must stay.
  /// \return false: it needs nothing but memory, and goes on
  virtual bool leave_behind() noexcept { return false; }
  /// The process ends, on this thread, and all work has run: what the device needs may go before the object does. From
  /// then on it refuses this thread's launches.
  virtual void process_ends() noexcept {}

  /// Errors: Error(out_of_memory) with the bytes asked for and those the device has.
  virtual Allocation allocate(std::size_t bytes, MemoryKind kind) = 0;
  /// Takes effect when everything recorded so far on the device's streams has run. Never blocks.
  virtual void free(const Allocation& allocation) = 0;
  /// Gives back at once what was freed or dropped, programs and graphs too, where the work before that has run: later
  /// calls would come to it.
  virtual void give_back() {}

  /// The caller's memory as the device's own, without a copy: Allocation::host is `memory`. It must stay until free(),
  /// which takes effect at once: by then all work that uses it must have run.
  /// Errors: Error(unsupported) when the device cannot, Error(out_of_memory).
  virtual Allocation wrap(std::byte* memory, std::size_t bytes) = 0;

  /// Compiles a kernel, through the disk cache. `hash` is ir::hash(module).
  /// Errors: Error(unsupported) when the device lacks what the kernel needs.
  virtual std::shared_ptr<Program> compile(const ir::Module& module, ir::Hash hash) = 0;
  /// Memory for a structure of that many triangles, with all that a build needs.
  /// Errors: Error(unsupported) where DeviceInfo::ray_query is false.
  virtual std::uint64_t ray_structure_bytes(std::uint32_t num_points, std::uint32_t num_triangles);
  /// A structure in memory at a multiple of 256, which stays as long as it lives and is used. Nothing is in it before a
  /// build.
  virtual std::shared_ptr<RayStructure> create_ray_structure(std::uint64_t memory, std::uint32_t num_points,
                                                             std::uint32_t num_triangles);
  /// Makes operations ready. The memory that they touch must stay as long as the graph.
  virtual std::unique_ptr<Graph> create_graph(std::unique_ptr<Operations> operations) = 0;
  virtual std::unique_ptr<Stream> create_stream() = 0;
  /// Errors: Error(unsupported) when the device has no clock.
  virtual std::unique_ptr<Timestamps> create_timestamps(std::uint32_t places) = 0;
  virtual CompileStats stats() const = 0;
};

}  // namespace weft::backend
