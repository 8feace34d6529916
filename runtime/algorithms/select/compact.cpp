// Compaction: the flags, as 0 and 1, are scanned, and each flagged element goes to the place that its sum gives.
#include "../compact.h"

#include "../scan/scan_runs.h"

namespace weft::detail {

namespace {

template <class F>
void number_flags(const AlgorithmCall& call, const Array<F>& flags, const Array<unsigned>& places) {
  static const auto number = kernel("number flags", [](Arr<const F> flags, Arr<unsigned> places) {
    Int i = tid();
    if constexpr (std::is_same_v<F, bool>)
      places[i] = select(flags[i], 1u, 0u);
    else
      places[i] = select(flags[i] != F(0), 1u, 0u);
  });
  call.run(number, flags.size(), flags, places);
}

/// places[i] is the number of flags up to and including i that are set.
Array<unsigned> places_of(AlgorithmCall& call, const ArrayBase& flags, bool flags_are_bool) {
  const Array<unsigned> places = call.take<unsigned>(flags.size());
  if (flags_are_bool)
    number_flags<bool>(call, Row<bool>(flags), places);
  else
    number_flags<unsigned>(call, Row<unsigned>(flags), places);
  scan_runs(call, places, places, true);
  return places;
}

/// Whether element i is flagged: its place is then one after that of the element before it.
Bool is_flagged(const Arr<const unsigned>& places, const Int& i) {
  return places[i] != select(i > 0, UInt(places[max(i - 1, 0)]), 0u);
}

void check_flags(AlgorithmCall& call, const ArrayBase& flags, const ArrayBase& out, const ArrayBase& count) {
  call.takes(flags, "the array of flags");
  call.takes(out, "the output");
  call.takes(count, "the count");
  call.has_room(out, "the output", flags.size());
  call.has_length(count, "the count", 1);
  call.are_apart(flags, "the array of flags", out, "the output");
  call.are_apart(flags, "the array of flags", count, "the count");
  call.are_apart(out, "the output", count, "the count");
}

std::uint64_t scratch(std::int64_t n) { return scratch_piece(n, sizeof(unsigned)) + scan_scratch(n, sizeof(unsigned)); }

}  // namespace

std::uint64_t compact_scratch_bytes(std::int64_t n) { return scratch(checked_count("compact", n)); }

void compact(const ArrayBase& in, const ArrayBase& flags, bool flags_are_bool, const ArrayBase& out,
             const ArrayBase& count, const AlgorithmOptions& options) {
  static const auto move = kernel(
      "compact", [](Arr<const unsigned> in, Arr<const unsigned> places, Arr<unsigned> out, Arr<int> count, Int words) {
        Int i = tid();
        If (is_flagged(places, i)) {
          const Int64 to = Int64(places[i] - 1u) * Int64(words), from = Int64(i) * Int64(words);
          for (auto w : range(words)) out[to + Int64(w)] = in[from + Int64(w)];
        }
        If (i == 0) count[0] = Int(places[places.shape(0) - 1]);
      });
  AlgorithmCall call("compact", options);
  check_flags(call, flags, out, count);
  call.takes(in, "the input");
  call.has_length(in, "the input", flags.size());
  call.are_apart(in, "the input", out, "the output");
  call.are_apart(in, "the input", count, "the count");
  call.has_no_derivative(out, in, "a compaction of an array",
                         "use compact_indices(), and let a kernel read through the indices");
  const std::int64_t n = flags.size();
  call.begin(scratch(n));
  if (n == 0) return set_all(call, static_cast<const Array<int>&>(Row<int>(count)), 0);
  const Array<unsigned> places = places_of(call, flags, flags_are_bool), from = Row<unsigned>(in),
                        to = Row<unsigned>(out);
  call.run(move, n, from, places, to, static_cast<const Array<int>&>(Row<int>(count)), in.element_bytes() / 4);
}

void compact_indices(const ArrayBase& flags, bool flags_are_bool, const ArrayBase& out, const ArrayBase& count,
                     const AlgorithmOptions& options) {
  static const auto move = kernel("compact indices", [](Arr<const unsigned> places, Arr<int> out, Arr<int> count) {
    Int i = tid();
    If (is_flagged(places, i)) out[places[i] - 1u] = i;
    If (i == 0) count[0] = Int(places[places.shape(0) - 1]);
  });
  AlgorithmCall call("compact_indices", options);
  check_flags(call, flags, out, count);
  const std::int64_t n = flags.size();
  call.begin(scratch(n));
  const Array<int> counted = Row<int>(count), to = Row<int>(out);
  if (n == 0) return set_all(call, counted, 0);
  const Array<unsigned> places = places_of(call, flags, flags_are_bool);
  call.run(move, n, places, to, counted);
}

}  // namespace weft::detail
