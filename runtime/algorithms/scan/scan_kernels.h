// The kernels of scans, which add up runs and scan them, in four ways of going through memory. Internal to the
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

/// Kernels with a thread per run, one element after the other. Elements are counted from the end in a reverse scan.
/// make_scan() with `whole` is for a single run, and does not read `before`.
template <class T>
struct RunKernels {
  static auto make_sums(bool reverse) {
    return kernel("sums of runs",
                  [=](Arr<const T> in, Arr<T> sums, Int n, Int run) {
                    Int t = tid(), first = t * run, last = first + min(run, n - first);
                    Var<T> sum = T(0);
                    for (auto i : range(first, last)) sum += in[reverse ? n - 1 - i : i];
                    sums[t] = sum;
                  },
                  {.block = 64});
  }
  static auto make_scan(bool reverse, bool inclusive, bool whole) {
    return kernel("scan of runs",
                  [=](Arr<const T> in, Arr<const T> before, Arr<T> out, Int n, Int run) {
                    Int t = tid(), first = t * run, last = first + min(run, n - first);
                    Var<T> sum = T(0);
                    if (!whole) sum = before[t];
                    for (auto i : range(first, last)) {
                      const Int at = reverse ? n - 1 - i : i;
                      out[at] = next_sum<T>(sum, in[at], inclusive);
                    }
                  },
                  {.block = 64});
  }

  decltype(make_sums(false)) sums[2] = {make_sums(false), make_sums(true)};
  decltype(make_scan(false, false, false)) scan[2][2][2] = {
      {{make_scan(false, false, false), make_scan(false, false, true)},
       {make_scan(false, true, false), make_scan(false, true, true)}},
      {{make_scan(true, false, false), make_scan(true, false, true)},
       {make_scan(true, true, false), make_scan(true, true, true)}}};
};

/// Two pairs of 32-bit elements.
using TwoPairs = vec<2, std::uint64_t>;

/// RunKernels, forwards only, for elements of 32 bits that are read and written as pairs of 64 bits. CPU drivers that
/// gather slowly turn each access of a subgroup into one per lane; this makes half as many.
template <class T>
struct PairKernels {
  static Vec<4, T> unpack(const Vec<2, std::uint64_t>& pairs) {
    Vec<4, T> x;
    for (int k = 0; k < 2; ++k) {
      x[2 * k] = bitcast<T>(UInt(pairs[k]));
      x[2 * k + 1] = bitcast<T>(UInt(pairs[k] >> 32ull));
    }
    return x;
  }
  static Vec<2, std::uint64_t> pack(const Vec<4, T>& x) {
    const auto pair = [&](int k) {
      return UInt64(bitcast<unsigned>(x[2 * k])) | (UInt64(bitcast<unsigned>(x[2 * k + 1])) << 32ull);
    };
    return Vec<2, std::uint64_t>(pair(0), pair(1));
  }
  static auto make_sums() {
    return kernel("sums of runs of pairs",
                  [](Arr<const T> in, Arr<const TwoPairs> pairs, Arr<T> sums, Int n, Int run) {
                    Int t = tid(), first = t * run, last = first + min(run, n - first);
                    Var<T> sum = T(0);
                    for (auto q : range(first / kQuad, last / kQuad)) {
                      const Vec<4, T> x = unpack(pairs[q]);
                      sum += x[0] + x[1] + (x[2] + x[3]);
                    }
                    for (auto i : range(max(first, last - last % kQuad), last)) sum += in[i];
                    sums[t] = sum;
                  },
                  {.block = 64});
  }
  static auto make_scan(bool inclusive, bool whole) {
    return kernel("scan of runs of pairs",
                  [=](Arr<const T> in, Arr<const TwoPairs> pairs, Arr<const T> before, Arr<T> out,
                      Arr<TwoPairs> out_pairs, Int n, Int run) {
                    Int t = tid(), first = t * run, last = first + min(run, n - first);
                    Var<T> sum = T(0);
                    if (!whole) sum = before[t];
                    for (auto q : range(first / kQuad, last / kQuad)) {
                      const Vec<4, T> x = unpack(pairs[q]);
                      Vec<4, T> sums;
                      for (int k = 0; k < kQuad; ++k) sums[k] = next_sum<T>(sum, x[k], inclusive);
                      out_pairs[q] = pack(sums);
                    }
                    for (auto i : range(max(first, last - last % kQuad), last))
                      out[i] = next_sum<T>(sum, in[i], inclusive);
                  },
                  {.block = 64});
  }

  decltype(make_sums()) sums = make_sums();
  decltype(make_scan(false, false)) scan[2][2] = {{make_scan(false, false), make_scan(false, true)},
                                                  {make_scan(true, false), make_scan(true, true)}};
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
  /// How the four elements of number q are accessed.
  enum Access {
    wide,     ///< at once, if the memory's alignment allows it
    narrow,   ///< one by one
    reverse,  ///< one by one, counted from the last element
  };

  /// Loads four elements, with zeros beyond the end.
  static Vec<4, T> load(Access access, const Arr<const T>& in, const Arr<const vec<4, T>>& quads, const Int& q,
                        const Int& n) {
    Vec<4, T> x(vec<4, T>(T(0)));
    const auto one_by_one = [&] {
      for (int k = 0; k < kQuad; ++k) {
        const Int i = q * kQuad + k;
        If (i < n) {
          x[k] = in[access == reverse ? n - 1 - i : i];
        }
      }
    };
    if (access != wide) {
      one_by_one();
      return x;
    }
    If (q < n / kQuad) {
      x = quads[q];
    }
    Else { one_by_one(); }
    return x;
  }
  static std::vector<Vec<4, T>> load_rows(Access access, const Arr<const T>& in, const Arr<const vec<4, T>>& quads,
                                          const Int& q, const Int& n) {
    std::vector<Vec<4, T>> rows;
    for (int k = 0; k < kRowsAtOnce; ++k) rows.push_back(load(access, in, quads, q + k * subgroup_size(), n));
    return rows;
  }
  static void store(Access access, const Arr<T>& out, const Arr<vec<4, T>>& quads, const Int& q, const Int& n,
                    const Vec<4, T>& x) {
    const auto one_by_one = [&] {
      for (int k = 0; k < kQuad; ++k) {
        const Int i = q * kQuad + k;
        If (i < n) {
          out[access == reverse ? n - 1 - i : i] = x[k];
        }
      }
    };
    if (access != wide) return one_by_one();
    If (q < n / kQuad) {
      quads[q] = x;
    }
    Else { one_by_one(); }
  }
  /// The number of this subgroup, and of the first row's four elements that this thread takes.
  static Int run_number() { return tid() / subgroup_size(); }
  static Int first_quad(const Int& rows) { return run_number() * rows * subgroup_size() + subgroup_lane(); }

  static auto make_sums(Access access) {
    return kernel("sums of rows",
                  [=](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<T> sums, Int n, Int runs, Int rows) {
                    const Int first = first_quad(rows), lanes = subgroup_size();
                    Var<T> sum = T(0);
                    for (auto row : range(0, rows, kRowsAtOnce))
                      for (const Vec<4, T>& x : load_rows(access, in, quads, first + row * lanes, n))
                        sum += x[0] + x[1] + (x[2] + x[3]);
                    sum = subgroup_add(sum);
                    If (subgroup_elect() && run_number() < runs) {
                      sums[run_number()] = sum;
                    }
                  },
                  {.block = kBlock});
  }
  static auto make_scan(Access access, bool inclusive, bool whole) {
    return kernel("scan of rows",
                  [=](Arr<const T> in, Arr<const vec<4, T>> quads, Arr<const T> before, Arr<T> out,
                      Arr<vec<4, T>> out_quads, Int n, Int runs, Int rows) {
                    const Int first = first_quad(rows), lanes = subgroup_size();
                    Var<T> carried = T(0);
                    if (!whole) carried = before[min(run_number(), runs - 1)];
                    for (auto row : range(0, rows, kRowsAtOnce)) {
                      Int q = first + row * lanes;
                      for (const Vec<4, T>& x : load_rows(access, in, quads, q, n)) {
                        Var<T> sum = carried + subgroup_exclusive_add(x[0] + x[1] + (x[2] + x[3]));
                        Vec<4, T> sums;
                        for (int k = 0; k < kQuad; ++k) sums[k] = next_sum<T>(sum, x[k], inclusive);
                        carried = subgroup_broadcast(sum, lanes - 1);
                        store(access, out, out_quads, q, n, sums);
                        q += lanes;
                      }
                    }
                  },
                  {.block = kBlock});
  }

  using Sums = decltype(make_sums(wide));
  using Scan = decltype(make_scan(wide, false, false));
  static std::vector<Sums> all_sums() { return {make_sums(wide), make_sums(narrow), make_sums(reverse)}; }
  static std::vector<Scan> all_scans() {
    std::vector<Scan> all;
    for (const Access access : {wide, narrow, reverse})
      for (int k = 0; k < 4; ++k) all.push_back(make_scan(access, k & 2, k & 1));
    return all;
  }
  const Scan& scan(Access access, bool inclusive, bool whole) const {
    return scans[std::size_t(4 * access + 2 * inclusive + whole)];
  }

  std::vector<Sums> sums = all_sums();
  std::vector<Scan> scans = all_scans();
};

/// Kernels for vector code of a processor: a workgroup is one subgroup, the lanes of a vector, and has a run, which it
/// traverses in rows of one element per lane. Neighbouring lanes access neighbouring elements, in a reverse scan too:
/// there the last lane takes the first element of a row.
///
///   lanes 4, row 0: elements 0 1 2 3, sums 0 01 012 0123, the last one is carried to row 1: elements 4 5 6 7
///   reverse: element e is the one at n - 1 - e, so that row 0 reads n - 4 n - 3 n - 2 n - 1 and turns them around
template <class T>
struct VectorKernels {
  static constexpr int kRowsAtOnce = 4;

  /// A run, and how its rows are accessed.
  struct Rows {
    const int lanes;
    const bool reverse;
    const Int n, first, last, whole_end;  ///< up to whole_end, all elements of so many rows are there
    const Int lane = subgroup_lane();

    Rows(int of_lanes, bool backwards, const Int& all, const Int& run)
        : lanes(of_lanes),
          reverse(backwards),
          n(all),
          first(workgroup_id() * run),
          last(first + min(run, n - first)),
          whole_end(last - (last - first) % (lanes * kRowsAtOnce)) {}

    Var<T> turned(const Var<T>& x) const { return reverse ? subgroup_shuffle(x, (lanes - 1) - lane) : x; }
    /// Where the lane finds its element of the row that begins with element i.
    Int at(const Int& i) const { return reverse ? (n - lanes) - i + lane : i + lane; }
    Bool is_there(const Int& i) const { return i + (reverse ? (lanes - 1) - lane : lane) < last; }
    Var<T> load(const Arr<const T>& in, const Int& i) const { return turned(Var<T>(in[at(i)])); }
    /// Loads a row that may end early, with zeros beyond the end.
    Var<T> load_last(const Arr<const T>& in, const Int& i) const {
      Var<T> x = T(0);
      If (is_there(i)) {
        x = in[at(i)];
      }
      return turned(x);
    }
    void store(const Arr<T>& out, const Int& i, const Var<T>& x) const { out[at(i)] = turned(x); }
    void store_last(const Arr<T>& out, const Int& i, const Var<T>& x) const {
      const Var<T> placed = turned(x);
      If (is_there(i)) {
        out[at(i)] = placed;
      }
    }
  };

  static auto make_sums(int lanes, bool reverse) {
    return kernel("sums of vectors",
                  [=](Arr<const T> in, Arr<T> sums, Int n, Int run) {
                    const Rows rows(lanes, reverse, n, run);
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
  static auto make_scan(int lanes, bool reverse, bool inclusive, bool whole) {
    return kernel("scan of vectors",
                  [=](Arr<const T> in, Arr<const T> before, Arr<T> out, Int n, Int run) {
                    const Rows rows(lanes, reverse, n, run);
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
                      for (int k = 0; k < kRowsAtOnce; ++k) x.push_back(rows.load(in, i + k * lanes));
                      for (int k = 0; k < kRowsAtOnce; ++k) rows.store(out, i + k * lanes, next(x[std::size_t(k)]));
                    }
                    for (auto i : range(rows.whole_end, rows.last, lanes))
                      rows.store_last(out, i, next(rows.load_last(in, i)));
                  },
                  {.block = unsigned(lanes)});
  }

  explicit VectorKernels(int lanes) {
    for (int k = 0; k < 2; ++k) sums.push_back(make_sums(lanes, k));
    for (int k = 0; k < 8; ++k) scans.push_back(make_scan(lanes, k & 4, k & 2, k & 1));
  }
  const auto& scan(bool reverse, bool inclusive, bool whole) const {
    return scans[std::size_t(4 * reverse + 2 * inclusive + whole)];
  }

  std::vector<decltype(make_sums(1, false))> sums;
  std::vector<decltype(make_scan(1, false, false, false))> scans;
};

}  // namespace weft::detail
