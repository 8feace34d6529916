// The printed form of a module.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

#include "evaluate.h"
#include "module.h"
#include "number.h"

namespace weft::ir {
namespace {

/// Prints a module. Values and locals are numbered in the order in which they are met, so that equal kernels print
/// equally.
class Printer {
 public:
  Printer(const Module& module, bool lines)
      : module_(module), lines_(lines), numbers_(module.insts.size(), kNone), locals_(module.locals.size(), kNone) {}

  std::string run() {
    for (std::size_t i = 0; i < module_.functions.size(); ++i) {
      const Module& function = *module_.functions[i];
      out_ += fmt::format("func{} \"{}\"", i, function.function);
      const Derivatives& own = function.derivatives;
      if (own.gradient != kNone) out_ += fmt::format(", gradient func{}", own.gradient);
      if (own.replay != kNone) out_ += fmt::format(", replay func{}", own.replay);
      out_ += "\n{\n";
      Printer printer(function, lines_);
      printer.region(0, 1);
      out_ += printer.out_ + "}\n";
    }
    out_ += fmt::format("kernel \"{}\": {} threads a workgroup, {} bytes of arguments", module_.name, module_.block,
                        module_.args_bytes);
    if (module_.tid_rank > 0) out_ += fmt::format(", tid of {}", module_.tid_rank);
    if (module_.wide) out_ += ", wide";
    if (module_.by_handles) out_ += ", by handles";
    out_ += '\n';
    for (std::size_t i = 0; i < module_.params.size(); ++i) parameter(i, module_.params[i]);
    for (std::size_t i = 0; i < module_.arrays.size(); ++i) {
      const KernelArray& array = module_.arrays[i];
      out_ += fmt::format("  {}{}: {} {}{}\n", array.is_private ? "private" : "shared", i, array.count,
                          ir::name(array.type), array.words ? " in words" : "");
    }
    if (module_.report_offset != 0) {
      out_ += fmt::format("  reports at {}, {} bytes\n", module_.report_offset, report::kArgumentBytes);
      for (std::size_t i = 0; i < module_.messages.size(); ++i) message(i, module_.messages[i]);
    }
    out_ += "{\n";
    region(0, 1);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void parameter(std::size_t number, const Param& param) {
    out_ += fmt::format("  arg{} {}: {}", number, param.name, param.type_name);
    if (param.kind == Param::Kind::absent) out_ += " absent";
    if (param.strided) out_ += " strided";
    if (param.read_only) out_ += " const";
    out_ += fmt::format(" at {}, {} bytes", param.offset, param.bytes);
    if (any(param.access, Access::read)) out_ += ", read";
    if (any(param.access, Access::write)) out_ += ", written";
    if (any(param.access, Access::atomic)) out_ += ", atomic";
    out_ += '\n';
  }

  void message(std::size_t number, const Message& message) {
    constexpr const char* kinds[] = {"print", "assertion", "index", "range", "division", "not_finite", "gradient"};
    out_ += fmt::format("  message{} {}:", number, kinds[static_cast<int>(message.kind)]);
    for (const MessagePiece& piece : message.pieces) {
      if (piece.is_text()) {
        out_ += fmt::format(" \"{}\"", piece.text);
      } else {
        out_ += fmt::format(" {}", ir::name(piece.type));
        if (piece.scalars() != 1) out_ += fmt::format("[{}x{}]", piece.rows, piece.columns);
      }
    }
    out_ += '\n';
  }

  void indent(int depth) { out_.append(static_cast<std::size_t>(depth) * 2, ' '); }

  void number(std::uint32_t n) {
    char text[12];
    out_.append(text, std::to_chars(text, text + sizeof text, n).ptr);
  }

  void region(RegionId id, int depth) {
    // Printing must not crash on a malformed module, because it serves to debug one.
    if (id >= module_.regions.size() || depth > 1000) {
      indent(depth);
      out_ += "<no such region>\n";
      return;
    }
    for (Id inst : module_.regions[id].insts) {
      indent(depth);
      if (inst >= module_.insts.size()) {
        out_ += "<no such instruction>\n";
      } else {
        instruction(inst, depth);
      }
    }
  }

  void instruction(Id id, int depth) {
    const Inst& inst = module_.insts[id];
    if (is_memory(inst.op)) {
      if (inst.op != Op::store) define(id);
      memory(id);
      return end_line(inst);
    }
    // Control operations and calls get a number only if results are read by it.
    if (inst.type != Type::none && inst.op != Op::local_set) define(id);
    switch (inst.op) {
      case Op::if_: return print_if(id, depth);
      case Op::loop: return print_loop(id, depth);
      case Op::local_get:
        out_ += "local_get ";
        local(inst);
        break;
      case Op::local_set:
        out_ += "local_set ";
        local(inst);
        out_ += " = ";
        values(id, 0);
        break;
      case Op::call:
        if (is_read(id)) define(id);
        out_ += fmt::format("call func{}", inst.imm);
        if (inst.num_args > 0) out_ += ' ';
        values(id, 0);
        break;
      case Op::param: out_ += fmt::format("param {} {}", ir::name(inst.type), inst.imm); break;
      case Op::result:
        out_ += fmt::format("result {} ", ir::name(inst.type));
        values(id, 0);
        out_ += fmt::format(".{}", inst.imm);
        break;
      default:
        out_ += op_name(inst.op);
        if (is_subgroup(inst.op)) subgroup_detail(inst);
        if (is_contractible(inst.op, inst.type)) rounding_detail(inst);
        if (inst.type != Type::none) {
          out_ += ' ';
          out_ += ir::name(inst.type);
        }
        if (inst.num_args > 0) {
          out_ += ' ';
          values(id, 0);
        }
    }
    end_line(inst);
  }

  void define(Id id) {
    numbers_[id] = next_++;
    out_ += '%';
    number(numbers_[id]);
    out_ += " = ";
  }

  void end_line(const Inst& inst) {
    if (lines_ && inst.file != nullptr) {
      std::string_view file = inst.file;
      if (auto slash = file.find_last_of("/\\"); slash != file.npos) file.remove_prefix(slash + 1);
      out_ += fmt::format("  ; {}:{}", file, inst.line);
    }
    out_ += '\n';
  }

  /// Returns whether a `result` reads the call.
  bool is_read(Id call) {
    if (read_.empty()) {
      read_.assign(module_.insts.size(), 0);
      for (const Inst& inst : module_.insts) {
        if (inst.op != Op::result || inst.num_args != 1 || inst.first_arg >= module_.operands.size()) continue;
        if (const Id source = module_.operands[inst.first_arg]; source < read_.size()) read_[source] = 1;
      }
    }
    return read_[call] != 0;
  }

  bool has_results(const Inst& inst) const {
    if (inst.op == Op::loop) return inst.num_args > 0;
    if (inst.regions[0] >= module_.regions.size()) return false;
    const auto& list = module_.regions[inst.regions[0]].insts;
    return !list.empty() && list.back() < module_.insts.size() && module_.insts[list.back()].op == Op::yield;
  }

  void print_if(Id id, int depth) {
    const Inst& inst = module_.insts[id];
    if (has_results(inst)) define(id);
    out_ += "if ";
    values(id, 0);
    out_ += " {";
    end_line(inst);
    region(inst.regions[0], depth + 1);
    if (inst.regions[1] != kNone) {
      indent(depth);
      out_ += "} else {\n";
      region(inst.regions[1], depth + 1);
    }
    indent(depth);
    out_ += "}\n";
  }

  void print_loop(Id id, int depth) {
    const Inst& inst = module_.insts[id];
    if (has_results(inst)) define(id);
    out_ += "loop";
    if (inst.num_args > 0) {
      out_ += " (";
      values(id, 0);
      out_ += ')';
    }
    out_ += " while {";
    end_line(inst);
    region(inst.regions[0], depth + 1);
    indent(depth);
    out_ += "} do {\n";
    region(inst.regions[1], depth + 1);
    if (inst.regions[2] != kNone) {
      indent(depth);
      out_ += "} step {\n";
      region(inst.regions[2], depth + 1);
    }
    indent(depth);
    out_ += "}\n";
  }

  void memory(Id id) {
    const Inst& inst = module_.insts[id];
    out_ += op_name(inst.op);
    out_ += ' ';
    out_ += ir::name(inst.type);
    if (inst.width > 1) out_ += fmt::format("x{}", inst.width);
    out_ += ' ';
    operand(id, 0);
    out_ += '[';
    operand(id, 1);
    out_ += fmt::format("] stride {}", inst.stride);
    if (inst.offset != 0) out_ += fmt::format(" offset {}", inst.offset);
    out_ += fmt::format(" align {}", inst.align);
    if (inst.op == Op::atomic_add && inst.imm == kGather) out_ += " gathered";
    if (inst.num_args > 2) {
      out_ += " = ";
      values(id, 2);
    }
  }

  void subgroup_detail(const Inst& inst) {
    if (inst.op == Op::subgroup_ballot) {
      out_ += fmt::format(".{}", inst.imm);
    } else if (inst.op >= Op::subgroup_reduce && inst.op <= Op::subgroup_exclusive) {
      out_ += fmt::format(".{}", inst.imm < static_cast<std::uint64_t>(Op::count) ? op_name(Op(inst.imm)) : "?");
    }
  }

  void rounding_detail(const Inst& inst) {
    if (inst.imm == kRounded)
      out_ += ".rounded";
    else if (inst.imm != 0)
      out_ += fmt::format(".in{}", inst.imm);
  }

  void local(const Inst& inst) {
    if (inst.imm >= locals_.size()) {
      out_ += "<no such local>";
      return;
    }
    if (locals_[inst.imm] == kNone) locals_[inst.imm] = next_local_++;
    out_ += ir::name(module_.locals[inst.imm].type);
    out_ += " $";
    number(locals_[inst.imm]);
  }

  void values(Id id, std::uint32_t first) {
    for (std::uint32_t k = first; k < module_.insts[id].num_args; ++k) {
      if (k > first) out_ += ", ";
      operand(id, k);
    }
  }

  void operand(Id id, std::uint32_t k) {
    const Inst& user = module_.insts[id];
    if (k >= user.num_args || std::size_t{user.first_arg} + k >= module_.operands.size()) {
      out_ += "<no such operand>";
      return;
    }
    const Id value = module_.operands[user.first_arg + k];
    if (value >= module_.insts.size()) {
      out_ += "<no such value>";
      return;
    }
    const Inst& inst = module_.insts[value];
    switch (inst.op) {
      case Op::constant: return literal(inst.type, inst.imm);
      case Op::arg: return argument(inst);
      case Op::thread_id: out_ += "tid"; return;
      case Op::kernel_array: {
        const KernelArray* array = module_.kernel_array_of(value);
        out_ += fmt::format("{}{}", array && array->is_private ? "private" : "shared", inst.imm);
        return;
      }
      default: break;
    }
    if (is_global(inst.op)) {
      out_ += op_name(inst.op);
      return;
    }
    if (numbers_[value] == kNone) {
      out_ += "<value that is not defined here>";
      return;
    }
    out_ += '%';
    number(numbers_[value]);
  }

  void argument(const Inst& inst) {
    for (std::size_t i = 0; i < module_.params.size(); ++i) {
      const Param& param = module_.params[i];
      if (inst.imm < param.offset || inst.imm >= std::uint64_t{param.offset} + param.bytes) continue;
      out_ += fmt::format("arg{}", i);
      if (inst.imm != param.offset) out_ += fmt::format("+{}", inst.imm - param.offset);
      // The address of an array is recognised without its type.
      if (param.kind == Param::Kind::array && inst.imm == param.offset && inst.type == Type::u64) return;
      out_ += fmt::format(":{}", ir::name(inst.type));
      return;
    }
    out_ += fmt::format("args+{}:{}", inst.imm, ir::name(inst.type));
  }

  void literal(Type type, std::uint64_t bits) {
    out_ += number_text(type, bits);
    if (is_bool(type)) return;
    // The bits of a NaN are printed, because the kernel may depend on them.
    const bool nan = is_float(type) && std::isnan(to_double(type, bits));
    out_ += nan ? fmt::format("_{}(0x{:x})", ir::name(type), bits)
                : fmt::format("{}{}", is_float(type) && std::isinf(to_double(type, bits)) ? "_" : "", ir::name(type));
  }

  static const char* op_name(Op op) {
    switch (op) {
      case Op::break_: return "break";
      case Op::continue_: return "continue";
      case Op::return_: return "return";
      default: return info(op).name;
    }
  }

  const Module& module_;
  bool lines_;
  std::string out_;
  std::vector<std::uint32_t> numbers_, locals_;
  std::vector<char> read_;
  std::uint32_t next_ = 0, next_local_ = 0;
};

}  // namespace

std::string print(const Module& module, bool lines) { return Printer(module, lines).run(); }

}  // namespace weft::ir
