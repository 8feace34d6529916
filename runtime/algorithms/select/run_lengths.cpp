// Run-length encoding: the beginnings of runs are scanned, which numbers the runs; each beginning is noted, and the
// lengths are the differences between beginnings.
#include "../run_lengths.h"

#include "../scan/scan_runs.h"

namespace weft::detail {

namespace {

std::uint64_t scratch(std::int64_t n) {
  return 2 * scratch_piece(n, sizeof(unsigned)) + scan_scratch(n, sizeof(unsigned));
}

/// T: unsigned integers, float or double.
template <class T>
void encode(AlgorithmCall& call, const Array<T>& in, const Array<T>& values, const Array<int>& lengths,
            const Array<int>& count) {
  static const auto mark = kernel("mark runs", [](Arr<const T> in, Arr<unsigned> runs) {
    Int i = tid();
    runs[i] = select(i == 0 || in[i] != in[max(i - 1, 0)], 1u, 0u);
  });
  static const auto begin_runs = kernel(
      "begin runs", [](Arr<const T> in, Arr<const unsigned> runs, Arr<T> values, Arr<int> begins, Arr<int> count) {
        const tracing::AnyFloats any;
        Int i = tid();
        const UInt run = runs[i];
        If (i == 0 || run != runs[max(i - 1, 0)]) {
          values[run - 1u] = in[i];
          begins[run - 1u] = i;
        }
        If (i + 1 == runs.shape(0)) count[0] = Int(run);
      });
  static const auto measure =
      kernel("measure runs", [](Arr<const int> begins, Arr<const int> count, Arr<int> lengths, Int n) {
        Int r = tid();
        If (r < count[0]) {
          Int end = n;
          If (r + 1 < count[0]) end = begins[r + 1];
          lengths[r] = end - begins[r];
        }
      });
  const std::int64_t n = in.size();
  const Array<unsigned> runs = call.take<unsigned>(n);
  const Array<int> begins = call.take<int>(n);
  call.run(mark, n, in, runs);
  scan_runs(call, runs, runs, true);
  call.run(begin_runs, n, in, runs, values, begins, count);
  call.run(measure, n, begins, count, lengths, n);
}

}  // namespace

std::uint64_t run_length_scratch_bytes(std::int64_t n) { return scratch(checked_count("run_length_encode", n)); }

void run_length_encode(const ArrayBase& in, const ArrayBase& values, const ArrayBase& lengths, const ArrayBase& count,
                       ir::Type type, const AlgorithmOptions& options) {
  AlgorithmCall call("run_length_encode", options);
  const std::pair<const ArrayBase*, const char*> arrays[] = {
      {&in, "the input"}, {&values, "the array of values"}, {&lengths, "the array of lengths"}, {&count, "the count"}};
  for (const auto& [array, what] : arrays) call.takes(*array, what);
  const std::int64_t n = in.size();
  call.has_room(values, "the array of values", n);
  call.has_room(lengths, "the array of lengths", n);
  call.has_length(count, "the count", 1);
  for (int a = 0; a < 4; ++a)
    for (int b = a + 1; b < 4; ++b)
      call.are_apart(*arrays[a].first, arrays[a].second, *arrays[b].first, arrays[b].second);
  call.has_no_derivative(values, in, "a run-length encoding of an array",
                         "encode a copy that was made outside record()");
  call.begin(scratch(n));
  const Array<int> to_lengths = Row<int>(lengths), to_count = Row<int>(count);
  if (n == 0) return set_all(call, to_count, 0);
  const auto as = [&]<class T>(T) {
    const Array<T> from = Row<T>(in), to = Row<T>(values);
    encode<T>(call, from, to, to_lengths, to_count);
  };
  if (type == ir::Type::f32) return as(float());
  if (type == ir::Type::f64) return as(double());
  ir::bytes(type) == 8 ? as(std::uint64_t()) : as(std::uint32_t());
}

}  // namespace weft::detail
