// The state of one translation, shared by emit.cpp (the shader as a whole), emit_control.cpp (values and control flow),
// emit_ops.cpp, emit_convert.cpp, emit_memory.cpp, emit_group.cpp (atomic operations, work of threads together) and
// emit_ray.cpp.
#pragma once
#include <spirv/unified1/GLSL.std.450.h>

#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capabilities.h"
#include "emit.h"
#include "writer.h"

namespace weft::spirv {

/// The state that all bodies of a shader share, of every kernel.
struct Common {
  explicit Common(const Target& target) : target(target) {}

  const Target& target;
  Writer writer;
  Word glsl = 0;  ///< the set of extended instructions
  // Built-in variables: those of subgroups if a kernel uses them, otherwise `local`.
  Word group = 0, groups = 0, local = 0, subgroup = 0, lane = 0;
  std::vector<Word> interface;  ///< variables that the entry point names
  Word launch = 0;  ///< in a chain, each thread's variable with the address of the launch's argument block; else 0
  /// Threads exchange data by Vulkan's memory model, access by access and within the workgroup; otherwise through
  /// memory marked as coherent, which is so for the whole device.
  bool within_workgroup = false;

  void declare_builtins(bool subgroups);
};

/// The entry point of a shader.
struct EntryPoint {
  Word id;
  std::uint32_t threads;                            ///< of a workgroup
  std::vector<std::pair<Word, std::string>> names;  ///< of functions
};
/// Emits capabilities, memory model, entry point and execution modes.
Section header(const Common& common, const Needs& needs, const EntryPoint& main);
/// The module: `head`, what the writer has gathered, the functions.
std::vector<Word> module_words(const Common& common, const Section& head, std::span<const std::vector<Word>> code);

/// Makes all threads of the workgroup wait for each other, and see what the others have written.
void barrier(Writer& w, Section& out);

/// The state that the bodies of one kernel share: its own and those of its functions.
struct Shader {
  using Type = ir::Type;

  /// A member of the argument block's structure.
  struct Field {
    std::uint32_t offset;
    Type type;  ///< 32 or 64 bits wide
  };
  /// The target of a memory operation.
  struct Place {
    Type type;
    int width;
    std::uint32_t offset, stride;
    bool coherent = false;  ///< other threads may read, after a barrier, what a thread writes
    bool operator==(const Place&) const = default;
  };
  struct PlaceTypes {
    Word to_block, to_value;  ///< pointer types
  };
  struct PlaceHash {
    std::size_t operator()(const Place& p) const {
      std::uint64_t h = (std::uint64_t(p.offset) << 32 | p.stride) * 0x9e3779b97f4a7c15ull;
      h ^= std::uint64_t(p.type) << 8 | std::uint64_t(p.width) << 1 | std::uint64_t(p.coherent);
      return std::size_t((h ^ (h >> 31)) * 0xff51afd7ed558ccdull >> 16);
    }
  };
  /// A function as calls refer to it.
  struct Function {
    Word id = 0, result_type = 0;
  };

  Shader(const ir::Module& kernel, Common& common, ArgumentsIn where)
      : kernel(kernel),
        common(common),
        in_memory(where == ArgumentsIn::memory || kernel.args_bytes > kPushConstantBytes),
        needs(survey(kernel, common.target, in_memory)),
        group_use(ir::group_use(kernel)) {
    arrays.assign(kernel.arrays.size(), 0);
  }
  /// Whether the argument block is read through an address, rather than as push constants.
  bool arguments_in_memory() const { return in_memory; }

  const ir::Module& kernel;
  Common& common;
  const bool in_memory;
  Needs needs;
  ir::GroupUse group_use;
  Word push = 0, arguments = 0;  ///< variable of the push constants; pointer to the argument block in memory
  std::vector<Word> arrays;      ///< variables, by kernel array
  std::vector<Field> fields;
  std::unordered_map<Place, PlaceTypes, PlaceHash> places;
  std::vector<Function> functions;  ///< by number
};

/// Translates one body: a kernel's, which becomes the entry point or a step of a chain, or a function's.
class Emitter {
 public:
  Emitter(const ir::Module& body, Shader& shader);

  /// Declares the module's variables and constants that every body may use.
  void declare_arguments();
  /// The code of the kernel's body, from its OpFunction on.
  std::vector<Word> entry_point(Word main);
  /// The code of a function; `made` receives its names.
  std::vector<Word> function(Shader::Function& made);

 private:
  using Id = ir::Id;
  using Inst = ir::Inst;
  using Type = ir::Type;
  using Field = Shader::Field;
  using Place = Shader::Place;
  using PlaceTypes = Shader::PlaceTypes;

  // ---- The body as a whole: emit.cpp

  /// How a region ended: whether control reaches its end, and with which `yield` (kNone: without).
  struct Flow {
    bool falls = true;
    Id yield = ir::kNone;
  };
  struct Loop {
    Word merge, next;        ///< labels
    bool continued = false;  ///< some `continue` jumps to `next`
    std::vector<Word> carried;
  };

  // Numbers of the thread, computed once per body when first used.
  Word thread_number();
  Word workgroup_number();
  Word local_number();
  Word subgroup_number();
  Word lane_number();
  /// The code: `head`, then the entry block with the variables, then the body.
  std::vector<Word> assemble(const Section& head) const;

  // ---- Values and control flow: emit_control.cpp

  Flow emit_region(ir::RegionId region);
  bool emit_if(Id id);
  void emit_loop(Id id);
  void emit_guarded_loop(Id id);
  void emit_plain_loop(Id id);
  void emit_inst(Id id);
  Word call(Id id);
  Word call_result(Id id);

  void open_block(Word label);
  void branch(Word label) { body_.emit(spv::Op::OpBranch, {label}); }

  /// The SPIR-V id of an IR value; constants, arguments and the thread number are created at their first use.
  Word value(Id id);
  Word local(std::uint64_t number);
  /// Whether the value exists in the entry block, so that values derived from it can be computed there.
  bool is_uniform_entry(Id id) const;

  // ---- Arithmetic: emit_ops.cpp

  Word pure(Id id);
  Word unary(ir::Op op, Type t, Word x);
  Word popcount(Type t, Word x);
  Word binary(ir::Op op, Type t, Word x, Word y);
  Word integer_divide(Id id, Type t);
  Word real_remainder(Type t, Word x, Word y);
  Word fma(Type t, Word a, Word b, Word c);
  Word whole(ir::Op op, Type t, Word x);
  Word power(Type t, Word x, Word y);
  Word shift(Id id, Type t);
  Word compare(Id id);
  /// An extended function in float32; the result has type t, through float32 for float16.
  Word function(Type t, GLSLstd450 f, Word x);
  Word function(Type t, GLSLstd450 f, Word x, Word y);
  Word tanh32(Word x);

  /// A new value: result type, operands.
  Word make(spv::Op op, Word type, std::initializer_list<Word> operands);
  Word make(spv::Op op, Type t, std::initializer_list<Word> operands) { return make(op, w_.type(t), operands); }
  /// Float arithmetic that must not be contracted.
  Word real(spv::Op op, Type t, std::initializer_list<Word> operands);
  Word ext(GLSLstd450 f, Type t, std::initializer_list<Word> operands);
  Word choose(Type t, Word condition, Word yes, Word no) { return make(spv::Op::OpSelect, t, {condition, yes, no}); }
  Word number(Type t, double x);

  // ---- Change of type: emit_convert.cpp

  Word convert(Type from, Type to, Word x);
  Word integer_to_integer(Type from, Type to, Word x);
  Word integer_to_real(Type from, Type to, Word x);
  Word real_to_integer(Type from, Type to, Word x);
  Word real_to_real(Type from, Type to, Word x);
  Word double_to_half(Word x);
  Word round_to_odd(Word bits, Word inexact, Word outward);
  Word bool_to_number(Type to, Word x);
  /// Widens a narrow integer to 32 bits of the same signedness; others stay as they are.
  Word widen_integer(Type t, Word x);
  Word reinterpret(Type from, Type to, Word x);
  /// Convert float16 to float32 and back.
  Word up(Word x) { return make(spv::Op::OpFConvert, Type::f32, {x}); }
  Word down(Word x) { return make(spv::Op::OpFConvert, Type::f16, {x}); }

  // ---- Arguments and memory: emit_memory.cpp

  struct BaseKey {
    Id base;
    Word pointer_type;
    std::uint64_t added;
    bool operator==(const BaseKey&) const = default;
  };
  struct BaseHash {
    std::size_t operator()(const BaseKey& k) const {
      std::uint64_t h = (std::uint64_t(k.base) << 32 | k.pointer_type) * 0x9e3779b97f4a7c15ull ^ k.added;
      return std::size_t((h ^ (h >> 31)) * 0xff51afd7ed558ccdull >> 16);
    }
  };

  Word argument(Type t, std::uint32_t offset);
  Word load_field(std::size_t number);
  Word read_word(std::uint32_t offset);
  const PlaceTypes& place_types(const Place& place);
  Word base_pointer(Id base, std::uint64_t added, Word pointer_type);
  Word index_word(Id index, bool to_64_bits);
  /// A pointer to the instruction's memory, as a value of type t (a vector for width > 1).
  Word pointer(const Inst& inst, Id base, Id index, Type t, std::uint8_t width);
  /// Whether a vector of 32-bit components is accessed as 64-bit words.
  bool in_words(const Inst& inst) const;
  Word load(Id id);
  void store(Id id);
  bool is_coherent(const Inst& inst, Id base) const;
  std::size_t access_words(const Inst& inst, Id base, spv::MemoryAccessMask sees, Word* to);

  // ---- Threads together: emit_group.cpp

  /// The index, u32, of the first scalar of its array that an access of workgroup memory touches.
  Word own_index(Id id);
  Word own_pointer(std::uint64_t array, Word index);
  /// The type in which an array's scalars are stored in workgroup memory.
  Type own_type(std::uint64_t array) const;
  Word own_load(Id id);
  void own_store(Id id);

  /// A scalar's bits as an unsigned integer of 32 bits, or 64 for wide types, and back.
  Word to_bits(Type t, Word x);
  Word from_bits(Type t, Word bits);

  Word atomic(Id id);
  Word atomic(Id id, Word what);
  void gather(std::span<const Id> parts);
  Word native_atomic(Id id, Word at, Word what);
  /// do { old = load; } while (compare-exchange(old -> after(old)) fails), on an unsigned integer of type t; returns
  /// the last old.
  template <class F>
  Word exchange_loop(Type t, Word at, Word scope, F after);
  Word narrow_atomic(Id id, Word at, Word shift, Word what);
  /// The new value of a scalar after an atomic operation that computes.
  Word combined(ir::Op op, Type t, Word before, Word what);

  void emit_barrier();
  void subgroup_barrier();
  void emit_fence();
  Word subgroup(Id id);
  Word subgroup_reduction(const Inst& inst, Word x);

  // ---- Rays: emit_ray.cpp

  Word trace_ray(Id id);

  const ir::Module& module_;
  Shader& shader_;
  const Target& target_;
  const Needs& needs_;
  Writer& w_;
  Section entry_;   ///< the entry block: values computed once, before the rest
  Section locals_;  ///< variables of the function
  Section body_;
  Section* out_ = &body_;  ///< receives what make() appends

  Word block_ = 0;
  Word thread_ = 0, wide_thread_ = 0, workgroup_ = 0, local_id_ = 0, subgroup_ = 0, lane_ = 0;
  Word ballot_ = 0, ballot_block_ = 0;  ///< the last ballot, its block and operand
  Id ballot_of_ = ir::kNone;

  std::vector<Word> value_;  ///< by instruction; for `if_` and `loop`: first of their results in results_
  std::vector<Word> results_;
  std::vector<Word> local_;
  std::vector<Loop> loops_;
  std::vector<Word> inputs_;  ///< inputs of a function
  std::vector<Word> fields_;  ///< by field: its value, once loaded
  std::unordered_map<BaseKey, Word, BaseHash> bases_;
};

}  // namespace weft::spirv
