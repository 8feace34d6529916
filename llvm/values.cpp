// Values as scalars and as vectors, and masks.
//
// A value that is the same in all lanes is one scalar; of an affine value the scalar is that of lane 0. Where a vector
// is needed it is spread:
//   %a = insertelement <8 x i32> poison, i32 %x, i64 0
//   %b = shufflevector <8 x i32> %a, <8 x i32> poison, <8 x i32> zeroinitializer
//   %c = add <8 x i32> %b, <i32 0, i32 1, ..>
#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Shape;
using ir::Type;

Emitter::Scope::~Scope() {
  for (; emitter_.visible_.size() > begin_; emitter_.visible_.pop_back()) {
    const auto [id, spread] = emitter_.visible_.back();
    emitter_.vector_[id].clear();
    if (!spread) emitter_.scalar_[id].clear();
  }
}

std::string Emitter::scalar(Id id) {
  const Inst& inst = kernel_[id];
  if (inst.op == Op::constant) return literal(inst.type, inst.imm);
  if (scalar_[id].empty() && vector_[id].empty()) fetch(id);
  if (!scalar_[id].empty()) return scalar_[id];
  const std::string lane = is_affine(id) ? "0" : first_lane();
  return out_.def("extractelement {} {}, i64 {}", type_name(inst.type, lanes_), vector_[id], lane);
}

std::string Emitter::vector(Id id) {
  const Inst& inst = kernel_[id];
  if (inst.op == Op::constant) return literal(inst.type, inst.imm, lanes_);
  if (scalar_[id].empty() && vector_[id].empty()) fetch(id);
  if (!vector_[id].empty()) return vector_[id];
  std::string value = spread(inst.type, scalar_[id]);
  if (is_affine(id)) value = binary("add", inst.type, value, sequence(inst.type, 0, shape(id).step, lanes_), lanes_);
  vector_[id] = value;
  visible_.push_back({id, true});
  return value;
}

void Emitter::put_scalar(Id id, const std::string& value) {
  scalar_[id] = value;
  vector_[id].clear();
  visible_.push_back({id, false});
  save(id);
}

void Emitter::put_vector(Id id, const std::string& value) {
  vector_[id] = value;
  scalar_[id].clear();
  visible_.push_back({id, false});
  save(id);
}

std::string Emitter::spread(const std::string& type, const std::string& value) {
  const std::string all = vector_of(type, lanes_);
  const std::string one = out_.def("insertelement {} poison, {} {}, i64 0", all, type, value);
  return out_.def("shufflevector {} {}, {} poison, {} zeroinitializer", all, one, all, vector_of("i32", lanes_));
}

std::string Emitter::both(const std::string& mask, const std::string& condition) {
  return mask.empty() ? condition : binary("and", Type::b1, mask, condition, lanes_);
}

std::string Emitter::opposite(const std::string& mask) { return binary("xor", Type::b1, mask, all_lanes_, lanes_); }

std::string Emitter::mask_bits(const std::string& mask) {
  return out_.def("bitcast {} {} to i{}", type_name(Type::b1, lanes_), mask_text(mask), lanes_);
}

std::string Emitter::mask_word() {
  if (mask_.empty()) return lanes_ == 64 ? "-1" : std::to_string((1ull << lanes_) - 1);
  const std::string bits = mask_bits(mask_);
  return lanes_ == 64 ? bits : out_.def("zext i{} {} to i64", lanes_, bits);
}

std::string Emitter::any(const std::string& mask) { return out_.def("icmp ne i{} {}, 0", lanes_, mask_bits(mask)); }

std::string Emitter::first_lane() {
  if (mask_.empty()) return "0";
  const std::string bits = mask_word();
  out_.declare("@llvm.cttz.i64", "declare i64 @llvm.cttz.i64(i64, i1)");
  return out_.def("call i64 @llvm.cttz.i64(i64 {}, i1 false)", bits);
}

std::string Emitter::last_lane() {
  if (mask_.empty()) return std::to_string(lanes_ - 1);
  const std::string bits = mask_word();
  out_.declare("@llvm.ctlz.i64", "declare i64 @llvm.ctlz.i64(i64, i1)");
  const std::string above = out_.def("call i64 @llvm.ctlz.i64(i64 {}, i1 false)", bits);
  return out_.def("sub i64 63, {}", above);
}

}  // namespace weft::llvm
