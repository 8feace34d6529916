// The stable hash of a module. It depends on behaviour, messages and the layout of arguments, but not on names, lines
// or dead instructions.
#include <string_view>

#include "module.h"

namespace weft::ir {
namespace {

/// A number that changes with the table of operations, so that one operation's number is never taken for another's.
constexpr std::uint64_t op_table_salt() {
  std::uint64_t h = 0xcbf29ce484222325ull;
  const char* names[] = {
#define WEFT_OP(name, arity, operands, result, effect, derivative, spread) #name,
#include "ops.def"
#undef WEFT_OP
  };
  for (const char* name : names) {
    for (; *name != 0; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 0x100000001b3ull;
    h = (h ^ 0xff) * 0x100000001b3ull;
  }
  return h;
}

/// Writes the module down in the order of execution, with values and locals numbered as they are met.
class Canonical {
 public:
  explicit Canonical(const Module& module)
      : module_(module), numbers_(module.insts.size(), kNone), locals_(module.locals.size(), kNone) {
    words_.reserve(64 + 6 * module.insts.size());
  }

  detail::Hash128 run() {
    put(op_table_salt());
    put(pack(module_.args_bytes, module_.tid_rank));
    put(pack(module_.tid_offset, module_.wide));
    put(pack(module_.block, static_cast<std::uint32_t>(module_.params.size())));
    put(pack(static_cast<std::uint32_t>(module_.arrays.size()), module_.by_handles));
    for (const Param& param : module_.params) parameter(param);
    if (module_.report_offset != 0) {
      put(pack(module_.report_offset, static_cast<std::uint32_t>(module_.messages.size())));
      for (const Message& m : module_.messages) message(m);
    }
    for (const auto& function : module_.functions) {
      put(pack(function->derivatives.gradient, function->derivatives.replay));
      Canonical canonical(*function);
      canonical.region(0);
      put(canonical.words_.size());
      words_.insert(words_.end(), canonical.words_.begin(), canonical.words_.end());
    }
    for (const KernelArray& array : module_.arrays)
      put(pack(array.count,
               static_cast<std::uint32_t>(array.type) | (array.words ? 256u : 0u) | (array.is_private ? 512u : 0u)));
    region(0);
    return detail::hash128(std::as_bytes(std::span(words_)));
  }

 private:
  enum Mark : std::uint64_t { kRegionBegin = 0xffff'0001, kRegionEnd, kNoRegion };

  static constexpr std::uint64_t pack(std::uint32_t a, std::uint32_t b) { return a | std::uint64_t{b} << 32; }
  void put(std::uint64_t word) { words_.push_back(word); }

  void parameter(const Param& param) {
    // The accesses are hashed because the code need not contain all of them: see forward().
    const std::uint32_t access = static_cast<std::uint32_t>(param.access) << 16;
    put(pack(static_cast<std::uint32_t>(param.kind), param.ndim | (param.strided ? 256u : 0u) | access));
    put(pack(param.offset, param.bytes));
    text(param.type_name);
  }

  void text(std::string_view text) {
    put(text.size());
    put(detail::hash64(text));
  }

  /// Lines count as well, because a program that is found by its hash tells the user where a message comes from.
  void message(const Message& message) {
    put(pack(static_cast<std::uint32_t>(message.kind), static_cast<std::uint32_t>(message.pieces.size())));
    text(message.loc ? message.loc.file : "");
    put(static_cast<std::uint64_t>(message.loc.line));
    for (const MessagePiece& piece : message.pieces) {
      text(piece.text);
      put(static_cast<std::uint64_t>(piece.type) | (piece.composite ? 256u : 0u) | (piece.joined ? 512u : 0u));
      put(pack(piece.rows, piece.columns));
    }
  }

  void region(RegionId id) {
    if (id >= module_.regions.size()) return put(kNoRegion);
    put(kRegionBegin);
    for (Id inst : module_.regions[id].insts) instruction(inst);
    put(kRegionEnd);
  }

  void instruction(Id id) {
    const Inst& inst = module_.insts[id];
    // Operands that belong to no region are written down before their first use.
    for (Id arg : module_.args(id)) {
      if (numbers_[arg] == kNone && is_global(module_.insts[arg].op)) record(arg);
    }
    record(id);
    for (Id arg : module_.args(id)) put(numbers_[arg]);
    if (inst.op == Op::if_ || inst.op == Op::loop) {
      for (RegionId r : inst.regions) region(r);
    }
  }

  void record(Id id) {
    const Inst& inst = module_.insts[id];
    numbers_[id] = next_++;
    put(static_cast<std::uint64_t>(inst.op) | static_cast<std::uint64_t>(inst.type) << 8 |
        std::uint64_t{inst.width} << 16 | std::uint64_t{inst.align} << 24 | std::uint64_t{inst.num_args} << 32);
    std::uint64_t imm = inst.imm;
    if (inst.op == Op::local_get || inst.op == Op::local_set) {
      std::uint32_t& local = locals_[inst.imm];
      if (local == kNone) local = next_local_++;
      imm = pack(local, static_cast<std::uint32_t>(module_.locals[inst.imm].type));
    }
    put(imm);
    if (inst.stride != 0 || inst.offset != 0) put(pack(inst.stride, inst.offset));
  }

  const Module& module_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> numbers_, locals_;
  std::uint32_t next_ = 0, next_local_ = 0;
};

}  // namespace

detail::Hash128 hash(const Module& module) { return Canonical(module).run(); }

}  // namespace weft::ir
