// Records ray queries.
#include "trace_ray.h"

#include "../language/trace.h"

namespace weft::detail {

TracedRay trace_ray(const Arr<std::uint8_t>& memory, const UInt64& number, const Vec3& origin, const Vec3& direction,
                    const Float& max_t, bool any, Loc loc) {
  tracing::CallPlace place(loc);
  ir::Builder& b = tracing::Trace::current(loc).builder();
  tracing::Id ids[9] = {memory.layout().base, In<std::uint64_t>(number, loc).id};
  const In<vec3> from(origin, loc), along(direction, loc);
  for (int k = 0; k < 3; ++k) ids[2 + k] = from.id[k], ids[5 + k] = along.id[k];
  ids[8] = In<float>(max_t, loc).id;
  const ir::Id all = b.trace_ray(any, ids, loc);
  const auto word = [&](int k) { return UInt(b.result(all, std::uint32_t(k), ir::Type::u32), FromId{}); };
  const UInt triangle = word(0), t = word(1), second = word(2), third = word(3);
  return {Int(triangle), bitcast<float>(t), bitcast<float>(second), bitcast<float>(third)};
}

}  // namespace weft::detail
