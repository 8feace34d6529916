// Loads and stores in one of five ways, by where the lanes lie; others are in records.cpp and quads.cpp.
//
// same: one scalar access. A store leaves the value of the last active lane, as if the threads ran in turn.
//   %x = load float, ptr %p, align 4
// contiguous (lane after lane, `width` scalars each): one vector, taken apart by lanes k, k + width, ..
//   %x = load <24 x float>, ptr %p, align 4                      or llvm.masked.load
//   %x1 = shufflevector <24 x float> %x, <24 x float> poison, <8 x i32> <i32 1, i32 4, ..>
// a vector for each lane, which are then put together: wide elements at a constant distance, all lanes active
// a vector of a few words for each lane, wherever it lies: see blocks.cpp
// apart: a gather or scatter for each of the `width` scalars
//   %x = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %p, i32 4, <8 x i1> %mask, <8 x float>
//   zeroinitializer)
#include <bit>

#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

namespace {
std::uint64_t signed_value(const Inst& constant) {
  const int unused = 64 - ir::bits(constant.type);
  if (!ir::is_signed(constant.type)) return constant.imm;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(constant.imm << unused) >> unused);
}
}  // namespace

// ---- Addresses

std::string Emitter::moved(const std::string& pointer, std::int64_t bytes) {
  return bytes == 0 ? pointer : out_.def("getelementptr i8, ptr {}, i64 {}", pointer, bytes);
}

std::string Emitter::wide_index(Id index, std::uint32_t lanes) {
  const Type type = kernel_[index].type;
  if (lanes != 1) return integer_to_integer(type, Type::i64, vector(index), lanes);
  // Numbers of threads have fewer than 31 bits, whatever type they went through.
  for (Id id = index;; id = kernel_.arg(id, 0)) {
    if (!wide_[id].empty()) return wide_[id];
    const Inst& inst = kernel_[id];
    const bool same = inst.op == Op::bitcast || inst.op == Op::convert;
    if (!same || !ir::is_int(inst.type) || ir::bits(inst.type) < 32 || ir::is_float(kernel_[kernel_.arg(id, 0)].type))
      break;
  }
  return integer_to_integer(type, Type::i64, scalar(index), 1);
}

Emitter::Place Emitter::place(Id id) {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0), index = kernel_.arg(id, 1);
  const ir::KernelArray* own = kernel_.kernel_array_of(base);
  return own && own->is_private ? private_place(inst, base, index) : address_place(id);
}

Emitter::Place Emitter::address_place(Id id) {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0), index = kernel_.arg(id, 1);
  const ir::Shape address = ir::address_shape(kernel_, shapes_, id);
  Place place;
  if (address.kind == ir::Shape::Kind::varying) {
    place.pointers = pointers_apart(inst, base, index);
    return place;
  }
  place.kind = address.is_uniform() ? Place::Kind::same : Place::Kind::strided;
  place.step = address.step;
  place.pointer = scalar_pointer(inst, base, index);
  return place;
}

// The index of lane 0 in 64 bits. An affine index of 32 bits may wrap between lanes that do not run and those that do,
// as that of a left neighbour does in the first thread. Those that run have indices of elements, 0 to 2^31 - 2: with a
// positive step lane 0, before them, is extended as a signed number, whatever its type; with a negative one as an
// unsigned number.
std::string Emitter::first_index(Id index) {
  const Type type = kernel_[index].type;
  if (!is_affine(index) || shapes_.exact[index] || ir::bits(type) == 64) return wide_index(index, 1);
  return cast(shape(index).step > 0 ? "sext" : "zext", type, Type::i64, scalar(index), 1);
}

std::string Emitter::scalar_pointer(const Inst& inst, Id base, Id index) {
  const std::string from = out_.def("inttoptr i64 {} to ptr", scalar(base));
  if (kernel_[index].op == Op::constant)
    return moved(from, static_cast<std::int64_t>(signed_value(kernel_[index]) * inst.stride + inst.offset));
  std::string steps = first_index(index);
  if (inst.stride != 1) steps = out_.def("mul i64 {}, {}", steps, inst.stride);
  return moved(out_.def("getelementptr i8, ptr {}, i64 {}", from, steps), inst.offset);
}

std::string Emitter::pointers_apart(const Inst& inst, Id base, Id index) {
  const std::string longs = type_name(Type::i64, lanes_), many = vector_of("ptr", lanes_);
  std::string steps = wide_index(index, lanes_);
  const bool scaled = inst.stride == 1 || inst.stride == 2 || inst.stride == 4 || inst.stride == 8;
  if (!varies(base) && !is_affine(base)) {
    const std::string from = moved(out_.def("inttoptr i64 {} to ptr", scalar(base)), inst.offset);
    if (scaled) return out_.def("getelementptr i{}, ptr {}, {} {}", inst.stride * 8, from, longs, steps);
    steps = binary("mul", Type::i64, steps, literal(Type::i64, inst.stride, lanes_), lanes_);
    return out_.def("getelementptr i8, ptr {}, {} {}", from, longs, steps);
  }
  if (inst.stride != 1) steps = binary("mul", Type::i64, steps, literal(Type::i64, inst.stride, lanes_), lanes_);
  if (inst.offset != 0) steps = binary("add", Type::i64, steps, literal(Type::i64, inst.offset, lanes_), lanes_);
  const std::string address = binary("add", Type::i64, vector(base), steps, lanes_);
  return out_.def("inttoptr {} {} to {}", longs, address, many);
}

// The elements of a private array lie lane by lane: [element][lane].
Emitter::Place Emitter::private_place(const Inst& inst, Id base, Id index) {
  const auto part = static_cast<std::uint64_t>(ir::bytes(inst.type)), row = part * private_lanes();
  const std::string from = moved(private_base_, static_cast<std::int64_t>(array_offsets_[kernel_[base].imm]));
  const auto offset = static_cast<std::int64_t>(inst.offset / part * row);
  const std::uint64_t stride = inst.stride / part * row;
  Place place;
  if (shape(index).is_uniform()) {
    place.kind = shapes_.lone ? Place::Kind::same : Place::Kind::strided;
    place.step = static_cast<std::int64_t>(part);
    const std::string steps = out_.def("mul i64 {}, {}", wide_index(index, 1), stride);
    place.pointer = moved(out_.def("getelementptr i8, ptr {}, i64 {}", from, steps), offset);
    return place;
  }
  const std::string longs = type_name(Type::i64, lanes_);
  std::string steps = binary("mul", Type::i64, wide_index(index, lanes_), literal(Type::i64, stride, lanes_), lanes_);
  steps = binary("add", Type::i64, steps, sequence(Type::i64, offset, static_cast<std::int64_t>(part), lanes_), lanes_);
  place.pointers = out_.def("getelementptr i8, ptr {}, {} {}", from, longs, steps);
  return place;
}

const std::string& Emitter::pointers(Place& place) {
  if (place.pointers.empty())
    place.pointers = out_.def("getelementptr i8, ptr {}, {} {}", place.pointer, type_name(Type::i64, lanes_),
                              sequence(Type::i64, 0, place.step, lanes_));
  return place.pointers;
}

Emitter::Place Emitter::part(const Place& place, const Inst& inst, Id base, std::uint32_t k) {
  if (k == 0) return place;
  const ir::KernelArray* own = kernel_.kernel_array_of(base);
  const auto distance = std::int64_t{k} * ir::bytes(inst.type) * (own && own->is_private ? private_lanes() : 1);
  Place moved_place = place;
  if (!place.pointer.empty()) moved_place.pointer = moved(place.pointer, distance);
  if (!place.pointers.empty())
    moved_place.pointers =
        out_.def("getelementptr i8, {} {}, i64 {}", vector_of("ptr", lanes_), place.pointers, distance);
  return moved_place;
}

std::uint32_t Emitter::alignment(const Inst& inst, Id base, std::uint32_t k) const {
  const auto bytes = static_cast<std::uint32_t>(ir::bytes(inst.type));
  const ir::KernelArray* own = kernel_.kernel_array_of(base);
  if (own) return bytes;
  const std::uint32_t known = inst.align ? inst.align : bytes, distance = k * bytes;
  const std::uint32_t both = known | distance;
  return both & ~(both - 1);
}

bool Emitter::is_contiguous(const Inst& inst, Id base, const Place& place) const {
  const ir::KernelArray* own = kernel_.kernel_array_of(base);
  if (own && own->is_private) return place.kind == Place::Kind::strided && inst.width == 1;
  return place.kind == Place::Kind::strided && place.step == std::int64_t{inst.width} * ir::bytes(inst.type);
}

std::string Emitter::read_vector(Type type, std::uint32_t count, const std::string& pointer, std::uint32_t align,
                                 const std::string& mask) {
  const std::string of = type_name(type, count), bits = type_name(Type::b1, count);
  if (mask.empty()) return out_.def("load {}, ptr {}, align {}", of, pointer, align);
  const std::string name = fmt::format("@llvm.masked.load.{}.p0", type_suffix(type, count));
  out_.declare(name, fmt::format("declare {} {}(ptr, i32, {}, {})", of, name, bits, of));
  return out_.def("call {} {}(ptr {}, i32 {}, {} {}, {} zeroinitializer)", of, name, pointer, align, bits, mask, of);
}

void Emitter::write_vector(Type type, std::uint32_t count, const std::string& value, const std::string& pointer,
                           std::uint32_t align, const std::string& mask) {
  const std::string of = type_name(type, count), bits = type_name(Type::b1, count);
  if (mask.empty()) return out_.line("store {} {}, ptr {}, align {}", of, value, pointer, align);
  const std::string name = fmt::format("@llvm.masked.store.{}.p0", type_suffix(type, count));
  out_.declare(name, fmt::format("declare void {}({}, ptr, i32, {})", name, of, bits));
  out_.line("call void {}({} {}, ptr {}, i32 {}, {} {})", name, of, value, pointer, align, bits, mask);
}

// A masked store is some forty operations on processors without mask registers, and on others many more, so what is
// written where all lanes run goes another way:
//   br (%mask == all), whole, parts
// whole: store <8 x float> %x, ptr %p                      parts: call void @llvm.masked.store(.., %mask)
void Emitter::write_by_mask(const std::function<void()>& write) {
  if (!pays_twofold()) return write();
  ++twofold_;
  const std::string mask = mask_;
  const std::string all = out_.def("icmp eq i{} {}, -1", lanes_, mask_bits(mask));
  const std::string whole = out_.fresh("whole"), parts = out_.fresh("parts"), after = out_.fresh("after");
  out_.jump_if(all, whole, parts);
  out_.label(whole);
  mask_.clear();
  write();
  out_.jump(after);
  mask_ = mask;
  out_.label(parts);
  write();
  out_.jump(after);
  out_.label(after);
}

std::string Emitter::repeated_mask(std::uint32_t times) {
  if (times == 1 || mask_.empty()) return mask_;
  std::vector<std::string> from;
  for (std::uint32_t k = 0; k < lanes_ * times; ++k) from.push_back(std::to_string(k / times));
  const std::string of = type_name(Type::b1, lanes_);
  return out_.def("shufflevector {} {}, {} poison, {} {}", of, mask_, of, vector_of("i32", lanes_ * times),
                  lanes_of("i32", from));
}

std::string Emitter::concatenated(Type type, Texts parts, std::uint32_t lanes) {
  for (; parts.size() > 1; lanes *= 2) {
    const std::string of = type_name(type, lanes);
    Texts pairs;
    for (std::size_t k = 0; k < parts.size(); k += 2)
      pairs.push_back(out_.def("shufflevector {} {}, {} {}, {} {}", of, parts[k], of, parts[k + 1],
                               vector_of("i32", 2 * lanes), sequence(Type::i32, 0, 1, 2 * lanes)));
    parts = pairs;
  }
  return parts[0];
}

// ---- Loads

void Emitter::put_part(Id id, std::uint32_t k, const std::string& value, std::uint32_t lanes) {
  if (kernel_[id].width == 1) return put(id, value, lanes);
  for (Id result : results(id))
    if (kernel_[result].imm == k) put(result, value, lanes);
}

void Emitter::load(Id id) { apart_from_[id].empty() ? load_now(id) : load_again(id); }

void Emitter::load_now(Id id) {
  if (blocks_of_[id] != kNoBlocks) return load_blocks(id);
  if (access_record(id)) return;
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0);
  Place at = place(id);
  if (at.kind == Place::Kind::same) return load_same(id, at);
  if (is_contiguous(inst, base, at)) return load_contiguous(id, at);
  const bool own = kernel_[base].op == Op::kernel_array;
  const bool even = inst.width == 2 || inst.width == 4;
  if (at.kind == Place::Kind::strided && mask_.empty() && even && !own) return load_each(id, at);
  load_apart(id, at);
}

void Emitter::load_same(Id id, const Place& place) {
  const Inst& inst = kernel_[id];
  for (std::uint32_t k = 0; k < inst.width; ++k) {
    const std::string from = moved(place.pointer, std::int64_t{k} * ir::bytes(inst.type));
    put_part(id, k,
             out_.def("load {}, ptr {}, align {}", type_name(inst.type), from, alignment(inst, kernel_.arg(id, 0), k)),
             1);
  }
}

void Emitter::load_contiguous(Id id, const Place& place) {
  const Inst& inst = kernel_[id];
  const std::uint32_t all = lanes_ * inst.width, align = alignment(inst, kernel_.arg(id, 0), 0);
  const std::string of = type_name(inst.type, all),
                    read = read_vector(inst.type, all, place.pointer, align, repeated_mask(inst.width));
  if (inst.width == 1) return put_part(id, 0, read, lanes_);
  for (std::uint32_t k = 0; k < inst.width; ++k)
    put_part(id, k,
             out_.def("shufflevector {} {}, {} poison, {} {}", of, read, of, vector_of("i32", lanes_),
                      sequence(Type::i32, k, inst.width, lanes_)),
             lanes_);
}

void Emitter::load_each(Id id, const Place& place) {
  const Inst& inst = kernel_[id];
  const std::string of = type_name(inst.type, inst.width), type = type_name(inst.type, inst.width * lanes_);
  Texts parts;
  for (std::uint32_t k = 0; k < lanes_; ++k)
    parts.push_back(out_.def("load {}, ptr {}, align {}", of, moved(place.pointer, k * place.step),
                             alignment(inst, kernel_.arg(id, 0), 0)));
  const std::string all = concatenated(inst.type, parts, inst.width);
  for (std::uint32_t k = 0; k < inst.width; ++k)
    put_part(id, k,
             out_.def("shufflevector {} {}, {} poison, {} {}", type, all, type, vector_of("i32", lanes_),
                      sequence(Type::i32, k, inst.width, lanes_)),
             lanes_);
}

void Emitter::load_apart(Id id, Place& place) {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0);
  const ir::KernelArray* own = kernel_.kernel_array_of(base);
  const bool rows = own && own->is_private && place.kind == Place::Kind::strided;
  const std::string of = type_name(inst.type, lanes_), many = vector_of("ptr", lanes_),
                    bits = type_name(Type::b1, lanes_);
  const std::string name = fmt::format("@llvm.masked.gather.{}.v{}p0", type_suffix(inst.type, lanes_), lanes_);
  if (!rows) {
    pointers(place);
    out_.declare(name, fmt::format("declare {} {}({}, i32, {}, {})", of, name, many, bits, of));
  }
  for (std::uint32_t k = 0; k < inst.width; ++k) {
    const Place at = part(place, inst, base, k);
    const std::uint32_t align = alignment(inst, base, k);
    // Neighbours in a private array are whole rows of lanes, which are all there: no mask is needed.
    put_part(id, k,
             rows ? out_.def("load {}, ptr {}, align {}", of, at.pointer, align)
                  : out_.def("call {} {}({} {}, i32 {}, {} {}, {} zeroinitializer)", of, name, many, at.pointers, align,
                             bits, mask_text(mask_), of),
             lanes_);
  }
}

// ---- Stores

void Emitter::store(Id id) { apart_from_[id].empty() ? store_now(id) : store_unless_again(id); }

void Emitter::store_now(Id id) {
  if (access_record(id)) return;
  const Inst& inst = kernel_[id];
  Place at = place(id);
  if (at.kind == Place::Kind::same) return store_same(id, at);
  if (is_contiguous(inst, kernel_.arg(id, 0), at)) return store_contiguous(id, at);
  if (is_block(id) && ir::bytes(inst.type) == kScalarBytes) return store_blocks(id, at);
  store_apart(id, at);
}

void Emitter::store_same(Id id, const Place& place) {
  const Inst& inst = kernel_[id];
  for (std::uint32_t k = 0; k < inst.width; ++k) {
    const Id value = kernel_.arg(id, static_cast<int>(k) + 2);
    const std::string last =
        shape(value).is_uniform()
            ? scalar(value)
            : out_.def("extractelement {} {}, i64 {}", type_name(inst.type, lanes_), vector(value), last_lane());
    out_.line("store {} {}, ptr {}, align {}", type_name(inst.type), last,
              moved(place.pointer, std::int64_t{k} * ir::bytes(inst.type)), alignment(inst, kernel_.arg(id, 0), k));
  }
}

void Emitter::store_contiguous(Id id, const Place& place) {
  const Inst& inst = kernel_[id];
  Texts values;
  for (std::uint32_t k = 0; k < inst.width; ++k) values.push_back(vector(kernel_.arg(id, static_cast<int>(k) + 2)));
  values.resize(std::bit_ceil(values.size()), "poison");
  const std::uint32_t scalars = lanes_ * static_cast<std::uint32_t>(values.size());
  const std::uint32_t all = lanes_ * inst.width, align = alignment(inst, kernel_.arg(id, 0), 0);
  std::string written = concatenated(inst.type, values, lanes_);
  if (inst.width > 1) {
    const std::string type = type_name(inst.type, scalars);
    Texts from;
    for (std::uint32_t k = 0; k < all; ++k) from.push_back(std::to_string(k % inst.width * lanes_ + k / inst.width));
    written = out_.def("shufflevector {} {}, {} poison, {} {}", type, written, type, vector_of("i32", all),
                       lanes_of("i32", from));
  }
  write_by_mask([&] { write_vector(inst.type, all, written, place.pointer, align, repeated_mask(inst.width)); });
}

void Emitter::store_apart(Id id, Place& place) {
  const Inst& inst = kernel_[id];
  const Id base = kernel_.arg(id, 0);
  const std::string of = type_name(inst.type, lanes_), many = vector_of("ptr", lanes_),
                    bits = type_name(Type::b1, lanes_);
  const std::string name = fmt::format("@llvm.masked.scatter.{}.v{}p0", type_suffix(inst.type, lanes_), lanes_);
  out_.declare(name, fmt::format("declare void {}({}, {}, i32, {})", name, of, many, bits));
  pointers(place);
  for (std::uint32_t k = 0; k < inst.width; ++k)
    out_.line("call void {}({} {}, {} {}, i32 {}, {} {})", name, of, vector(kernel_.arg(id, static_cast<int>(k) + 2)),
              many, part(place, inst, base, k).pointers, alignment(inst, base, k), bits, mask_text(mask_));
}

}  // namespace weft::llvm
