// The one interface between the runtime and the backends that run kernels: device, memory, program, stream.
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

class Device;

/// The properties of a device.
struct DeviceInfo {
  std::string name;                ///< "vulkan:0", "reference"
  std::string adapter;             ///< the driver's name for it
  std::string driver;              ///< name and version
  std::string cache_key;           ///< changes whenever compiled programs become invalid
  std::uint64_t memory_bytes = 0;  ///< of the device's own heap
  std::uint64_t max_allocation = ~0ull;
  /// MemoryKind::device is mapped: Allocation::host is set. If the device is not open, it may be.
  bool host_visible = false;
  bool wraps_host = false;   ///< wrap() is supported
  bool wraps_bytes = false;  ///< wrap() takes memory that is no whole number of words, too
  bool software = false;     ///< runs on the CPU
  /// Seconds that one submission should take at most, because a system may reset a device that it takes for hung; 0 if
  /// the system does not, or if the device has no clock.
  double dispatch_budget = 0;
  bool int64 = false;  ///< kernels may have 64-bit integers
  std::uint32_t max_block = 128;
  std::uint32_t max_groups = 65535;  ///< per dimension of a launch
  std::uint32_t subgroup_size = 0;   ///< threads that run in step; 0: kernels cannot use it
  /// Host threads among which a launch's vectors are shared out, on a device that runs kernels as vector code of the
  /// processor: a subgroup is a vector, and a workgroup of one thread is scalar code. 0: it is no such device.
  std::uint32_t host_threads = 0;
  std::uint32_t max_shared = 16384;  ///< bytes of memory that a workgroup shares
  bool ray_query = false;            ///< ray queries are supported: RayStructure, ir::Op::trace_ray
};

/// The types whose `fma` a device rounds once. That of the other one rounds the product, too.
struct FusedTypes {
  bool f32 = true, f64 = true;
  bool operator==(const FusedTypes&) const = default;
};

/// Finds out what a device fuses by running a kernel on it.
FusedTypes find_fused(Device& device);

/// Refuses a kernel whose workgroups do not fit the device.
/// Errors: Error(unsupported) naming the kernel's line, what it asks for and what the device has.
void check_groups(const ir::Module& module, const DeviceInfo& info);

enum class MemoryKind { device, upload, readback };

/// A piece of device memory. Alignment is at least 256 bytes.
struct Allocation {
  std::uint64_t address = 0;  ///< as kernels see it
  std::size_t bytes = 0;
  std::byte* host = nullptr;  ///< mapped, or null
  std::uint64_t handle = 0;   ///< means something to the backend only
};

/// Memory that a launch accesses.
struct MemoryRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< ~0: everything (an address the host cannot see)
  ir::Access access = ir::Access::none;
  /// Launches may append there in any order: each fills places of its own, which it takes by atomic additions.
  bool appends = false;
};

struct Grid {
  std::uint32_t x = 1, y = 1, z = 1;  ///< workgroups
  bool part = false;                  ///< one of several parts of a launch, each of whole rows
  std::uint32_t first_y = 0;          ///< the first row of the part
  /// Device address from which x, y and z are read when the launch begins, each at most as large as here; 0: these
  /// count.
  std::uint64_t at = 0;
};

/// A moment on a stream: a ticket is reached when everything recorded up to it has run. Tickets grow along a stream.
using Ticket = std::uint64_t;
inline constexpr Ticket kAllWork = ~Ticket(0);

/// A kernel compiled for one device. Only shared pointers hold it.
class Program : public std::enable_shared_from_this<Program> {
 public:
  virtual ~Program() = default;
  /// The kernel's name.
  virtual const std::string& name() const = 0;
  /// The program's role for profiles, if it is not the kernel itself: "adjoint". Set before the first launch.
  std::string role;
};

/// Slots for moments of a device's clock. Threads may use different slots at once. Must outlive the work that writes to
/// it.
class Timestamps {
 public:
  virtual ~Timestamps() = default;
  /// The two moments of an operation that has run, from neighbouring slots, in nanoseconds since a moment of the
  /// device's own. Nothing if there are none, as for a launch without workgroups. Does not wait.
  virtual std::optional<std::array<std::int64_t, 2>> read(std::uint32_t first) = 0;
};

/// Triangles on the device: vec3 float points, three i32 or u32 indices for each triangle.
struct RayTriangles {
  std::uint64_t points = 0, indices = 0;  ///< addresses
  std::uint32_t num_points = 0, num_triangles = 0;
};

/// The device's own structure over triangles, in which it finds what rays hit. It is in memory of the caller.
class RayStructure : public std::enable_shared_from_this<RayStructure> {
 public:
  virtual ~RayStructure() = default;
  /// The number by which kernels name it.
  virtual std::uint64_t number() const = 0;
};

/// Counts of compilations and cache hits since the device was made.
struct CompileStats {
  std::uint64_t emitted = 0;   ///< modules translated (neither memory nor disk had them)
  std::uint64_t loaded = 0;    ///< translations read from the disk cache
  std::uint64_t rejected = 0;  ///< damaged cache entries that were discarded
  std::uint64_t chains = 0;    ///< shaders that run several launches of a graph
};

struct Operations;

/// Operations prepared to run repeatedly. May be dropped while it runs.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Its operations, with their present arguments.
  virtual const Operations& operations() const = 0;
  /// Gives a launch other arguments, of the same size, from the next replay on. Replays that run keep theirs.
  /// \param arrays  the memory that the arguments name, first the captured launch's in its order
  virtual void patch(std::size_t operation, std::span<const std::byte> args, std::span<const MemoryRange> arrays) = 0;
};

/// A stream of ordered work. Recording is cheap; work starts at submit(), at wait(), or when enough has gathered. One
/// thread at a time may use a stream; different threads may use different streams.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Records a launch. `args`, the argument block (see ir::Param), is copied. `ranges` is the memory that the launch
  /// accesses, without Grid::at: a launch that overlaps an earlier write, or writes what was read, waits for it.
  virtual Ticket launch(Program& program, Grid grid, std::span<const std::byte> args,
                        std::span<const MemoryRange> ranges) = 0;
  virtual Ticket copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) = 0;
  /// Fills memory with a pattern. `to` and `bytes` are multiples of 4.
  virtual Ticket fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) = 0;
  /// Copies from the host. The source may be reused as soon as the call returns.
  virtual Ticket upload(std::uint64_t to, const void* from, std::size_t bytes) = 0;
  /// Copies to the host, and returns when the data has arrived. `after` is the ticket of the last operation that writes
  /// the data.
  virtual void download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) = 0;

  /// Builds a structure from as many triangles as it was made for: reads the triangles, writes the structure's memory.
  /// Errors: Error(unsupported) if the device has no such structures.
  virtual Ticket build(RayStructure& structure, const RayTriangles& triangles);

  /// Runs all operations of a graph of this device, in order with the rest of the stream. A graph may be replayed again
  /// while it still runs.
  virtual Ticket replay(Graph& graph) = 0;

  /// Measures the next launch, copy, fill, build or replay, which runs by itself, between barriers. Slot `first` gets
  /// the moment at which all earlier work has run, the next slot the moment at which the operation has. Null: nothing
  /// is measured. Streams that run nothing measure nothing.
  /// \return whether an earlier call was still waiting for its operation
  virtual bool measure(Timestamps* /*into*/, std::uint32_t /*first*/) { return false; }
  /// Starts each operation as soon as it is recorded, instead of gathering several, where a stream gathers.
  virtual void start_at_once(bool) {}
  /// The backend's own stream, if this one is a listener around it.
  virtual Stream& own() { return *this; }

  /// Starts all that has been recorded; returns the ticket of the last operation.
  virtual Ticket submit() = 0;
  /// Starts the work recorded up to the ticket. Whatever any stream of the device is given after this call runs after
  /// that work: streams share a queue, and each submission begins by waiting for the earlier ones.
  virtual void start(Ticket ticket) = 0;
  virtual bool done(Ticket ticket) = 0;
  /// Submits the work that the ticket needs, and blocks until it is done.
  virtual void wait(Ticket ticket) = 0;
  /// A function that waits for the ticket, or for everything (kAllWork), without using the stream, which others may use
  /// meanwhile. Submits the work that is needed. Empty if there is nothing to wait for, or if only wait() can do it.
  virtual std::function<void()> waiting(Ticket) { return {}; }
  /// Waits for everything.
  virtual void synchronize() = 0;
  /// Turns barriers between launches off (false) or on, where there are any, for tests that show what barriers are for.
  virtual void track_hazards(bool) {}
  /// Puts a barrier after every launch, which tells a missing range from other errors.
  virtual void barrier_always(bool) {}
};

/// A device. Thread-safe, except for its streams. Streams and programs must be gone before it.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// The types that the device fuses. Cost: the first call may run a kernel.
  virtual FusedTypes fused() = 0;
  /// Called before the device's mapped memory is touched. Errors: Error(device_lost) if that is gone.
  virtual void check_alive() const {}

  /// Called in the child of a fork, for a device that the parent opened. From then on every call throws
  /// Error(device_lost), and releasing what the device made does nothing. The device object itself must stay.
  /// \return false if the device needs nothing but memory, and continues to work
  virtual bool leave_behind() noexcept { return false; }
  /// Called on the thread that ends the process, when all work has run: the libraries that the device needs may end
  /// before the object does. From then on it refuses this thread's launches.
  virtual void process_ends() noexcept {}

  /// Allocates memory.
  /// Errors: Error(out_of_memory) with the bytes requested and those the device has.
  virtual Allocation allocate(std::size_t bytes, MemoryKind kind) = 0;
  /// Frees memory, when everything recorded so far on the device's streams has run. Never blocks.
  virtual void free(const Allocation& allocation) = 0;
  /// Releases at once what was freed or dropped, programs and graphs too, where the work that used it has run.
  /// Otherwise later calls would release it.
  virtual void give_back() {}

  /// Makes the caller's memory the device's, without a copy: Allocation::host is `memory`. The memory must stay until
  /// free(), which takes effect at once: by then all work that uses it must have run.
  /// Errors: Error(unsupported) when the device cannot, Error(out_of_memory).
  virtual Allocation wrap(std::byte* memory, std::size_t bytes) = 0;

  /// Compiles a kernel, through the disk cache. `hash` is ir::hash(module).
  /// Errors: Error(unsupported) when the device lacks what the kernel needs.
  virtual std::shared_ptr<Program> compile(const ir::Module& module, detail::Hash128 hash) = 0;
  /// The bytes that a structure of this size takes, including what a build needs.
  /// Errors: Error(unsupported) where DeviceInfo::ray_query is false.
  virtual std::uint64_t ray_structure_bytes(std::uint32_t num_points, std::uint32_t num_triangles);
  /// Makes a structure in memory that is aligned to 256 bytes and outlives the structure and its use. The structure is
  /// empty until it is built.
  virtual std::shared_ptr<RayStructure> create_ray_structure(std::uint64_t memory, std::uint32_t num_points,
                                                             std::uint32_t num_triangles);
  /// Prepares operations for replay. The memory that they access must outlive the graph.
  virtual std::unique_ptr<Graph> create_graph(std::unique_ptr<Operations> operations) = 0;
  virtual std::unique_ptr<Stream> create_stream() = 0;
  /// Makes slots for moments of the device's clock.
  /// Errors: Error(unsupported) when the device has no clock.
  virtual std::unique_ptr<Timestamps> create_timestamps(std::uint32_t places) = 0;
  virtual CompileStats stats() const = 0;
};

}  // namespace weft::backend
