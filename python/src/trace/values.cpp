// Places, constants, operators and variables of the kernel that Python traces.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <mutex>
#include <set>

#include "../../../frontend/ir/evaluate.h"
#include "../../../frontend/language/flatten.h"
#include "../module.h"
#include "../types.h"
#include "ids.h"

namespace weft::python {

using ir::Op;
using ir::Type;

namespace {

thread_local Loc current_place{"<python>", 0};

ir::Builder& builder() { return tracing::Trace::current(here()).builder(); }

Op op_from(int op) {
  if (op < 0 || op >= int(Op::count)) throw nb::value_error("no operation has this number");
  return Op(op);
}

/// An operation of numbers that Python may ask for: those with effects or rules of their own have functions of theirs.
Op operator_from(int given, int arity) {
  const Op op = op_from(given);
  const ir::OpInfo& info = ir::info(op);
  const bool pure = info.effect == ir::Effect::pure && op != Op::gradient_base && op != Op::after_base;
  if (info.arity != arity || !pure || info.result == ir::ResultRule::given)
    throw nb::value_error("this is no operator of as many operands");
  return op;
}

[[noreturn]] void mismatch(const char* what, Type a, Type b) {
  throw nb::type_error(
      (std::string(what) + ": operands of different types " + ir::user_name(a) + " and " + ir::user_name(b)).c_str());
}

bool accepts(ir::OperandClass operands, Type type) {
  switch (operands) {
    case ir::OperandClass::any: return true;
    case ir::OperandClass::numeric: return ir::is_numeric(type);
    case ir::OperandClass::integer: return ir::is_int(type);
    case ir::OperandClass::real: return ir::is_float(type);
    case ir::OperandClass::logical: return ir::is_int(type) || ir::is_bool(type);
    case ir::OperandClass::boolean: return ir::is_bool(type);
    case ir::OperandClass::special: return false;
  }
  return false;
}

void expect_operand(Op op, Type type) {
  if (!accepts(ir::info(op).operands, type))
    throw nb::type_error(
        (std::string(ir::info(op).name) + ": no operand may be of type " + ir::user_name(type)).c_str());
}

/// The number of components of operands of which single numbers stand for all.
std::size_t common_count(std::initializer_list<std::size_t> counts, const char* what) {
  std::size_t most = 1;
  for (const std::size_t n : counts) most = std::max(most, n);
  for (const std::size_t n : counts)
    if (n != most && n != 1) throw nb::type_error((std::string(what) + ": operands of different sizes").c_str());
  return most;
}

Id at(const Ids& ids, std::size_t k) { return ids[ids.size() == 1 ? 0 : k]; }

Ids unary(int given, const Ids& a) {
  const Op op = operator_from(given, 1);
  check_ids(a.span());
  Ids out(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    expect_operand(op, type_of(a[k]));
    out[k] = tracing::unary(op, a[k], here());
  }
  return out;
}

Ids binary(int given, const Ids& a, const Ids& b) {
  const Op op = operator_from(given, 2);
  check_ids(a.span());
  check_ids(b.span());
  Ids out(common_count({a.size(), b.size()}, ir::info(op).name));
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Type type = type_of(at(a, k));
    expect_operand(op, type);
    if (type_of(at(b, k)) != type) mismatch(ir::info(op).name, type, type_of(at(b, k)));
    out[k] = tracing::binary(op, at(a, k), at(b, k), here());
  }
  return out;
}

Ids ternary(int given, const Ids& a, const Ids& b, const Ids& c) {
  const Op op = operator_from(given, 3);
  for (const Ids* ids : {&a, &b, &c}) check_ids(ids->span());
  Ids out(common_count({a.size(), b.size(), c.size()}, ir::info(op).name));
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Type type = type_of(at(a, k));
    expect_operand(op, type);
    for (const Ids* ids : {&b, &c})
      if (type_of(at(*ids, k)) != type) mismatch(ir::info(op).name, type, type_of(at(*ids, k)));
    out[k] = tracing::ternary(op, at(a, k), at(b, k), at(c, k), here());
  }
  return out;
}

/// Chooses between values; by component if there are as many conditions.
Ids select(const Ids& condition, const Ids& a, const Ids& b) {
  for (const Ids* ids : {&condition, &a, &b}) check_ids(ids->span());
  Ids out(common_count({condition.size(), a.size(), b.size()}, "select"));
  for (std::size_t k = 0; k < out.size(); ++k) {
    expect_type(at(condition, k), Type::b1, "the condition of select");
    if (type_of(at(a, k)) != type_of(at(b, k))) mismatch("select", type_of(at(a, k)), type_of(at(b, k)));
    out[k] = tracing::ternary(Op::select, at(condition, k), at(a, k), at(b, k), here());
  }
  return out;
}

Id constant(int code, nb::handle number) {
  const Type type = type_from_code(code);
  ir::Builder& b = builder();
  if (ir::is_float(type)) {
    const double value = PyFloat_AsDouble(number.ptr());
    if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
    return tracing::literal_real(type, value, here());
  }
  if (ir::is_bool(type)) {
    const int truth = PyObject_IsTrue(number.ptr());
    if (truth < 0) throw nb::python_error();
    return b.constant(type, std::uint64_t(truth));
  }
  if (PyFloat_Check(number.ptr())) throw nb::type_error("a real number is no integer");
  const nb::object index = nb::steal(PyNumber_Index(number.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  const unsigned long long bits = PyLong_AsUnsignedLongLongMask(index.ptr());
  if (bits == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw nb::python_error();
  return b.constant(type, bits);
}

nb::object known(Id id) {
  check_id(id);
  const ir::Inst& inst = builder().module()[id];
  if (inst.op != Op::constant) return nb::none();
  if (ir::is_float(inst.type)) return nb::float_(ir::to_double(inst.type, inst.imm));
  if (ir::is_bool(inst.type)) return nb::bool_(inst.imm != 0);
  if (!ir::is_signed(inst.type)) return nb::int_(inst.imm);
  const int unused = 64 - ir::bits(inst.type);
  return nb::int_(std::int64_t(inst.imm << unused) >> unused);
}

Ids convert(int code, const Ids& ids) {
  const Type type = type_from_code(code);
  check_ids(ids.span());
  Ids out(ids.size());
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const Type from = type_of(ids[k]);
    out[k] = from == type       ? ids[k]
             : type == Type::b1 ? tracing::binary(Op::ne, ids[k], tracing::zero(from), here())
                                : tracing::convert(type, ids[k], here());
  }
  return out;
}

Ids bitcast(int code, const Ids& ids) {
  const Type type = type_from_code(code);
  check_ids(ids.span());
  Ids out(ids.size());
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const Type from = type_of(ids[k]);
    if (ir::bits(from) != ir::bits(type) || ir::is_bool(from)) mismatch("a cast by bits", from, type);
    out[k] = from == type ? ids[k] : tracing::bitcast(type, ids[k], here());
  }
  return out;
}

Ids zeros_of(const DType& type) {
  builder();
  Ids out(std::size_t(type.count()));
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = tracing::zero(type.leaves[k].type);
  return out;
}

Id all_equal(const Ids& a, const Ids& b) {
  check_ids(a.span());
  check_ids(b.span());
  expect_count(b.size(), a.size(), "a comparison");
  if (a.size() == 0) return builder().constant(Type::b1, 1);
  for (std::size_t k = 0; k < a.size(); ++k)
    if (type_of(a[k]) != type_of(b[k])) mismatch("a comparison", type_of(a[k]), type_of(b[k]));
  return tracing::all_equal(a.data(), b.data(), int(a.size()), here());
}

Ids matmul(const Ids& a, const Ids& b, int rows, int inner, int columns) {
  check_ids(a.span());
  check_ids(b.span());
  if (rows < 1 || inner < 1 || columns < 1) throw nb::value_error("a matrix has no rows or columns");
  expect_count(a.size(), std::size_t(rows * inner), "a product of matrices");
  expect_count(b.size(), std::size_t(inner * columns), "a product of matrices");
  if (type_of(a[0]) != type_of(b[0])) mismatch("a product of matrices", type_of(a[0]), type_of(b[0]));
  Ids out(std::size_t(rows * columns));
  tracing::matmul(a.data(), b.data(), rows, inner, columns, out.data(), here());
  return out;
}

Ids pick(const Ids& values, int n, int step, Id index) {
  check_ids(values.span());
  check_id(index);
  if (n < 1 || step < 1) throw nb::value_error("there is nothing to pick from");
  expect_count(values.size(), std::size_t(n * step), "a choice by index");
  Ids out{std::size_t(step)};
  for (int k = 0; k < step; ++k) out[std::size_t(k)] = tracing::pick(values.data() + k, n, step, index, here());
  return out;
}

// ---- Variables

/// A variable whose first value is known: as in C++, it becomes a local where it is assigned in a block or read in a
/// loop.
struct Variable {
  tracing::Slot slot;
  Type type;
};

/// The variables of the kernel that this thread traces, and of the functions in it. A deque, because a Slot that moves
/// would be read.
std::deque<Variable>& variables() {
  thread_local std::deque<Variable> all;
  return all;
}

/// Numbers from here on are variables, those below are locals of the module.
constexpr std::uint32_t kFirstVariable = 1u << 30;

std::vector<std::uint32_t> local(const DType& type, std::optional<Ids> first) {
  ir::Builder& b = builder();
  if (first) {
    check_ids(first->span());
    expect_count(first->size(), std::size_t(type.count()), "a variable");
  }
  std::vector<std::uint32_t> numbers;
  for (std::size_t k = 0; k < std::size_t(type.count()); ++k) {
    const Type scalar = type.leaves[k].type;
    if (first) {
      expect_type((*first)[k], scalar, "the first value of a variable");
      numbers.push_back(kFirstVariable + std::uint32_t(variables().size()));
      variables().push_back({tracing::Slot((*first)[k]), scalar});
    } else {
      numbers.push_back(b.local(scalar));
      b.local_set_in(0, numbers.back(), tracing::zero(scalar), here());
    }
  }
  return numbers;
}

Variable* variable_of(std::uint32_t number) {
  if (number < kFirstVariable) {
    if (number >= builder().module().locals.size()) throw nb::index_error("no variable has this number");
    return nullptr;
  }
  if (number - kFirstVariable >= variables().size()) throw nb::index_error("no variable has this number");
  return &variables()[number - kFirstVariable];
}

Ids get(const Ids& numbers) {
  ir::Builder& b = builder();
  Ids out(numbers.size());
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const Variable* const v = variable_of(numbers[k]);
    out[k] = v ? v->slot.read(here()) : b.local_get(numbers[k], here());
  }
  return out;
}

void set(const Ids& numbers, const Ids& values) {
  ir::Builder& b = builder();
  check_ids(values.span());
  expect_count(values.size(), numbers.size(), "an assignment");
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    Variable* const v = variable_of(numbers[k]);
    expect_type(values[k], v ? v->type : b.module().locals[numbers[k]].type, "an assigned value");
    if (v)
      v->slot.assign(values[k], here());
    else
      b.local_set(numbers[k], values[k], here());
  }
}

nb::tuple set_place(std::string_view file, int line) {
  const Loc before = current_place;
  current_place = place(file, line);
  return nb::make_tuple(before.file, before.line);
}

}  // namespace

Loc here() { return current_place; }
void set_here(Loc loc) { current_place = loc; }

Loc place(std::string_view file, int line) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  auto known = names.find(file);
  if (known == names.end()) known = names.emplace(file).first;
  return {known->c_str(), line};
}

void check_ids(std::span<const Id> ids) {
  const std::size_t made = builder().module().insts.size();
  for (const Id id : ids)
    if (id >= made) throw nb::index_error("no value of the kernel that is traced has this number");
}

void begin_variables() { variables().clear(); }

Type type_of(Id id) { return builder().module()[id].type; }

void expect_count(std::size_t given, std::size_t wanted, const char* what) {
  if (given == wanted) return;
  throw nb::type_error(
      (std::string(what) + " has " + std::to_string(given) + " numbers where " + std::to_string(wanted) + " are wanted")
          .c_str());
}

void expect_type(Id id, Type type, const char* what) {
  if (type_of(id) == type) return;
  throw nb::type_error(
      (std::string(what) + " is of type " + ir::user_name(type_of(id)) + " and not of " + ir::user_name(type)).c_str());
}

Type type_from_code(int code) {
  if (code <= 0 || code >= ir::kTypeCount) throw nb::value_error("no scalar type has this code");
  return Type(code);
}

void add_values(nb::module_& m) {
  m.def("set_place", &set_place, nb::arg("file"), nb::arg("line"),
        "Sets the place of the code that is traced next on this thread; gives the one before.");
  m.def(
      "set_line", [](int line) { current_place.line = line; }, nb::arg("line"), "Sets the line of that place.");
  m.def("constant", &constant, nb::arg("code"), nb::arg("number"),
        "A number as a value of a scalar type; integers wrap. Errors: TypeError for a real number as an integer.");
  m.def("zeros_of", &zeros_of, "Zeros for all scalars of a type, as ids.");
  m.def("known", &known, nb::arg("id"), "The number of a value that the trace knows, else None.");
  m.def("code_of", [](Id id) {
    check_id(id);
    return int(type_of(id));
  });
  m.def("convert", &convert, nb::arg("code"), nb::arg("ids"), "Converts by value; to BOOL: whether it is not 0.");
  m.def("bitcast", &bitcast, nb::arg("code"), nb::arg("ids"),
        "Takes the bits as a type of the same width. Errors: TypeError for another width.");
  m.def("unary", &unary, nb::arg("op"), nb::arg("a"), "An operator of OPS, by component.");
  m.def("binary", &binary, nb::arg("op"), nb::arg("a"), nb::arg("b"),
        "An operator of OPS, by component; one number stands for all. Errors: TypeError for different types.");
  m.def("ternary", &ternary, nb::arg("op"), nb::arg("a"), nb::arg("b"), nb::arg("c"),
        "An operator of OPS with three operands, as binary().");
  m.def("select", &select, nb::arg("condition"), nb::arg("a"), nb::arg("b"),
        "a where the condition holds, else b; by component for as many conditions.");
  m.def("all_equal", &all_equal, nb::arg("a"), nb::arg("b"), "Whether all components are equal.");
  m.def("logical_not", [](Id a) {
    check_id(a);
    expect_type(a, Type::b1, "the operand of not");
    return tracing::logical_not(a, here());
  });
  m.def("matmul", &matmul, nb::arg("a"), nb::arg("b"), nb::arg("rows"), nb::arg("inner"), nb::arg("cols"),
        "The product of matrices of rows x inner and inner x cols, row by row.");
  m.def("pick", &pick, nb::arg("values"), nb::arg("n"), nb::arg("step"), nb::arg("index"),
        "Part `index` of n parts of `step` numbers; out of range the nearest.");
  m.def("short_circuit_begin", [](Id left, bool or_else) {
    check_id(left);
    expect_type(left, Type::b1, "an operand of and, or");
    tracing::begin_short_circuit(left, or_else, here());
  });
  m.def("short_circuit_end", [](Id left, Id right, bool or_else) {
    check_id(left);
    check_id(right);
    expect_type(right, Type::b1, "an operand of and, or");
    return tracing::end_short_circuit(left, right, or_else, here());
  });
  m.def(
      "local", [](const DType& type, std::optional<Ids> first) { return nb::tuple(nb::cast(local(type, first))); },
      nb::arg("dtype"), nb::arg("ids").none());
  m.def("get", &get, nb::arg("variables"), "The values of variables.");
  m.def("set", &set, nb::arg("variables"), nb::arg("ids"), "Assigns to variables.");
  nb::dict operators;
  for (int k = 0; k < int(Op::count); ++k) operators[ir::info(Op(k)).name] = k;
  m.attr("OPS") = operators;
}

}  // namespace weft::python
