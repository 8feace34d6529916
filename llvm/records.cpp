// Accesses to parts of elements of several scalars that lie one after another, as structs, matrices and vectors do:
// whole vectors are read or written, and shuffles take them apart or put them together. Gathers and scatters would go
// through the same cache lines once for each scalar.
// Accesses to parts of one element that follow each other are made together: loads by the first of them, stores by the
// last. What lies between the parts is read but never written, because other threads may write it.
// Four scalars at a time are in quads.cpp; this is the form for fewer, with S vectors for elements of S scalars:
//   %a = load <8 x float>, ptr %p                   llvm.masked.load where lanes rest, and at the end
//   %b = load <8 x float>, ptr %p + 32
//   %x = shufflevector <8 x float> %a, <8 x float> %b, <8 x i32> <i32 0, i32 S, ..>
//   %x = shufflevector <8 x float> %x, <8 x float> %c, ..       once for each further vector
#include <algorithm>

#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;

namespace {
/// The most scalars of an element that is no quads: shuffles are as many as its square, and gathers have fewer beyond.
constexpr std::uint32_t kMostScalars = 12;
}  // namespace

// ---- Which accesses are made together

/// The number of scalars from lane to lane, or 0 if the access is none of a part of an element.
std::uint32_t Emitter::record_stride(Id id) const {
  const Inst& inst = kernel_[id];
  if (inst.op != Op::load && inst.op != Op::store) return 0;
  if (ir::bytes(inst.type) != kScalarBytes || kernel_.kernel_array_of(kernel_.arg(id, 0))) return 0;
  const ir::Shape address = ir::address_shape(kernel_, shapes_, id);
  if (address.kind != ir::Shape::Kind::affine || address.step <= 0 || address.step % kScalarBytes != 0) return 0;
  const std::int64_t stride = address.step / kScalarBytes;
  const bool fits = (stride > inst.width || stride >= kQuad) && stride <= kFarthest &&
                    inst.offset + inst.width * kScalarBytes <= std::max(inst.stride, kScalarBytes);
  return fits && inst.offset % kScalarBytes == 0 ? static_cast<std::uint32_t>(stride) : 0;
}

/// Whether two accesses are to the same elements, if to different parts of them.
bool Emitter::same_elements(Id a, Id b) const {
  const Inst &x = kernel_[a], &y = kernel_[b];
  return x.type == y.type && x.stride == y.stride && kernel_.arg(a, 0) == kernel_.arg(b, 0) &&
         kernel_.arg(a, 1) == kernel_.arg(b, 1);
}

/// Whether an access has no scalar in common with any of others to the same elements: then they may change places.
bool Emitter::is_apart(Id id, const std::vector<Id>& others) const {
  const Inst& inst = kernel_[id];
  return std::ranges::none_of(others, [&](Id other) {
    const Inst& o = kernel_[other];
    return inst.offset < o.offset + o.width * kScalarBytes && o.offset < inst.offset + inst.width * kScalarBytes;
  });
}

/// Adds an access to a record, if it is to a part of the same elements that the record does not have yet, and all parts
/// lie within an element.
bool Emitter::joins(Record& record, Id id) const {
  const auto begin = static_cast<std::uint32_t>(kernel_[id].offset / kScalarBytes), end = begin + kernel_[id].width;
  const std::uint32_t lowest = std::min(begin, record.begin), highest = std::max(end, record.end);
  if (!same_elements(record.members[0], id) || highest - lowest > record.stride) return false;
  if (!is_apart(id, record.members) || !is_apart(id, record.passed)) return false;
  record.begin = lowest;
  record.end = highest;
  record.members.push_back(id);
  return true;
}

// Loads stay before the stores that follow them, and stores before the loads, unless they are to other parts of the
// same elements: x.a += 1; x.b += 1 reads both, then writes both. Stores keep their order.
void Emitter::plan_records() {
  record_of_.assign(kernel_.insts.size(), kNoRecord);
  for (const ir::Region& region : kernel_.regions) {
    std::vector<std::uint32_t> loads, stores;  // those that more may join
    for (Id id : region.insts) {
      const Op op = kernel_[id].op;
      if (op == Op::result || op == Op::param || (op != Op::load && ir::info(op).effect == ir::Effect::pure)) continue;
      const std::uint32_t stride = record_stride(id);
      const bool is_load = op == Op::load;
      std::vector<std::uint32_t>&open = is_load ? loads : stores, &others = is_load ? stores : loads;
      if (stride == 0) {
        stores.clear();
        if (!is_load) loads.clear();
        continue;
      }
      // This load would come before the stores of an open record, later loads of one before this store.
      std::erase_if(others, [&](std::uint32_t number) {
        Record& record = records_[number];
        if (!same_elements(record.members[0], id) || (is_load && !is_apart(id, record.members))) return true;
        if (!is_load) record.passed.push_back(id);
        return false;
      });
      const auto joined = std::ranges::find_if(open, [&](std::uint32_t record) { return joins(records_[record], id); });
      if (joined != open.end()) {
        record_of_[id] = *joined;
        continue;
      }
      stores.clear();
      const auto begin = static_cast<std::uint32_t>(kernel_[id].offset / kScalarBytes);
      record_of_[id] = static_cast<std::uint32_t>(records_.size());
      records_.push_back({{id}, {}, stride, begin, begin + kernel_[id].width});
      open.push_back(record_of_[id]);
    }
  }
}

// ---- Vectors and their lanes

/// Vectors that hold an element's part in all lanes.
std::uint32_t Emitter::vectors_of(const Record& record) const {
  const std::uint32_t scalars = (lanes_ - 1) * record.stride + record.width();
  return (scalars + lanes_ - 1) / lanes_;
}

/// The mask of the vector at scalar `first`: of the scalars that `is_part` has by their place in the element, in lanes
/// that run. Empty for all.
std::string Emitter::record_mask(const Record& record, std::uint32_t first, const std::vector<char>& is_part) {
  Texts bits, from;
  bool all = true;
  for (std::uint32_t k = first; k < first + lanes_; ++k) {
    const bool within = k / record.stride < lanes_ && is_part[k % record.stride];
    bits.push_back(within ? "true" : "false");
    from.push_back(std::to_string(std::min(k / record.stride, lanes_ - 1)));
    all = all && within;
  }
  const std::string constant = all ? "" : lanes_of("i1", bits);
  if (mask_.empty()) return constant;
  const std::string of = type_name(ir::Type::b1, lanes_);
  const std::string running =
      out_.def("shufflevector {} {}, {} poison, {} {}", of, mask_, of, vector_of("i32", lanes_), lanes_of("i32", from));
  return all ? running : binary("and", ir::Type::b1, running, constant, lanes_);
}

/// A vector from lanes of several.
std::string Emitter::assembled(ir::Type type, const Texts& sources, const std::vector<FromLane>& lanes) {
  const std::string of = type_name(type, lanes_);
  std::string made;  // has the lanes of the sources before, but for the first one's, which are where they were
  std::uint32_t first = 0;
  bool shuffled = false;
  for (std::uint32_t source = 0; source < sources.size(); ++source) {
    const auto wanted = [&](const FromLane& lane) { return lane.source == source; };
    if (std::ranges::none_of(lanes, wanted)) continue;
    if (made.empty()) {
      made = sources[source];
      first = source;
      continue;
    }
    Texts from;
    for (std::uint32_t k = 0; k < lanes_; ++k)
      from.push_back(std::to_string(wanted(lanes[k])                        ? lanes_ + lanes[k].lane
                                    : !shuffled && lanes[k].source == first ? lanes[k].lane
                                                                            : k));
    made = out_.def("shufflevector {} {}, {} {}, {} {}", of, made, of, sources[source], vector_of("i32", lanes_),
                    lanes_of("i32", from));
    shuffled = true;
  }
  if (shuffled) return made;
  if (made.empty()) return "poison";
  Texts from;
  for (const FromLane& lane : lanes) from.push_back(std::to_string(lane.lane));
  return out_.def("shufflevector {} {}, {} poison, {} {}", of, made, of, vector_of("i32", lanes_),
                  lanes_of("i32", from));
}

// ---- The code

/// Calls f(member, its scalar, the scalar's place) for all scalars of a record.
template <class F>
void Emitter::for_parts(const Record& record, F f) const {
  for (Id member : record.members)
    for (std::uint32_t k = 0; k < kernel_[member].width; ++k)
      f(member, k, static_cast<std::uint32_t>(kernel_[member].offset / kScalarBytes) + k - record.begin);
}

Emitter::RecordForm Emitter::form_of(const Record& record) const {
  std::vector<char> is_part(record.stride, 0);
  for_parts(record, [&](Id, std::uint32_t, std::uint32_t place) { is_part[place] = 1; });
  const RecordForm quads = quads_of(record, is_part);
  if (quads != RecordForm::apart) return quads;
  // Without such instructions, masked accesses go lane by lane whatever their form.
  const bool whole = mask_.empty() && record.width() == record.stride;
  const bool fits = record.stride <= kMostScalars && (target_.masked_memory || whole);
  return fits ? RecordForm::vectors : RecordForm::apart;
}

Emitter::Texts Emitter::load_vectors(const Record& record, const std::vector<char>& wanted, const std::string& from) {
  const ir::Type type = kernel_[record.members[0]].type;
  std::vector<char> read(record.stride, 1);
  Texts sources;
  for (std::uint32_t number = 0; number < vectors_of(record); ++number) {
    // What follows a lane's part may lie beyond the end of memory if no lane follows: in the last vector, and after the
    // last lane that runs. Everywhere else whole vectors are read.
    const bool last = number + 1 == vectors_of(record);
    if (last || !mask_.empty())
      for (std::uint32_t k = record.width(); k < record.stride; ++k) read[k] = 0;
    sources.push_back(read_vector(type, lanes_, moved(from, std::int64_t{number} * lanes_ * kScalarBytes), kScalarBytes,
                                  record_mask(record, number * lanes_, read)));
  }
  Texts values(record.stride);
  for (std::uint32_t place = 0; place < record.width(); ++place) {
    if (!wanted[place]) continue;
    std::vector<FromLane> lanes;
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      const std::uint32_t scalar = lane * record.stride + place;
      lanes.push_back({scalar / lanes_, scalar % lanes_});
    }
    values[place] = assembled(type, sources, lanes);
  }
  return values;
}

void Emitter::store_vectors(const Record& record, const Texts& values, const std::string& to) {
  const ir::Type type = kernel_[record.members[0]].type;
  std::vector<char> written;
  for (const std::string& value : values) written.push_back(!value.empty());
  Texts vectors(vectors_of(record));
  for (std::uint32_t number = 0; number < vectors.size(); ++number) {
    std::vector<FromLane> lanes(lanes_);
    bool has_part = false;
    for (std::uint32_t k = 0; k < lanes_; ++k) {
      const std::uint32_t scalar = number * lanes_ + k;
      if (scalar / record.stride >= lanes_ || !written[scalar % record.stride]) continue;
      lanes[k] = {scalar % record.stride, scalar / record.stride};
      has_part = true;
    }
    if (has_part) vectors[number] = assembled(type, values, lanes);
  }
  const auto write = [&] {
    for (std::uint32_t number = 0; number < vectors.size(); ++number)
      if (!vectors[number].empty())
        write_vector(type, lanes_, vectors[number], moved(to, std::int64_t{number} * lanes_ * kScalarBytes),
                     kScalarBytes, record_mask(record, number * lanes_, written));
  };
  const bool whole = std::ranges::all_of(written, [](char part) { return part != 0; });
  whole ? write_by_mask(write) : write();
}

void Emitter::load_record(const Record& record, RecordForm form) {
  std::vector<char> wanted(record.stride, 0);
  for_parts(record, [&](Id, std::uint32_t, std::uint32_t place) { wanted[place] = 1; });
  const std::string from = record_pointer(record);
  const Texts values = form == RecordForm::vectors  ? load_vectors(record, wanted, from)
                       : form == RecordForm::pieces ? load_pieces(record, wanted, from)
                                                    : load_groups(record, wanted, from);
  for_parts(record,
            [&](Id member, std::uint32_t k, std::uint32_t place) { put_part(member, k, values[place], lanes_); });
}

void Emitter::store_record(const Record& record, RecordForm form) {
  const std::string to = record_pointer(record);
  Texts values(record.stride);
  for_parts(record, [&](Id member, std::uint32_t k, std::uint32_t place) {
    values[place] = vector(kernel_.arg(member, static_cast<int>(k) + 2));
  });
  switch (form) {
    case RecordForm::vectors: return store_vectors(record, values, to);
    case RecordForm::pieces: return store_pieces(record, values, to);
    default: return store_groups(record, values, to);
  }
}

/// The address of lane 0's first part.
std::string Emitter::record_pointer(const Record& record) {
  const Id first = record.members[0];
  return moved(address_place(first).pointer, std::int64_t{record.begin} * kScalarBytes - kernel_[first].offset);
}

bool Emitter::access_record(Id id) {
  if (record_of_[id] == kNoRecord) return false;
  const Record& record = records_[record_of_[id]];
  const RecordForm form = form_of(record);
  if (form == RecordForm::apart) return false;
  if (kernel_[id].op == Op::load) {
    if (id == record.members.front()) load_record(record, form);
  } else if (id == record.members.back()) {
    store_record(record, form);
  }
  return true;
}

}  // namespace weft::llvm
