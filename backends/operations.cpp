// Captures of work, and graphs that replay a list.
#include "operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "../frontend/support/error.h"
#include "../frontend/support/invalid.h"

namespace weft::backend {

Operations::~Operations() {
  for (const Allocation& a : uploads) device.free(a);
}

Operation& CaptureStream::add(Operation::Kind kind) {
  Operation& made = operations_->list.emplace_back();
  made.kind = kind;
  return made;
}

Ticket CaptureStream::launch(Program& program, Grid grid, std::span<const std::byte> args,
                             std::span<const MemoryRange> ranges) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return 0;
  Operation& made = add(Operation::Kind::launch);
  made.program = program.shared_from_this();
  made.grid = grid;
  made.args.assign(args.begin(), args.end());
  made.ranges.assign(ranges.begin(), ranges.end());
  return 0;
}

Ticket CaptureStream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  if (bytes == 0 || to == from) return 0;
  Operation& made = add(Operation::Kind::copy);
  made.to = to;
  made.from = from;
  made.bytes = bytes;
  return 0;
}

Ticket CaptureStream::fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) {
  if (bytes == 0) return 0;
  Operation& made = add(Operation::Kind::fill);
  made.to = to;
  made.bytes = bytes;
  made.pattern = pattern;
  return 0;
}

// The host's data is the same in each replay, so memory of the graph keeps it.
Ticket CaptureStream::upload(std::uint64_t to, const void* from, std::size_t bytes) {
  if (bytes == 0) return 0;
  const Allocation kept = operations_->device.allocate(bytes, MemoryKind::upload);
  operations_->uploads.push_back(kept);
  std::memcpy(kept.host, from, bytes);
  return copy(to, kept.address, bytes);
}

Ticket CaptureStream::build(RayStructure& structure, const RayTriangles& triangles) {
  Operation& made = add(Operation::Kind::build);
  made.structure = structure.shared_from_this();
  made.triangles = triangles;
  return 0;
}

void CaptureStream::download(void*, std::uint64_t, std::size_t, Ticket) {
  invalid("elements are read while work is collected: they are not there yet");
}

Ticket CaptureStream::replay(Graph&) { unsupported("a graph is launched while another is captured"); }

bool exchange(Operation& launch, std::span<const std::byte> args, std::span<const MemoryRange> arrays) {
  if (launch.kind != Operation::Kind::launch || launch.args.size() != args.size())
    invalid("a launch of a graph is given {} bytes of arguments", args.size());
  launch.args.assign(args.begin(), args.end());
  launch.patched = true;
  const auto same = [](const MemoryRange& a, const MemoryRange& b) {
    return a.address == b.address && a.bytes == b.bytes;
  };
  std::vector<MemoryRange>& ranges = launch.ranges;
  const MemoryRange everything{0, ~0ull, ir::kChanges | ir::Access::read};
  if (ranges.size() == 1 && same(ranges[0], everything)) return true;
  if (ranges.size() >= arrays.size() && std::equal(arrays.begin(), arrays.end(), ranges.begin(), same)) return true;
  ranges = {everything};
  return false;
}

void ListGraph::patch(std::size_t operation, std::span<const std::byte> args, std::span<const MemoryRange> arrays) {
  exchange(operations_->list.at(operation), args, arrays);
}

Ticket run(const Operations& operations, Stream& stream) {
  Ticket last = 0;
  for (const Operation& o : operations.list) {
    switch (o.kind) {
      case Operation::Kind::launch: last = stream.launch(*o.program, o.grid, o.args, o.ranges); break;
      case Operation::Kind::copy: last = stream.copy(o.to, o.from, o.bytes); break;
      case Operation::Kind::fill: last = stream.fill(o.to, o.bytes, o.pattern); break;
      case Operation::Kind::build: last = stream.build(*o.structure, o.triangles); break;
    }
  }
  return last;
}

}  // namespace weft::backend
