// Accesses of two to four neighbouring words for each lane, anywhere in an array: vectors, and parts of elements. Loads
// may be of 64-bit words, too.
//
// A gather or scatter goes to memory once for each scalar of each lane. Here each lane's block is one load or store.
// Blocks of three and four words become vectors of scalars as the quads of quads.cpp do (the last scalar of three is
// not there), and blocks of two by one step:
//   %r0 = lanes 0, 2, ..: a0 a1 c0 c1 ..    %r1 = lanes 1, 3, ..: b0 b1 d0 d1 ..
//   %x0 = a0 b0 c0 d0 ..                    %x1 = a1 b1 c1 d1 ..
// Scalars become blocks by the same steps the other way round. Where some lanes rest, they read from the first element,
// which is there if any lane reads in the array, and write to 16 bytes of the stack that nobody reads: a branch for
// each lane, as a scatter without mask registers has for each scalar, costs more.
#include <bit>

#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

/// Whether an access is to two to four words that lie side by side, in arrays of the program.
bool Emitter::is_block(Id id) const {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0);
  const std::uint32_t part = static_cast<std::uint32_t>(ir::bytes(inst.type)), bytes = inst.width * part;
  const bool has_first = shape(base).is_uniform() && kernel_[base].op != Op::kernel_array;
  return has_first && inst.width > 1 && part >= 4 && bytes <= 16 && inst.offset + bytes <= inst.stride;
}

/// The two scalars of all lanes, from the blocks of even lanes and those of odd ones.
Emitter::Texts Emitter::from_pairs(Type part, const Texts& rows) {
  Texts scalars;
  for (std::uint32_t k = 0; k < 2; ++k) {
    std::vector<FromLane> lanes;
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) lanes.push_back({lane % 2, lane / 2 * 2 + k});
    scalars.push_back(assembled(part, rows, lanes));
  }
  return scalars;
}

// Integers of 64 bits are taken as two words each: mostly they are, as the program's next step.
void Emitter::load_blocks(Id id) {
  const Inst& inst = kernel_[id];
  const bool in_words = ir::is_int(inst.type) && ir::bits(inst.type) == 64;
  const Type part = in_words ? Type::u32 : inst.type;
  const std::uint32_t read = in_words ? 2 * inst.width : inst.width, width = std::bit_ceil(read);
  const Id base = kernel_.arg(id, 0);
  std::string steps = wide_index(kernel_.arg(id, 1), lanes_);
  steps = binary("mul", Type::i64, steps, literal(Type::i64, inst.stride, lanes_), lanes_);
  if (!mask_.empty()) steps = choose(Type::i64, mask_, steps, literal(Type::i64, 0, lanes_), lanes_);
  const std::string from = out_.def("inttoptr i64 {} to ptr", scalar(base));
  Texts blocks;
  for (std::uint32_t k = 0; k < lanes_; ++k) {
    const std::string step = out_.def("extractelement {} {}, i64 {}", type_name(Type::i64, lanes_), steps, k);
    const std::string at = moved(out_.def("getelementptr i8, ptr {}, i64 {}", from, step), inst.offset);
    std::string block = out_.def("load {}, ptr {}, align {}", type_name(part, read), at, alignment(inst, base, 0));
    if (width != read)
      block = out_.def("shufflevector {} {}, {} poison, {} {}", type_name(part, read), block, type_name(part, read),
                       vector_of("i32", width), sequence(Type::i32, 0, 1, width));
    blocks.push_back(block);
  }
  Texts rows;  // row r: the blocks of lanes r, r + width, ..
  for (std::uint32_t r = 0; r < width; ++r) {
    Texts row;
    for (std::uint32_t k = r; k < lanes_; k += width) row.push_back(blocks[k]);
    rows.push_back(concatenated(part, row, width));
  }
  rows = width == kQuad ? from_pieces(part, rows) : from_pairs(part, rows);
  for (std::uint32_t k = 0; k < inst.width; ++k) {
    if (!in_words) {
      put_part(id, k, rows[k], lanes_);
      continue;
    }
    const std::string low = cast("zext", part, inst.type, rows[2 * k], lanes_);
    const std::string high = cast("zext", part, inst.type, rows[2 * k + 1], lanes_);
    const std::string moved_high = binary("shl", inst.type, high, literal(inst.type, 32, lanes_), lanes_);
    put_part(id, k, binary("or", inst.type, low, moved_high, lanes_), lanes_);
  }
}

/// The rows of pairs, which from_pairs() takes apart.
Emitter::Texts Emitter::to_pairs(Type part, const Texts& scalars) {
  Texts rows;
  for (std::uint32_t row = 0; row < 2; ++row) {
    std::vector<FromLane> lanes;
    for (std::uint32_t k = 0; k < lanes_; ++k) lanes.push_back({k % 2, k / 2 * 2 + row});
    rows.push_back(assembled(part, scalars, lanes));
  }
  return rows;
}

void Emitter::store_blocks(Id id, Place& place) {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0);
  const std::uint32_t width = std::bit_ceil(std::uint32_t{inst.width});
  Texts scalars(width);
  for (std::uint32_t k = 0; k < inst.width; ++k) scalars[k] = vector(kernel_.arg(id, static_cast<int>(k) + 2));
  const Texts rows = width == kQuad ? to_pieces(inst.type, scalars) : to_pairs(inst.type, scalars);
  const std::string of = type_name(inst.type, lanes_), many = vector_of("ptr", lanes_);
  std::string blocks = pointers(place);
  if (!mask_.empty()) {
    has_nowhere_ = true;
    const std::string nowhere = spread("ptr", "%nowhere");
    blocks = out_.def("select {} {}, {} {}, {} {}", type_name(Type::b1, lanes_), mask_text(mask_), many, blocks, many,
                      nowhere);
  }
  for (std::uint32_t k = 0; k < lanes_; ++k) {
    const std::string block =
        out_.def("shufflevector {} {}, {} poison, {} {}", of, rows[k % width], of, vector_of("i32", inst.width),
                 sequence(Type::i32, k / width * width, 1, inst.width));
    const std::string at = out_.def("extractelement {} {}, i64 {}", many, blocks, k);
    out_.line("store {} {}, ptr {}, align {}", type_name(inst.type, inst.width), block, at, alignment(inst, base, 0));
  }
}

}  // namespace weft::llvm
