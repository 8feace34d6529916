// The code by which a kernel writes records to the report buffer.
#include <fmt/format.h>

#include <algorithm>

#include "builder.h"

namespace weft::ir {

namespace {

// Appends a value as the 32-bit words of a record. Floats of 16 bits travel as float32, which holds them exactly and
// needs no 16-bit integers.
void append_words(Builder& b, Id value, std::vector<Id>& words) {
  const Type type = b.module()[value].type;
  if (bits(type) == 64) {
    const Id whole = type == Type::u64 ? value : b.pure(Op::bitcast, Type::u64, {value});
    words.push_back(b.pure(Op::convert, Type::u32, {whole}));
    const Id high = b.pure(Op::shr, Type::u64, {whole, b.constant(Type::u64, 32)});
    words.push_back(b.pure(Op::convert, Type::u32, {high}));
  } else if (type == Type::f16) {
    words.push_back(b.pure(Op::bitcast, Type::u32, {b.pure(Op::convert, Type::f32, {value})}));
  } else if (bits(type) == 32) {
    words.push_back(type == Type::u32 ? value : b.pure(Op::bitcast, Type::u32, {value}));
  } else {
    words.push_back(b.pure(Op::convert, Type::u32, {value}));
  }
}

}  // namespace

void append_report(Builder& b, Module& m, Message message, std::span<const Id> values, Loc loc) {
  namespace layout = report;
  if (m.report_offset == 0) {
    m.report_offset = (m.args_bytes + 7) / 8 * 8;
    m.args_bytes = m.report_offset + layout::kArgumentBytes;
  }
  message.loc = b.module().place ? b.module().place : loc ? loc : b.module().loc;
  const bool failure = message.is_failure();
  const std::uint32_t total = message.words();
  if (total > layout::kFailureCapacity)
    fail(b.module(), loc,
         fmt::format("a message of {} words; at most {} are possible", total, layout::kFailureCapacity));

  const auto u32 = [&](std::uint32_t v) { return b.constant(Type::u32, v); };
  const Id base = b.arg(Type::u64, m.report_offset);
  const auto word = [&](Id index, std::uint32_t first) { return MemoryRef{base, index, 4, 4 * first, 4}; };
  const Id zero = u32(0), size = u32(total);
  const std::uint32_t used = failure ? layout::kFailuresUsed : layout::kPrintsUsed;
  const std::uint32_t start = failure ? layout::kFailures : layout::kPrints;

  // No sum wraps, because the counter passes 2^31 at most by the records that threads add at one moment (see report).
  const Id at = b.atomic(Op::atomic_add, Type::u32, {size}, word(zero, used), loc);
  const Id capacity =
      failure ? u32(layout::kFailureCapacity) : b.load(Type::u32, 1, word(zero, layout::kPrintCapacity), loc);
  // The room for lines may be smaller than one record, and then the difference wraps: a second test covers that.
  Id fits = b.pure(Op::le, Type::b1, {at, b.pure(Op::sub, Type::u32, {capacity, size})});
  if (!failure) fits = b.pure(Op::bit_and, Type::b1, {b.pure(Op::le, Type::b1, {size, capacity}), fits});
  b.open_if(fits, loc);
  {
    std::vector<Id> words{u32(std::uint32_t(m.messages.size())), b.arg(Type::u32, m.report_offset + 8), b.thread_id()};
    for (Id value : values) append_words(b, value, words);
    for (std::size_t k = 0; k < words.size(); k += 4)
      b.store(Type::u32, std::span(words).subspan(k, std::min<std::size_t>(4, words.size() - k)),
              word(at, start + std::uint32_t(k)), loc);
  }
  b.open_else();
  {
    const Id slot = failure ? zero : b.arg(Type::u32, m.report_offset + 12);
    b.atomic(Op::atomic_add, Type::u32, {u32(1)}, word(slot, failure ? layout::kFailuresLost : layout::kPrintsLost),
             loc);
    b.open_if(b.pure(Op::lt, Type::b1, {at, capacity}), loc);
    const Id end[] = {u32(layout::kEnd)};
    b.store(Type::u32, end, word(at, start), loc);
    b.close_if();
    b.open_if(b.pure(Op::le, Type::b1, {u32(layout::kHighWater), at}), loc);
    b.atomic(Op::atomic_add, Type::u32, {u32(0u - total)}, word(zero, used), loc);
    b.close_if();
  }
  b.close_if();
  m.messages.push_back(std::move(message));
}

}  // namespace weft::ir
