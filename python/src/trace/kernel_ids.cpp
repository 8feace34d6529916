// Follows ids from the arguments of a kernel to the functions that take them.
#include "kernel_ids.h"

#include <algorithm>

#include "../../../frontend/kernels/kernel.h"
#include "../module.h"

namespace weft::python {

namespace {

thread_local IdTrace* innermost = nullptr;

ArrayRef values_of_leaves(const DType& dtype) {
  tracing::Trace::current().begin_argument();
  return {detail::make_array_param(dtype.size, dtype.align, 2, false, dtype.name), &dtype};
}

}  // namespace

IdTrace::IdTrace(KernelIds& ids, bool finding) : ids_(ids), finding_(finding), outer_(innermost) { innermost = this; }
IdTrace::~IdTrace() { innermost = outer_; }
IdTrace* IdTrace::current() { return innermost; }

void IdTrace::add_part(std::size_t part, const DType& dtype, const Ids& scalars) {
  for (std::size_t k = 0; k < scalars.size(); ++k)
    if (dtype.leaves[k].type == ir::Type::u64) places_[scalars[k]] = {part, dtype.leaves[k].offset};
}

void IdTrace::make_values() {
  if (finding_) return;
  for (const auto& [place, dtype] : ids_.stored) values_.push_back(values_of_leaves(*dtype));
}

void IdTrace::make_meshes(const std::vector<IdPlace>& places) {
  for (const IdPlace& place : places) {
    tracing::Trace::current().begin_argument();
    meshes_.emplace(place, new Var<MeshArrays>(detail::Parameter<Var<MeshArrays>>::make()));
  }
}

const Var<MeshArrays>* IdTrace::mesh(Id id) const {
  const auto place = places_.find(id);
  if (place == places_.end()) return nullptr;
  const auto found = meshes_.find(place->second);
  return found == meshes_.end() ? nullptr : found->second.get();
}

void IdTrace::use(Id id, unsigned kinds) {
  const auto place = places_.find(id);
  if (finding_ && place != places_.end()) ids_.used[place->second] |= kinds;
}

ArrayRef IdTrace::stored_values(Id id, const DType& dtype) {
  const auto place = places_.find(id);
  if (place == places_.end())
    throw nb::type_error(
        "a volume is written by an id that the kernel gets as an argument, as itself or in a struct, and does not "
        "compute or read from an array");
  const std::pair<IdPlace, const DType*> wanted(place->second, &dtype);
  const auto known = std::ranges::find(ids_.stored, wanted);
  const std::size_t number = std::size_t(known - ids_.stored.begin());
  if (finding_ && known == ids_.stored.end()) {
    ids_.stored.push_back(wanted);
    // Only looked at: the trace that finds ids is thrown away.
    values_.push_back(values_of_leaves(dtype));
  }
  if (number >= values_.size()) throw nb::type_error("a volume is written where it was not when ids were looked for");
  return values_[number];
}

void add_kernel_ids(nb::module_& m) {
  m.def(
      "use_id",
      [](Id id, unsigned kinds) {
        check_id(id);
        if (IdTrace* const trace = IdTrace::current()) trace->use(id, kinds);
      },
      nb::arg("id"), nb::arg("kinds"), "Notes that a value is used as the id of a structure of one of these kinds.");
  m.def(
      "stored_values",
      [](Id id, nb::handle dtype) {
        check_id(id);
        IdTrace* const trace = IdTrace::current();
        if (!trace) throw nb::type_error("no kernel is traced");
        return trace->stored_values(id, type_from(dtype));
      },
      nb::arg("id"), nb::arg("dtype"), "The values of the volume with an id, which the kernel writes.");
}

}  // namespace weft::python
