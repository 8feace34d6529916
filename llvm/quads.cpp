// Accesses to elements of four scalars and more that lie one after another, four scalars at a time: a quad is four
// scalars of every lane's element, in four vectors. Two steps of shuffles, each of two vectors, turn them into a vector
// for each scalar, or back:
//   v0, .. v3                                   each has the quads of a quarter of the lanes
//   scalars 0 and 1 of v0 and v1; of v2 and v3; scalars 2 and 3 of v0 and v1; of v2 and v3
//   scalar 0, .. scalar 3                       of all lanes
// These are two shuffles for a scalar of all lanes, where vectors of elements of S scalars as they lie take S - 1.
//
// pieces: each lane's quad is read or written by itself. v0 has those of lanes 0, 4, 8, ..: no shuffle leaves the
// 128 bits of a quad, which all processors do in one instruction.
//   %a = load <4 x float>, ptr %p
//   %v0 = shufflevector <4 x float> %a, <4 x float> %b, <8 x i32> <i32 0, i32 1, ..>
// groups: v0 is made of the elements of lanes 0 to W/4 - 1, which lie in one or two vectors. That is less for the
// memory to do, and can be masked, but its shuffles take any lane of two vectors.
//   %v0 = shufflevector <16 x float> %a, <16 x float> %b, <16 x i32> <i32 0, i32 S, ..>
#include <algorithm>

#include "emitter.h"

namespace weft::llvm {

using ir::Type;

namespace {

/// The places where quads begin that together have all marked places. None reaches beyond `end`.
std::vector<std::uint32_t> quads_over(const std::vector<char>& marked, std::uint32_t end) {
  std::vector<std::uint32_t> begins;
  for (std::uint32_t k = 0; k < end;) {
    if (marked[k]) begins.push_back(std::min(k, end - 4));
    k = marked[k] ? begins.back() + 4 : k + 1;
  }
  return begins;
}

/// The same where quads must have marked places alone; empty if they cannot.
std::vector<std::uint32_t> quads_within(const std::vector<char>& marked, std::uint32_t end) {
  std::vector<std::uint32_t> begins;
  for (std::uint32_t first = 0, after = 0; first < end; first = after + 1) {
    for (after = first; after < end && marked[after];) ++after;
    if (after - first < 4 && after != first) return {};
    for (std::uint32_t k = first; k < after; k += 4) begins.push_back(std::min(k, after - 4));
  }
  return begins;
}

/// The scalars at which vectors begin that cover `scalars` of them. The last one ends with them.
std::vector<std::uint32_t> vectors_over(std::uint32_t scalars, std::uint32_t lanes) {
  std::vector<std::uint32_t> begins;
  for (std::uint32_t k = 0; k < scalars; k += lanes) begins.push_back(std::min(k, scalars - lanes));
  return begins;
}

}  // namespace

/// Where a quad's scalars are in its four vectors, and in the vectors between the two steps.
struct Emitter::QuadLayout {
  enum class Kind : std::uint8_t {
    pieces,  ///< quad after quad, each a fourth lane's
    groups,  ///< scalar after scalar of neighbours
    rows     ///< quad after quad of neighbours, as elements of four scalars lie in memory
  };
  Kind kind;
  std::uint32_t lanes;

  std::uint32_t group() const { return lanes / 4; }
  /// The one of the four vectors that has a lane's quad, and the quad's number in it.
  std::uint32_t vector(std::uint32_t lane) const { return kind == Kind::pieces ? lane % 4 : lane / group(); }
  std::uint32_t number(std::uint32_t lane) const { return kind == Kind::pieces ? lane / 4 : lane % group(); }
  std::uint32_t place(std::uint32_t lane, std::uint32_t scalar) const {
    return kind == Kind::groups ? scalar * group() + number(lane) : 4 * number(lane) + scalar;
  }
  /// The place of one of two scalars in a vector between, which has lanes of two of the four vectors.
  std::uint32_t place_between(std::uint32_t lane, std::uint32_t scalar) const {
    const std::uint32_t n = number(lane), second = vector(lane) % 2;
    switch (kind) {
      case Kind::pieces: return 4 * n + 2 * scalar + second;
      case Kind::groups: return (2 * second + scalar) * group() + n;
      default: return (2 * scalar + second) * group() + n;
    }
  }
};

Emitter::Texts Emitter::from_quad(const QuadLayout& layout, Type type, const Texts& vectors) {
  Texts values(kQuad);
  for (std::uint32_t half = 0; half < 2; ++half) {
    Texts between;
    std::vector<FromLane> lanes(lanes_);
    for (std::uint32_t pair = 0; pair < 2; ++pair) {
      for (std::uint32_t lane = 0; lane < lanes_; ++lane)
        for (std::uint32_t scalar = 0; scalar < 2 && layout.vector(lane) / 2 == pair; ++scalar)
          lanes[layout.place_between(lane, scalar)] = {layout.vector(lane) % 2, layout.place(lane, 2 * half + scalar)};
      between.push_back(assembled(type, {vectors[2 * pair], vectors[2 * pair + 1]}, lanes));
    }
    for (std::uint32_t scalar = 0; scalar < 2; ++scalar) {
      for (std::uint32_t lane = 0; lane < lanes_; ++lane)
        lanes[lane] = {layout.vector(lane) / 2, layout.place_between(lane, scalar)};
      values[2 * half + scalar] = assembled(type, between, lanes);
    }
  }
  return values;
}

/// The same of quads that were loaded each by itself: vector v has those of lanes v, v + 4, ..
Emitter::Texts Emitter::from_pieces(Type type, const Texts& vectors) {
  return from_quad({QuadLayout::Kind::pieces, lanes_}, type, vectors);
}

/// The four vectors of a quad's values; an empty one leaves its scalars open.
Emitter::Texts Emitter::to_quad(const QuadLayout& layout, Type type, Operands values) {
  Texts vectors;
  for (std::uint32_t pair = 0; pair < 2; ++pair) {
    Texts between;
    for (std::uint32_t half = 0; half < 2; ++half) {
      std::vector<FromLane> lanes(lanes_);
      for (std::uint32_t lane = 0; lane < lanes_; ++lane)
        for (std::uint32_t scalar = 0; scalar < 2 && layout.vector(lane) / 2 == pair; ++scalar)
          if (!values[2 * half + scalar].empty()) lanes[layout.place_between(lane, scalar)] = {scalar, lane};
      between.push_back(assembled(type, {values[2 * half], values[2 * half + 1]}, lanes));
    }
    for (std::uint32_t second = 0; second < 2; ++second) {
      std::vector<FromLane> lanes(lanes_);
      for (std::uint32_t lane = 0; lane < lanes_; ++lane)
        for (std::uint32_t scalar = 0; scalar < kQuad && layout.vector(lane) == 2 * pair + second; ++scalar)
          lanes[layout.place(lane, scalar)] = {scalar / 2, layout.place_between(lane, scalar % 2)};
      vectors.push_back(assembled(type, between, lanes));
    }
  }
  return vectors;
}

Emitter::Texts Emitter::to_pieces(Type type, Operands values) {
  return to_quad({QuadLayout::Kind::pieces, lanes_}, type, values);
}

Emitter::RecordForm Emitter::quads_of(const Record& record, const std::vector<char>& is_part) const {
  if (record.stride < kQuad || record.width() < kQuad) return RecordForm::apart;
  const bool near = (lanes_ / kQuad - 1) * record.stride + kQuad <= 2 * lanes_;
  if (target_.mask_registers && lanes_ > kQuad && near)
    return std::ranges::count(is_part, 1) > 2 ? RecordForm::groups : RecordForm::apart;  // two are as few as they lie
  const bool is_load = kernel_[record.members[0]].op == ir::Op::load;
  const bool whole = is_load || !quads_within(is_part, record.width()).empty();
  return mask_.empty() && whole ? RecordForm::pieces : RecordForm::apart;
}

// ---- Pieces

Emitter::Texts Emitter::load_pieces(const Record& record, const std::vector<char>& wanted, const std::string& from) {
  const Type type = kernel_[record.members[0]].type;
  const QuadLayout layout{QuadLayout::Kind::pieces, lanes_};
  Texts values(record.stride);
  for (const std::uint32_t begin : quads_over(wanted, record.width())) {
    Texts vectors;
    for (std::uint32_t v = 0; v < kQuad; ++v) {
      Texts quads;
      for (std::uint32_t lane = v; lane < lanes_; lane += kQuad)
        quads.push_back(out_.def("load {}, ptr {}, align {}", type_name(type, kQuad),
                                 moved(from, (std::int64_t{lane} * record.stride + begin) * kScalarBytes),
                                 kScalarBytes));
      vectors.push_back(concatenated(type, quads, kQuad));
    }
    std::ranges::copy(from_quad(layout, type, vectors), values.begin() + begin);
  }
  return values;
}

void Emitter::store_pieces(const Record& record, const Texts& values, const std::string& to) {
  const Type type = kernel_[record.members[0]].type;
  const std::string of = type_name(type, lanes_), quad = type_name(type, kQuad);
  const QuadLayout layout{QuadLayout::Kind::pieces, lanes_};
  std::vector<char> written;
  for (const std::string& value : values) written.push_back(!value.empty());
  for (const std::uint32_t begin : quads_within(written, record.width())) {
    const Texts vectors = to_quad(layout, type, Operands(values).subspan(begin, kQuad));
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      const std::string piece =
          lanes_ == kQuad ? vectors[lane]
                          : out_.def("shufflevector {} {}, {} poison, {} {}", of, vectors[layout.vector(lane)], of,
                                     vector_of("i32", kQuad), sequence(Type::i32, layout.place(lane, 0), 1, kQuad));
      out_.line("store {} {}, ptr {}, align {}", quad, piece,
                moved(to, (std::int64_t{lane} * record.stride + begin) * kScalarBytes), kScalarBytes);
    }
  }
}

// ---- Groups

/// The vectors of each group's elements, from the place `begin` of the first one to `end` of the last one.
std::vector<Emitter::Texts> Emitter::read_groups(const Record& record, const std::string& from, std::uint32_t begin,
                                                 std::uint32_t end) {
  const std::uint32_t group = lanes_ / kQuad;
  const std::uint32_t scalars = (group - 1) * record.stride + end - begin;
  // Where lanes rest, what lies between the parts may be beyond the end of memory.
  std::vector<char> read(record.stride, 0);
  std::fill_n(read.begin(), record.width(), 1);
  std::vector<Texts> groups(kQuad);
  for (std::uint32_t g = 0; g < kQuad; ++g)
    for (const std::uint32_t first : vectors_over(scalars, lanes_)) {
      const std::uint32_t at = g * group * record.stride + begin + first;
      groups[g].push_back(read_vector(kernel_[record.members[0]].type, lanes_,
                                      moved(from, std::int64_t{at} * kScalarBytes), kScalarBytes,
                                      mask_.empty() ? "" : record_mask(record, at, read)));
    }
  return groups;
}

Emitter::Texts Emitter::load_groups(const Record& record, const std::vector<char>& wanted, const std::string& from) {
  const Type type = kernel_[record.members[0]].type;
  const std::uint32_t group = lanes_ / kQuad, width = record.width(), stride = record.stride;
  const QuadLayout layout{stride == kQuad ? QuadLayout::Kind::rows : QuadLayout::Kind::groups, lanes_};
  const bool together = (group - 1) * stride + width <= 2 * lanes_;  // all quads are in two vectors of each group
  std::vector<Texts> groups;
  Texts values(stride);
  for (const std::uint32_t begin : quads_over(wanted, width)) {
    const std::uint32_t first = together ? 0 : begin, end = together ? width : begin + kQuad;
    if (groups.empty() || !together) groups = read_groups(record, from, first, end);
    const std::vector<std::uint32_t> starts = vectors_over((group - 1) * stride + end - first, lanes_);
    Texts vectors;
    for (std::uint32_t g = 0; g < kQuad; ++g) {
      std::vector<FromLane> lanes(lanes_);
      for (std::uint32_t lane = g * group; lane < (g + 1) * group; ++lane)
        for (std::uint32_t scalar = 0; scalar < kQuad; ++scalar) {
          const std::uint32_t at = lane % group * stride + begin + scalar - first, source = at < lanes_ ? 0 : 1;
          lanes[layout.place(lane, scalar)] = {source, at - starts[source]};
        }
      vectors.push_back(assembled(type, groups[g], lanes));
    }
    std::ranges::copy(from_quad(layout, type, vectors), values.begin() + begin);
  }
  return values;
}

void Emitter::store_groups(const Record& record, const Texts& values, const std::string& to) {
  const Type type = kernel_[record.members[0]].type;
  const std::uint32_t group = lanes_ / kQuad, stride = record.stride;
  const QuadLayout layout{stride == kQuad ? QuadLayout::Kind::rows : QuadLayout::Kind::groups, lanes_};
  std::vector<char> written;
  for (const std::string& value : values) written.push_back(!value.empty());
  const std::vector<std::uint32_t> begins = quads_over(written, record.width());
  std::vector<Texts> quads;
  for (const std::uint32_t begin : begins)
    quads.push_back(to_quad(layout, type, Operands(values).subspan(begin, kQuad)));
  for (std::uint32_t g = 0; g < kQuad; ++g)
    for (const std::uint32_t first : vectors_over((group - 1) * stride + record.width(), lanes_)) {
      Texts sources;
      for (const Texts& vectors : quads) sources.push_back(vectors[g]);
      std::vector<FromLane> lanes(lanes_);
      bool has_part = false;
      for (std::uint32_t k = 0; k < lanes_; ++k) {
        const std::uint32_t lane = g * group + (first + k) / stride, place = (first + k) % stride;
        if (!written[place]) continue;
        const auto quad = std::ranges::find_if(begins, [&](std::uint32_t b) { return place < b + kQuad; });
        lanes[k] = {static_cast<std::uint32_t>(quad - begins.begin()), layout.place(lane, place - *quad)};
        has_part = true;
      }
      const std::uint32_t at = g * group * stride + first;
      if (has_part)
        write_vector(type, lanes_, assembled(type, sources, lanes), moved(to, std::int64_t{at} * kScalarBytes),
                     kScalarBytes, record_mask(record, at, written));
    }
}

}  // namespace weft::llvm
