// Ray queries by VK_KHR_ray_query, the device's own search.
#include "emitter.h"

namespace weft::spirv {

using ir::Id;
using ir::Type;

// Each instruction has a query of its own, and reads the whole answer at once: nothing of the query is left when the
// next ray uses it. Triangles are opaque, so the search never asks the shader about one; the structure holds only
// triangles.
Word Emitter::trace_ray(Id id) {
  const ir::Inst& inst = module_[id];
  constexpr Word kOpaque = 1, kFirstHit = 4, kCommitted = 1, kTriangle = 1;
  const Word query = w_.id();
  locals_.emit(spv::Op::OpVariable, {w_.pointer_type(spv::StorageClass::Function, w_.ray_query_type()), query,
                                     Word(spv::StorageClass::Function)});
  const auto vector = [&](int first) {
    return make(spv::Op::OpCompositeConstruct, w_.vector_type(Type::f32, 3),
                {value(module_.arg(id, first)), value(module_.arg(id, first + 1)), value(module_.arg(id, first + 2))});
  };
  const Word structure =
      make(spv::Op::OpConvertUToAccelerationStructureKHR, w_.ray_structure_type(), {value(module_.arg(id, 1))});
  const Word flags = w_.u32(kOpaque | (inst.imm ? kFirstHit : 0)), mask = w_.u32(0xff);
  const Word origin = vector(2), direction = vector(5);
  body_.emit(spv::Op::OpRayQueryInitializeKHR,
             {query, structure, flags, mask, origin, number(Type::f32, 0), direction, value(module_.arg(id, 8))});
  const Word head = w_.id(), test = w_.id(), next = w_.id(), merge = w_.id();
  branch(head);
  open_block(head);
  body_.emit(spv::Op::OpLoopMerge, {merge, next, Word(spv::LoopControlMask::MaskNone)});
  branch(test);
  open_block(test);
  const Word more = make(spv::Op::OpRayQueryProceedKHR, Type::b1, {query});
  body_.emit(spv::Op::OpBranchConditional, {more, next, merge});
  open_block(next);
  branch(head);
  open_block(merge);

  const Word committed = w_.u32(kCommitted);
  const auto word_of = [&](Word real) { return make(spv::Op::OpBitcast, Type::u32, {real}); };
  const Word kind = make(spv::Op::OpRayQueryGetIntersectionTypeKHR, Type::u32, {query, committed});
  const Word hit = make(spv::Op::OpIEqual, Type::b1, {kind, w_.u32(kTriangle)});
  const Word triangle = make(spv::Op::OpRayQueryGetIntersectionPrimitiveIndexKHR, Type::u32, {query, committed});
  const Word t = make(spv::Op::OpRayQueryGetIntersectionTKHR, Type::f32, {query, committed});
  const Word weights =
      make(spv::Op::OpRayQueryGetIntersectionBarycentricsKHR, w_.vector_type(Type::f32, 2), {query, committed});
  const auto weight = [&](Word k) { return word_of(make(spv::Op::OpCompositeExtract, Type::f32, {weights, k})); };
  const Word first = choose(Type::u32, hit, triangle, w_.u32(~0u)), second = word_of(t);
  const Word third = weight(0), fourth = weight(1);
  return make(spv::Op::OpCompositeConstruct, w_.vector_type(Type::u32, 4), {first, second, third, fourth});
}

}  // namespace weft::spirv
