// Loads of 16 bytes for each lane, from anywhere in an array: numbers of vectors, and parts of elements that the
// program reads as two numbers of 64 bits.
//
// A gather goes to memory once for each scalar of each lane. Here each lane's block is one load, and blocks are turned
// into vectors of scalars. For W = 8 and blocks of 4 (of 3, the last row is not there), with a to h for the blocks of
// lanes 0 to 7:
//   %r0 = a | e, %r1 = b | f, %r2 = c | g, %r3 = d | h
//   %s0 = a0 c0 a1 c1 | e0 g0 e1 g1    lower halves of %r0 and %r2 in turn; %s1 of their upper halves
//   %s2 = b0 d0 b1 d1 | f0 h0 f1 h1    of %r1 and %r3; %s3
//   %x0 = a0 b0 c0 d0 | e0 f0 g0 h0    lower halves of %s0 and %s2; %x1 to %x3 likewise
#include <bit>

#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

/// In each block, the lower (half 0) or upper halves of both vectors' blocks, one scalar of each in turn.
std::string Emitter::interleaved(Type t, const std::string& a, const std::string& b, std::uint32_t block,
                                 std::uint32_t half) {
  Texts from;
  for (std::uint32_t k = 0; k < lanes_; ++k) {
    const std::uint32_t in_block = k % block, at = k - in_block + half * block / 2 + in_block / 2;
    from.push_back(std::to_string(k % 2 == 0 ? at : lanes_ + at));
  }
  const std::string of = type_name(t, lanes_);
  return out_.def("shufflevector {} {}, {} {}, {} {}", of, a, of, b, vector_of("i32", lanes_), lanes_of("i32", from));
}

/// Whether a load is of two to four words that lie side by side, in arrays of the program. Lanes that do not run read
/// from the first element: it is there if any lane reads in the array.
bool Emitter::is_block(Id id) const {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0);
  const std::uint32_t part = static_cast<std::uint32_t>(ir::bytes(inst.type)), bytes = inst.width * part;
  const bool has_first = shape(base).is_uniform() && kernel_[base].op != Op::kernel_array;
  return has_first && inst.width > 1 && part >= 4 && bytes <= 16 && inst.offset + bytes <= inst.stride;
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
  for (std::uint32_t by = width / 2; by > 0; by /= 2) {
    Texts turned(width);
    for (std::uint32_t r = 0; r < width / 2; ++r)
      for (std::uint32_t half = 0; half < 2; ++half)
        turned[2 * r + half] = interleaved(part, rows[r], rows[r + width / 2], width, half);
    rows = turned;
  }
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

}  // namespace weft::llvm
