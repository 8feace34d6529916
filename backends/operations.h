// Work as a list, which a capture collects and a graph replays.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "backend.h"

namespace weft::backend {

/// One operation of a stream, with everything that it needs.
struct Operation {
  enum class Kind : std::uint8_t { launch, copy, fill, build } kind = Kind::launch;
  // Launches
  std::shared_ptr<Program> program;
  Grid grid;
  bool always = false;  ///< conditions of a graph do not skip it
  std::vector<std::byte> args;
  std::vector<MemoryRange> ranges;  ///< accessed memory, without Grid::at
  std::uint32_t report_at = 0;      ///< offset in `args` of the ir::report::kArgumentBytes; 0: it reports nothing
  bool patched = false;             ///< it gets, or was given, other arguments: see Graph::patch()
  // Copies and fills
  std::uint64_t to = 0, from = 0;
  std::size_t bytes = 0;
  std::uint32_t pattern = 0;
  // Builds
  std::shared_ptr<RayStructure> structure;
  RayTriangles triangles;
};

/// Gives a launch of a graph other arguments. A launch whose arrays are exchanged counts as accessing all memory from
/// then on, because nobody knows which memory comes next.
/// \return  whether the launch keeps its order relative to the operations around it
/// Errors: Error(invalid_argument) if it is not a launch, or has other arguments.
bool exchange(Operation& launch, std::span<const std::byte> args, std::span<const MemoryRange> arrays);

/// Operations in order, and the memory of uploads that were collected with them.
struct Operations {
  Operations(Device& device) : device(device) {}
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;
  ~Operations();

  Device& device;
  std::vector<Operation> list;
  std::vector<Allocation> uploads;
  bool track_hazards = true, barrier_always = false;  ///< see Stream
};

/// Collects operations instead of running them. All its tickets are one, that of work that is done.
class CaptureStream final : public Stream {
 public:
  explicit CaptureStream(Device& device) : operations_(std::make_unique<Operations>(device)) {}

  Ticket launch(Program& program, Grid grid, std::span<const std::byte> args,
                std::span<const MemoryRange> ranges) override;
  Ticket copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) override;
  Ticket fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) override;
  Ticket upload(std::uint64_t to, const void* from, std::size_t bytes) override;
  Ticket build(RayStructure& structure, const RayTriangles& triangles) override;
  /// Calls without a meaning before the operations run.
  /// Errors: Error(invalid_argument).
  void download(void* to, std::uint64_t from, std::size_t bytes, Ticket after) override;
  Ticket replay(Graph& graph) override;

  Ticket submit() override { return 0; }
  void start(Ticket) override {}
  bool done(Ticket) override { return true; }
  void wait(Ticket) override {}
  void synchronize() override {}

  Operations& operations() { return *operations_; }
  std::unique_ptr<Operations> take() { return std::move(operations_); }

 private:
  Operation& add(Operation::Kind kind);
  std::unique_ptr<Operations> operations_;
};

/// Gives the operations to a stream, one by one. \return  the ticket of the last one, or 0
Ticket run(const Operations& operations, Stream& stream);

/// A graph whose replay runs its operations one by one, for devices whose streams run operations at once.
class ListGraph : public Graph {
 public:
  explicit ListGraph(std::unique_ptr<Operations> operations) : operations_(std::move(operations)) {}
  const Operations& operations() const override { return *operations_; }
  void patch(std::size_t operation, std::span<const std::byte> args, std::span<const MemoryRange> arrays) override;

 private:
  std::unique_ptr<Operations> operations_;
};

}  // namespace weft::backend
