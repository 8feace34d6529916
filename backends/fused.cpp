// The question to a device whether it rounds fma once.
#include <cmath>
#include <cstring>
#include <vector>

#include "../frontend/ir/builder.h"
#include "../frontend/support/error.h"
#include "backend.h"

namespace weft::backend {

namespace {

constexpr std::uint32_t kArray = 8, kNumbers = 24;  // places in the argument block

/// out[0] = fma(a, b, c), of arguments, so that no compiler knows the result.
template <class T>
ir::Module fma_of_arguments() {
  const ir::Type type = sizeof(T) == 4 ? ir::Type::f32 : ir::Type::f64;
  ir::Module m;
  m.name = "fma";
  m.args_bytes = kNumbers + 3 * sizeof(T);
  m.block = 1;
  ir::Param out;
  out.name = "out";
  out.type_name = "Array";
  out.kind = ir::Param::Kind::array;
  out.ndim = 1;
  out.offset = kArray;
  out.bytes = 12;
  out.element_bytes = out.element_align = sizeof(T);
  out.access = ir::Access::write;
  m.params.push_back(out);
  ir::Builder b(m);
  const auto number = [&](std::uint32_t k) { return b.arg(type, kNumbers + k * std::uint32_t(sizeof(T))); };
  const ir::Id result = b.pure(ir::Op::fma, type, {number(0), number(1), number(2)});
  b.store(type, {&result, 1},
          {b.arg(ir::Type::u64, kArray), b.constant(ir::Type::i32, 0), sizeof(T), 0, std::uint32_t(sizeof(T))});
  ir::verify(m);
  return m;
}

/// Memory for a result, which is freed whatever happens.
struct Result {
  explicit Result(Device& device) : owner(device), memory(device.allocate(256, MemoryKind::device)) {}
  Result(const Result&) = delete;
  ~Result() { owner.free(memory); }
  Device& owner;
  const Allocation memory;
};

/// Runs a * a - round(a * a): the rounding error of the product if it is fused, else 0.
template <class T>
bool is_fused(Device& device) {
  const ir::Module kernel = fma_of_arguments<T>();
  const T a = 1 + std::ldexp(T(1), sizeof(T) == 4 ? -12 : -27), numbers[] = {a, a, -(a * a)};
  const std::shared_ptr<Program> program = device.compile(kernel, ir::hash(kernel));
  const std::unique_ptr<Stream> stream = device.create_stream();
  const Result out(device);
  std::vector<std::byte> args(kernel.args_bytes);
  const std::uint32_t one = 1;
  std::memcpy(args.data(), &one, 4);
  std::memcpy(args.data() + kArray, &out.memory.address, 8);
  std::memcpy(args.data() + kArray + 8, &one, 4);
  std::memcpy(args.data() + kNumbers, numbers, sizeof numbers);
  const MemoryRange range{out.memory.address, sizeof(T), ir::Access::write};
  T result = 0;
  stream->download(&result, out.memory.address, sizeof(T), stream->launch(*program, {}, args, {&range, 1}));
  return result == std::fma(a, a, -(a * a));
}

}  // namespace

FusedTypes find_fused(Device& device) {
  FusedTypes found;
  found.f32 = is_fused<float>(device);
  try {
    found.f64 = is_fused<double>(device);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported) throw;
    found.f64 = false;  // a device without float64
  }
  return found;
}

}  // namespace weft::backend
