// Wide accesses to the fields of structs, constants and choices of many scalars.
#include "flatten.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "../support/error.h"
#include "checks.h"

namespace weft::detail {

using ir::Op;
using ir::Type;
using tracing::Address;
using tracing::Id;

namespace {
std::uint32_t lowest_bit(std::uint32_t n) { return n & (~n + 1); }

// f(first leaf, how many) for each access. One takes what belongs together, and more where the alignment allows an
// access of 2 or 4 scalars: narrow ones of fields that nobody needs are dropped later, wide ones are kept whole.
template <class F>
void for_accesses(const Address& at, std::span<const Leaf> leaves, F f) {
  const auto follows = [&](std::size_t j) {
    const Leaf& before = leaves[j - 1];
    return leaves[j].type == before.type && leaves[j].offset == before.offset + std::uint32_t(bytes(before.type));
  };
  for (std::size_t i = 0, n; i < leaves.size(); i += n) {
    std::size_t own = 1, side_by_side = 1;
    while (i + own < leaves.size() && !leaves[i + own].first && follows(i + own)) ++own;
    while (i + side_by_side < leaves.size() && side_by_side < 4 && follows(i + side_by_side)) ++side_by_side;
    const std::uint32_t offset = at.offset + leaves[i].offset, size = std::uint32_t(bytes(leaves[i].type));
    const std::uint32_t align = offset ? std::min(at.align, lowest_bit(offset)) : at.align;
    std::size_t aligned = 1;
    for (std::size_t width : {2, 4})
      if (side_by_side >= width && align >= width * size) aligned = width;
    n = std::max(std::min<std::size_t>(own, 4), aligned);
    f(i, int(n));
  }
}

// What lies `offset` bytes further.
Address field_at(const Address& at, std::uint32_t offset) {
  Address field = at;
  field.offset += offset;
  return field;
}
}  // namespace

void load_leaves(const Address& from, std::span<const Leaf> leaves, Id* out, Loc loc) {
  for_accesses(from, leaves, [&](std::size_t i, int n) {
    tracing::load(field_at(from, leaves[i].offset), leaves[i].type, n, out + i, loc);
  });
}

void store_leaves(const Address& to, std::span<const Leaf> leaves, const Id* values, Loc loc) {
  for_accesses(to, leaves, [&](std::size_t i, int n) {
    tracing::store(field_at(to, leaves[i].offset), leaves[i].type, n, values + i, loc);
  });
}

void read_slots(const tracing::Slot* const* slots, std::span<const Leaf> leaves, Id* out, Loc loc) {
  if (tracing::read_without_access(slots, int(leaves.size()), out, loc)) return;
  load_leaves(slots[0]->named().address(), leaves, out, loc);
  for (std::size_t i = 0; i < leaves.size(); ++i) slots[i]->remember(out[i]);
}

void assign_slots(tracing::Slot* const* slots, std::span<const Leaf> leaves, const Id* values, Loc loc) {
  if (slots[0]->named().in_memory()) return store_leaves(slots[0]->named().address(), leaves, values, loc);
  for (std::size_t i = 0; i < leaves.size(); ++i) slots[i]->assign(values[i], loc);
}

void leaf_constants(const void* value, std::span<const Leaf> leaves, Id* out, Loc loc) {
  ir::Builder& b = tracing::Trace::current(loc).builder();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(value) + leaves[i].offset, std::size_t(bytes(leaves[i].type)));
    out[i] = b.constant(leaves[i].type, is_bool(leaves[i].type) ? bits != 0 : bits);
  }
}

Address array_element_at(const Address& at, Id index, std::uint32_t element_bytes, std::size_t n, Loc loc) {
  Address element = tracing::part_at(at, element_bytes, index, int(n), loc);
  if (tracing::Trace& t = tracing::Trace::current(loc); at.element) {
    tracing::Element e = t.elements[at.element - 1];
    if (e.ndim == tracing::Element::kMostIndices)
      ir::fail(t.module(), loc, "debug mode follows no more than 12 indices into one element");
    e.index[e.ndim] = index;
    e.extent[e.ndim++] = tracing::literal_int(Type::i32, std::int64_t(n), loc);
    t.elements.push_back(std::move(e));
    element.element = std::uint32_t(t.elements.size());
  }
  return element;
}

std::string struct_name(const char* pretty) {
  std::string_view name = pretty;
  // "... [with T = app::Particle<>]", "... [T = app::Particle<>]", "... pretty_type<struct app::Particle<...>>(void)"
  if (std::size_t at = name.find("T = "); at != name.npos) {
    name.remove_prefix(at + 4);
    name = name.substr(0, name.find_first_of(";]"));
  } else if (at = name.find("pretty_type<"); at != name.npos) {
    name.remove_prefix(at + 12);
  }
  name = name.substr(0, name.find('<'));
  if (std::size_t at = name.find_last_of(": "); at != name.npos) name.remove_prefix(at + 1);
  return std::string(name);
}

std::string field_name(const char* pretty, int k) {
  std::string_view name = pretty;
  const std::size_t at = name.rfind("::");
  if (at == name.npos) return fmt::format("field {}", k + 1);
  name.remove_prefix(at + 2);
  return std::string(name.substr(0, name.find_first_of(")]>")));
}

}  // namespace weft::detail
