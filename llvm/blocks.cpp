// Accesses of two to four neighbouring words for each lane, anywhere in an array: vectors, and parts of elements. Loads
// may be of 64-bit words, too.
//
// A gather or scatter goes to memory once for each scalar of each lane. Here each lane's block is one load or store.
// Blocks of three and four words become vectors of scalars as the quads of quads.cpp do (the last scalar of three is
// not there), and blocks of two by one step:
//   %r0 = lanes 0, 2, ..: a0 a1 c0 c1 ..    %r1 = lanes 1, 3, ..: b0 b1 d0 d1 ..
//   %x0 = a0 b0 c0 d0 ..                    %x1 = a1 b1 c1 d1 ..
// Scalars become blocks by the same steps the other way round. Lanes that rest read element 0, which is there if a lane
// runs, and write to 16 bytes of the stack that nobody reads: a branch for each lane, as a scatter without mask
// registers has for each scalar, costs more.
//
// The lanes' places go through the stack: a load for each lane, where instructions that take a lane out of a vector
// would wait for the ports that the shuffles need.
//   store <8 x i64> %steps, ptr %places     %step = load i64, ptr %places + 8 k     %block = load <4 x float>, ptr ..
//
// Loads of one element that follow each other are made together. Where they have eight words or more, the lanes may
// well want one element, as neighbouring rays do in the nodes of a tree, and then each word is loaded once:
//   %apart = icmp ne <8 x i32> %index, %first             of the first lane that runs, in all lanes
//   br (any %apart), each, one
// one:  %x = load float, ptr %p; spread .. for each word    each:  %x.each = .. as above
// read: %x = phi <8 x float> [ .., one ], [ %x.each, each ]
#include <algorithm>
#include <bit>

#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

namespace {
/// The words of a lane from which on the code asks whether all lanes want the same.
constexpr std::uint32_t kWordsOfOne = 8;
}  // namespace

/// Whether an access is to two to four words that lie side by side, in arrays of the program, anywhere for each lane.
bool Emitter::is_block(Id id) const {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0);
  const std::uint32_t part = static_cast<std::uint32_t>(ir::bytes(inst.type)), bytes = inst.width * part;
  const bool has_first = shape(base).is_uniform() && kernel_[base].op != Op::kernel_array;
  return has_first && inst.width > 1 && part >= 4 && bytes <= 16 &&
         ir::address_shape(kernel_, shapes_, id).kind == ir::Shape::Kind::varying;
}

void Emitter::plan_blocks() {
  blocks_of_.assign(kernel_.insts.size(), kNoBlocks);
  for (const ir::Region& region : kernel_.regions) {
    std::vector<std::uint32_t> open;  // those that more may join
    for (Id id : region.insts) {
      const Op op = kernel_[id].op;
      if (op != Op::load && op != Op::result && ir::info(op).effect != ir::Effect::pure) open.clear();
      if (op != Op::load || !is_block(id)) continue;
      const auto joined = std::ranges::find_if(open, [&](std::uint32_t blocks) {
        const Id first = blocks_[blocks].front();
        return kernel_[first].stride == kernel_[id].stride && kernel_.arg(first, 0) == kernel_.arg(id, 0) &&
               kernel_.arg(first, 1) == kernel_.arg(id, 1);
      });
      if (joined != open.end() && apart_from_[id].empty()) {
        blocks_of_[id] = *joined;
        blocks_[*joined].push_back(id);
        continue;
      }
      blocks_of_[id] = static_cast<std::uint32_t>(blocks_.size());
      blocks_.push_back({id});
      if (apart_from_[id].empty()) open.push_back(blocks_of_[id]);
    }
  }
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
Emitter::BlockWords Emitter::words_of(Id id) const {
  const Inst& inst = kernel_[id];
  const bool halves = ir::is_int(inst.type) && ir::bits(inst.type) == 64;
  return {halves ? Type::u32 : inst.type, halves ? 2u * inst.width : inst.width};
}

/// A block of a lane at `at`, as a vector of 2 or 4 words. The last of 3 words is followed by a word that may lie
/// beyond the end of memory: a masked load leaves it out by one instruction, and others put the words together.
std::string Emitter::block_at(Id id, const std::string& at) {
  const auto [part, count] = words_of(id);
  const std::uint32_t align = alignment(kernel_[id], kernel_.arg(id, 0), 0);
  if (count == 3 && target_.masked_memory)
    return read_vector(part, kQuad, at, align, lanes_of("i1", {"true", "true", "true", "false"}));
  const std::string of = type_name(part, count), block = out_.def("load {}, ptr {}, align {}", of, at, align);
  if (count != 3) return block;
  return out_.def("shufflevector {} {}, {} poison, {} {}", of, block, of, vector_of("i32", kQuad),
                  sequence(Type::i32, 0, 1, kQuad));
}

/// The words of a block in all lanes, from one load for each lane, whose element's place is in %places.
Emitter::Texts Emitter::words_of_each(Id id, const std::string& from) {
  const auto [part, count] = words_of(id);
  const std::uint32_t width = std::bit_ceil(count);
  Texts blocks;
  for (std::uint32_t k = 0; k < lanes_; ++k) {
    const std::string step = out_.def("load i64, ptr {}, align 8", moved("%places", std::int64_t{k} * 8));
    const std::string element = out_.def("getelementptr i8, ptr {}, i64 {}", from, step);
    blocks.push_back(block_at(id, moved(element, kernel_[id].offset)));
  }
  Texts rows;  // row r: the blocks of lanes r, r + width, ..
  for (std::uint32_t r = 0; r < width; ++r) {
    Texts row;
    for (std::uint32_t k = r; k < lanes_; k += width) row.push_back(blocks[k]);
    rows.push_back(concatenated(part, row, width));
  }
  rows = width == kQuad ? from_pieces(part, rows) : from_pairs(part, rows);
  rows.resize(count);
  return rows;
}

/// The same of a block that all lanes share, at `element` and the block's offset.
Emitter::Texts Emitter::words_of_one(Id id, const std::string& element) {
  const Inst& inst = kernel_[id];
  const auto [part, count] = words_of(id);
  Texts words;
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::string at = moved(element, std::int64_t{inst.offset} + std::int64_t{k} * ir::bytes(part));
    const std::uint32_t align = k == 0 ? alignment(inst, kernel_.arg(id, 0), 0) : kScalarBytes;
    words.push_back(spread(part, out_.def("load {}, ptr {}, align {}", type_name(part), at, align)));
  }
  return words;
}

void Emitter::put_words(Id id, const Texts& words) {
  const Inst& inst = kernel_[id];
  const Type part = words_of(id).part;
  for (std::uint32_t k = 0; k < inst.width; ++k) {
    if (part == inst.type) {
      put_part(id, k, words[k], lanes_);
      continue;
    }
    const std::string low = cast("zext", part, inst.type, words[2 * k], lanes_);
    const std::string high = cast("zext", part, inst.type, words[2 * k + 1], lanes_);
    const std::string moved_high = binary("shl", inst.type, high, literal(inst.type, 32, lanes_), lanes_);
    put_part(id, k, binary("or", inst.type, low, moved_high, lanes_), lanes_);
  }
}

/// Puts the lanes' distances from the first element, in bytes, into %places, by stores of 32 bytes: processors of Intel
/// pass on what lies in the upper half of a store of 64 bytes twice as slowly. Volatile, so that LLVM joins none.
void Emitter::save_places(Id index, std::uint32_t stride) {
  has_places_ = true;
  const Type type = kernel_[index].type;
  const std::string indices =
      mask_.empty() ? vector(index) : choose(type, mask_, vector(index), literal(type, 0, lanes_), lanes_);
  const std::string steps = binary("mul", Type::i64, integer_to_integer(type, Type::i64, indices, lanes_),
                                   literal(Type::i64, stride, lanes_), lanes_);
  const std::string all = type_name(Type::i64, lanes_), piece = type_name(Type::i64, kQuad);
  for (std::uint32_t k = 0; k < lanes_; k += kQuad) {
    const std::string four = lanes_ == kQuad ? steps
                                             : out_.def("shufflevector {} {}, {} poison, {} {}", all, steps, all,
                                                        vector_of("i32", kQuad), sequence(Type::i32, k, 1, kQuad));
    out_.line("store volatile {} {}, ptr {}, align 32", piece, four, moved("%places", std::int64_t{k} * 8));
  }
}

void Emitter::load_blocks(Id id) {
  const std::vector<Id>& members = blocks_[blocks_of_[id]];
  if (id != members.front()) return;
  const Id index = kernel_.arg(id, 1);
  const Type type = kernel_[index].type;
  const std::uint32_t stride = kernel_[id].stride;
  const std::string from = out_.def("inttoptr i64 {} to ptr", scalar(kernel_.arg(id, 0)));
  std::uint32_t words = 0;
  for (Id member : members) words += words_of(member).count;
  if (words < kWordsOfOne) {
    save_places(index, stride);
    for (Id member : members) put_words(member, words_of_each(member, from));
    return;
  }
  const std::string first =
      out_.def("extractelement {} {}, i64 {}", type_name(type, lanes_), vector(index), first_lane());
  const std::string apart_from_first = binary("icmp ne", type, vector(index), spread(type, first), lanes_);
  const std::string each = out_.fresh("each"), one = out_.fresh("one"), read = out_.fresh("read");
  out_.jump_if(any(mask_.empty() ? apart_from_first : binary("and", Type::b1, mask_, apart_from_first, lanes_)), each,
               one);
  std::vector<Texts> apart, shared;
  out_.label(each);
  save_places(index, stride);
  for (Id member : members) apart.push_back(words_of_each(member, from));
  const std::string end_of_each = out_.block();
  out_.jump(read);
  out_.label(one);
  const std::string step = out_.def("mul i64 {}, {}", integer_to_integer(type, Type::i64, first, 1), stride);
  const std::string element = out_.def("getelementptr i8, ptr {}, i64 {}", from, step);
  for (Id member : members) shared.push_back(words_of_one(member, element));
  const std::string end_of_one = out_.block();
  out_.jump(read);
  out_.label(read);
  for (std::size_t m = 0; m < members.size(); ++m)
    for (std::size_t k = 0; k < apart[m].size(); ++k)
      apart[m][k] = out_.def("phi {} [ {}, %{} ], [ {}, %{} ]", type_name(words_of(members[m]).part, lanes_),
                             apart[m][k], end_of_each, shared[m][k], end_of_one);
  for (std::size_t m = 0; m < members.size(); ++m) put_words(members[m], apart[m]);
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
