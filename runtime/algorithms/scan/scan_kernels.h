// The kernels of scans, which add up runs and scan them, in three ways of going through memory. Internal to the
// runtime.
#pragma once
#include <vector>

#include "../../../frontend/kernels/group.h"
#include "../common/call.h"

namespace weft::detail {

/// Elements that a thread takes at once.
inline constexpr int kQuad = 4;

/// Returns the element's result and adds the element to the running sum.
template <class T>
Var<T> next_sum(Var<T>& sum, const Var<T>& x, bool inclusive) {
  if (inclusive) return sum += x;
  const Var<T> before = sum;
  sum += x;
  return before;
}

/// Kernels with a thread per run, one element after the other. With `wide` four are read and written at once, which the
/// memory's alignment must allow: software devices split accesses by scalar and thread, and these into words of 64
/// bits. Runs begin at multiples of four elements. make_scan() with `whole` is for a single run, and does not read
/// `before`.
template <class T>
struct RunKernels {
  static auto make_sums(bool wide) {
    return kernel("sums of runs",
                  [=](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<T> sums, Int n, Int run) {
                    Int t = tid(), first = t * run, last = first + min(run, n - first);
                    Var<T> sum = T(0);
                    if (wide) {
                      for (auto q : range(first / kQuad, last / kQuad)) {
                        const Vec<4, T> x = quads[q];
                        sum += x[0] + x[1] + (x[2] + x[3]);
                      }
                      first = last - last % kQuad;
                    }
                    // The same order of additions, so that sums do not depend on the alignment.
                    for (auto q : range((last - first) / kQuad)) {
                      const Int i = first + q * kQuad;
                      sum += in[i] + in[i + 1] + (in[i + 2] + in[i + 3]);
                    }
                    for (auto i : range(last - (last - first) % kQuad, last)) sum += in[i];
                    sums[t] = sum;
                  },
                  {.block = 64});
  }
  static auto make_scan(bool wide, bool inclusive, bool whole) {
    return kernel("scan of runs",
                  [=](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<const T> before, Arr<T> out,
                      Arr<vec<4, T>> out_quads, Int n, Int run) {
                    Int t = tid(), first = t * run, last = first + min(run, n - first);
                    Var<T> sum = T(0);
                    if (!whole) sum = before[t];
                    if (wide) {
                      for (auto q : range(first / kQuad, last / kQuad)) {
                        const Vec<4, T> x = quads[q];
                        Vec<4, T> sums;
                        for (int k = 0; k < kQuad; ++k) sums[k] = next_sum<T>(sum, x[k], inclusive);
                        out_quads[q] = sums;
                      }
                      first = last - last % kQuad;
                    }
                    for (auto i : range(first, last)) out[i] = next_sum<T>(sum, in[i], inclusive);
                  },
                  {.block = 64});
  }

  RunKernels() {
    for (int k = 0; k < 2; ++k) sums.push_back(make_sums(k));
    for (int k = 0; k < 8; ++k) scans.push_back(make_scan(k & 4, k & 2, k & 1));
  }
  const auto& scan(bool wide, bool inclusive, bool whole) const {
    return scans[std::size_t(4 * wide + 2 * inclusive + whole)];
  }

  std::vector<decltype(make_sums(false))> sums;
  std::vector<decltype(make_scan(false, false, false))> scans;
};

/// Kernels with a subgroup per run, which it traverses in rows of four elements per lane, side by side.
///
///   row 0   lane 0: elements 0 1 2 3   lane 1: 4 5 6 7   ...
///   row 1   lane 0: the four after those of the last lane in row 0   ...
///
/// The sums of four are scanned over the lanes, and the last one is carried to the next row. Several rows are read at a
/// time, so that their accesses overlap.
template <class T>
struct RowKernels {
  static constexpr unsigned kBlock = 128;
  static constexpr int kRowsAtOnce = 4;  ///< divides the rows of all runs

  /// Loads the four elements of number q, with zeros beyond the end. \param wide  at once, if the memory's alignment
  /// allows it, or one by one
  static Vec<4, T> load(bool wide, const Arr<const T>& in, const Arr<const vec<4, T>>& quads, const Int& q,
                        const Int& n) {
    Vec<4, T> x(vec<4, T>(T(0)));
    const auto one_by_one = [&] {
      for (int k = 0; k < kQuad; ++k) {
        const Int i = q * kQuad + k;
        If (i < n) {
          x[k] = in[i];
        }
      }
    };
    if (!wide) {
      one_by_one();
      return x;
    }
    If (q < n / kQuad) {
      x = quads[q];
    }
    Else { one_by_one(); }
    return x;
  }
  static std::vector<Vec<4, T>> load_rows(bool wide, const Arr<const T>& in, const Arr<const vec<4, T>>& quads,
                                          const Int& q, const Int& n) {
    std::vector<Vec<4, T>> rows;
    for (int k = 0; k < kRowsAtOnce; ++k) rows.push_back(load(wide, in, quads, q + k * subgroup_size(), n));
    return rows;
  }
  static void store(bool wide, const Arr<T>& out, const Arr<vec<4, T>>& quads, const Int& q, const Int& n,
                    const Vec<4, T>& x) {
    const auto one_by_one = [&] {
      for (int k = 0; k < kQuad; ++k) {
        const Int i = q * kQuad + k;
        If (i < n) {
          out[i] = x[k];
        }
      }
    };
    if (!wide) return one_by_one();
    If (q < n / kQuad) {
      quads[q] = x;
    }
    Else { one_by_one(); }
  }
  /// The number of this subgroup, and of the first row's four elements that this thread takes.
  static Int run_number() { return tid() / subgroup_size(); }
  static Int first_quad(const Int& rows) { return run_number() * rows * subgroup_size() + subgroup_lane(); }

  static auto make_sums(bool wide) {
    return kernel("sums of rows",
                  [=](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<T> sums, Int n, Int runs, Int rows) {
                    const Int first = first_quad(rows), lanes = subgroup_size();
                    Var<T> sum = T(0);
                    for (auto row : range(0, rows, kRowsAtOnce))
                      for (const Vec<4, T>& x : load_rows(wide, in, quads, first + row * lanes, n))
                        sum += x[0] + x[1] + (x[2] + x[3]);
                    sum = subgroup_add(sum);
                    If (subgroup_elect() && run_number() < runs) {
                      sums[run_number()] = sum;
                    }
                  },
                  {.block = kBlock});
  }
  static auto make_scan(bool wide, bool inclusive, bool whole) {
    return kernel("scan of rows",
                  [=](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<const T> before, Arr<T> out,
                      Arr<vec<4, T>> out_quads, Int n, Int runs, Int rows) {
                    const Int first = first_quad(rows), lanes = subgroup_size();
                    Var<T> carried = T(0);
                    if (!whole) carried = before[min(run_number(), runs - 1)];
                    for (auto row : range(0, rows, kRowsAtOnce)) {
                      Int q = first + row * lanes;
                      for (const Vec<4, T>& x : load_rows(wide, in, quads, q, n)) {
                        Var<T> sum = carried + subgroup_exclusive_add(x[0] + x[1] + (x[2] + x[3]));
                        Vec<4, T> sums;
                        for (int k = 0; k < kQuad; ++k) sums[k] = next_sum<T>(sum, x[k], inclusive);
                        carried = subgroup_broadcast(sum, lanes - 1);
                        store(wide, out, out_quads, q, n, sums);
                        q += lanes;
                      }
                    }
                  },
                  {.block = kBlock});
  }

  RowKernels() {
    for (int k = 0; k < 2; ++k) sums.push_back(make_sums(k));
    for (int k = 0; k < 8; ++k) scans.push_back(make_scan(k & 4, k & 2, k & 1));
  }
  const auto& scan(bool wide, bool inclusive, bool whole) const {
    return scans[std::size_t(4 * wide + 2 * inclusive + whole)];
  }

  std::vector<decltype(make_sums(false))> sums;
  std::vector<decltype(make_scan(false, false, false))> scans;
};

/// Kernels for vector code of a processor: a workgroup is one subgroup, the lanes of a vector, and has a run, which it
/// traverses in rows of one element per lane. Neighbouring lanes access neighbouring elements.
///
///   lanes 4, row 0: elements 0 1 2 3, sums 0 01 012 0123, the last one is carried to row 1: elements 4 5 6 7
template <class T>
struct VectorKernels {
  static constexpr int kRowsAtOnce = 4;

  /// A run, and how its rows are accessed.
  struct Rows {
    const int lanes;
    const Int first, last, whole_end;  ///< up to whole_end, all elements of so many rows are there
    const Int lane = subgroup_lane();

    Rows(int of_lanes, const Int& n, const Int& run)
        : lanes(of_lanes),
          first(workgroup_id() * run),
          last(first + min(run, n - first)),
          whole_end(last - (last - first) % (lanes * kRowsAtOnce)) {}

    /// Where the lane finds its element of the row that begins with element i.
    Int at(const Int& i) const { return i + lane; }
    /// Loads a row that may end early, with zeros beyond the end.
    Var<T> load_last(const Arr<const T>& in, const Int& i) const {
      Var<T> x = T(0);
      If (at(i) < last) {
        x = in[at(i)];
      }
      return x;
    }
    void store_last(const Arr<T>& out, const Int& i, const Var<T>& x) const {
      If (at(i) < last) {
        out[at(i)] = x;
      }
    }
  };

  static auto make_sums(int lanes) {
    return kernel("sums of vectors",
                  [=](Arr<const T> in, Arr<T> sums, Int n, Int run) {
                    const Rows rows(lanes, n, run);
                    Var<T> sum = T(0);
                    for (auto i : range(rows.first, rows.whole_end, lanes * kRowsAtOnce))
                      for (int k = 0; k < kRowsAtOnce; ++k) sum += in[rows.at(i + k * lanes)];
                    for (auto i : range(rows.whole_end, rows.last, lanes)) sum += rows.load_last(in, i);
                    sum = subgroup_add(sum);
                    If (subgroup_elect()) {
                      sums[workgroup_id()] = sum;
                    }
                  },
                  {.block = unsigned(lanes)});
  }
  static auto make_scan(int lanes, bool inclusive, bool whole) {
    return kernel("scan of vectors",
                  [=](Arr<const T> in, Arr<const T> before, Arr<T> out, Int n, Int run) {
                    const Rows rows(lanes, n, run);
                    Var<T> carried = T(0);
                    if (!whole) carried = before[workgroup_id()];
                    const auto next = [&](const Var<T>& x) {
                      const Var<T> sums = subgroup_inclusive_add(x);
                      const Var<T> result = carried + (inclusive ? sums : subgroup_exclusive_add(x));
                      carried += subgroup_broadcast(sums, lanes - 1);
                      return result;
                    };
                    for (auto i : range(rows.first, rows.whole_end, lanes * kRowsAtOnce)) {
                      std::vector<Var<T>> x;
                      for (int k = 0; k < kRowsAtOnce; ++k) x.push_back(Var<T>(in[rows.at(i + k * lanes)]));
                      for (int k = 0; k < kRowsAtOnce; ++k) out[rows.at(i + k * lanes)] = next(x[std::size_t(k)]);
                    }
                    for (auto i : range(rows.whole_end, rows.last, lanes))
                      rows.store_last(out, i, next(rows.load_last(in, i)));
                  },
                  {.block = unsigned(lanes)});
  }

  explicit VectorKernels(int lanes) : sums(make_sums(lanes)) {
    for (int k = 0; k < 4; ++k) scans.push_back(make_scan(lanes, k & 2, k & 1));
  }
  const auto& scan(bool inclusive, bool whole) const { return scans[std::size_t(2 * inclusive + whole)]; }

  decltype(make_sums(1)) sums;
  std::vector<decltype(make_scan(1, false, false))> scans;
};

}  // namespace weft::detail
