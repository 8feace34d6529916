// Workgroups and subgroups: shared arrays, barriers, numbers of threads, exchange of values.
#pragma once
#include "../language/atomic.h"
#include "../language/face.h"

namespace weft {

namespace detail {
/// Adds an array of the workgroup, or of the thread, to the kernel; its elements have `count` scalars.
ArrLayout make_kernel_array(bool is_private, ir::Type scalar, int count, const int* shape, int ndim, Loc loc);

template <int N>
struct SharedShape {
  int extent[N];
};

/// The common class of Shared and Private.
template <class T, int N, bool kPrivate>
class KernelArray {
 public:
  using Element = Var<T>;

  explicit KernelArray(const ArrLayout& layout) : layout_(layout) {}

  WEFT_ELEMENTS(layout_)
  auto operator[](Index i) const requires(N > 1) { return KernelArray<T, N - 1, kPrivate>(slice_of(layout_, i)); }

  /// The extent of dimension k.
  Var<int> shape(int k, Loc loc = Loc::here()) const {
    return Var<int>(shape_of(layout_, k, ir::Type::i32, loc), FromId{});
  }

 private:
  ArrLayout layout_;
};
}  // namespace detail

/// An array that the threads of a workgroup share. Elements are used like those of an Arr: s[i], s(i, j), s[i][j].
///
/// Its content is undefined when the workgroup starts; the reference device refuses to read elements that no thread has
/// written. Other threads read what a thread has written after a barrier(). It cannot be passed as an Arr, because it
/// lies in another memory.
template <class T, int N = 1>
using Shared = detail::KernelArray<T, N, false>;

/// An array that each thread has for itself, such as a stack, used like Shared. Its content is undefined when the
/// thread starts, and the reference device refuses to read elements that the thread has not written.
template <class T, int N = 1>
using Private = detail::KernelArray<T, N, true>;

/// Makes workgroup memory for N dimensions of elements of T, a scalar, vector or matrix: `auto tile = shared<vec3,
/// 2>({16, 17});`. Extents are numbers of the host. A kernel that uses it is launched over whole workgroups only: see
/// barrier().
/// Errors: Error(unsupported) with the requested bytes and those that the device has (16 KiB at least).
template <class T, int N>
Shared<T, N> shared(const detail::SharedShape<N>& shape, Loc loc = Loc::here()) {
  static_assert(N >= 1 && N <= 4, "weft: a shared array has 1 to 4 dimensions");
  constexpr bool fits = detail::flat_scalar<T>() != ir::Type::none;
  static_assert(fits, "weft::shared: elements are scalars, vectors or matrices; share a struct field by field");
  if constexpr (fits)
    return Shared<T, N>(
        detail::make_kernel_array(false, detail::flat_scalar<T>(), Flat<T>::count, shape.extent, N, loc));
}
/// Makes workgroup memory with one dimension: `auto s = shared<float>(256);`.
template <class T>
Shared<T> shared(int n, Loc loc = Loc::here()) {
  return shared<T, 1>({{n}}, loc);
}

/// Makes memory of the thread's own for N dimensions of elements of T, a scalar, vector or matrix: `auto stack =
/// private_array<int>(64);`. Extents are numbers of the host. Indices may be traced.
/// Gradient: none; to differentiate a kernel with a private array, put the array into a func() with a gradient of its
/// own.
/// Errors: Error(invalid_kernel) for more than 16,384 scalars, and for atomic operations on it.
/// Cost: elements that do not fit registers lie in the memory of the device, cached.
template <class T, int N>
Private<T, N> private_array(const detail::SharedShape<N>& shape, Loc loc = Loc::here()) {
  static_assert(N >= 1 && N <= 4, "weft: a private array has 1 to 4 dimensions");
  constexpr bool fits = detail::flat_scalar<T>() != ir::Type::none;
  static_assert(fits, "weft::private_array: elements are scalars, vectors or matrices; keep a struct field by field");
  if constexpr (fits)
    return Private<T, N>(
        detail::make_kernel_array(true, detail::flat_scalar<T>(), Flat<T>::count, shape.extent, N, loc));
}
/// Makes a private array with one dimension.
template <class T>
Private<T> private_array(int n, Loc loc = Loc::here()) {
  return private_array<T, 1>({{n}}, loc);
}

/// Waits until all threads of the workgroup have come here. Afterwards they all read what they wrote before, to shared
/// arrays and to arrays of the device. Every thread must come: a barrier may not be under a condition that differs
/// among them. A kernel whose threads work together (by barrier(), shared() or operations of subgroups) runs whole
/// workgroups: it is launched over a multiple of block_dim() threads, and guards accesses with If (tid() < n), not with
/// Return().
/// Errors: Error(invalid_kernel) with the line to which some threads may not come; Error(invalid_argument) by a launch
/// over another number of threads.
inline void barrier(Loc loc = Loc::here()) { tracing::barrier(loc); }

/// A barrier() among the threads of a subgroup only: afterwards they all read what they wrote before, to shared arrays
/// and to arrays of the device. Cheaper, and allowed if only some subgroups come: every thread of a subgroup must.
/// Errors: as barrier(). Gradient: none; Error(not_differentiable).
inline void subgroup_barrier(Loc loc = Loc::here()) { tracing::subgroup_barrier(loc); }

/// Orders this thread's accesses to arrays of the device, as other threads see them. Its writes before the fence are
/// visible to every thread that has seen one of its writes after the fence (by an atomic operation, say) and has then
/// passed a fence of its own. Waits for nobody. For structures that threads build from below: of two threads that meet
/// at a node, the second one (atomic_add tells) continues with what both have written. This holds for arrays that the
/// kernel both reads and writes through one argument.
/// Gradient: none; Error(not_differentiable).
inline void fence(Loc loc = Loc::here()) { tracing::fence(loc); }

#define WEFT_THREAD_NUMBER(name, ...) \
  inline Var<int> name(Loc loc = Loc::here()) { return Var<int>(tracing::__VA_ARGS__, detail::FromId{}); }
/// The number of threads of a workgroup: KernelOptions::block, or 256 (less on a device that cannot run as many).
WEFT_THREAD_NUMBER(block_dim, block_dim(loc))
/// The number of this thread in its workgroup.
WEFT_THREAD_NUMBER(local_id, thread_number(ir::Op::local_id, loc))
/// The number of the workgroup in the launch; threads are numbered workgroup by workgroup.
WEFT_THREAD_NUMBER(workgroup_id, thread_number(ir::Op::workgroup_id, loc))
/// The number of workgroups of the launch.
WEFT_THREAD_NUMBER(workgroup_count, workgroup_count(loc))
/// The number of threads of a subgroup: 4 to 128, a power of two, the same in all of a device's subgroups. A workgroup
/// is divided into whole subgroups; a block that is no multiple is refused (multiples of 128 never are).
WEFT_THREAD_NUMBER(subgroup_size, thread_number(ir::Op::subgroup_size, loc))
/// The number of this thread in its subgroup: local_id() % subgroup_size().
WEFT_THREAD_NUMBER(subgroup_lane, thread_number(ir::Op::subgroup_lane, loc))
/// The number of the subgroup in its workgroup: local_id() / subgroup_size().
WEFT_THREAD_NUMBER(subgroup_id, thread_number(ir::Op::subgroup_id, loc))
#undef WEFT_THREAD_NUMBER

namespace detail {
/// The types that operations of subgroups combine, alone or as components.
template <class T>
inline constexpr bool kNumbers = ir::is_numeric(flat_scalar<T>());
template <class T>
inline constexpr bool kBits = ir::is_bool(flat_scalar<T>()) || ir::is_int(flat_scalar<T>());

template <class T>
Var<T> subgroup(ir::Op op, const In<T>& v, tracing::Id lane, ir::Op by) {
  tracing::Id out[Flat<T>::count];
  tracing::subgroup(op, ids_of<T>(v), Flat<T>::count, lane, by == ir::Op::count ? 0 : std::uint64_t(by), out, v.loc);
  return from_ids<T>(out);
}
}  // namespace detail

// Operations of subgroups. Every thread of the subgroup must come: they may not be under a condition that differs among
// them (select(c, x, 0) takes part with a 0). Each takes numbers of any type, and vectors and matrices component by
// component; types other than 32 bits, float64 and bool need the device's feature shaderSubgroupExtendedTypes.
// Errors: Error(invalid_kernel) with the line to which some threads may not come; Error(unsupported) naming the feature
// that a device lacks.
#define WEFT_SUBGROUP(name, op, by, Taken, words)                                                      \
  template <class V, class T = HostOf<V>>                                                              \
  Var<T> name(const V& x, Loc loc = Loc::here()) {                                                     \
    constexpr bool taken = detail::Taken<T>;                                                           \
    static_assert(taken, "weft: " #name "() takes " words);                                            \
    if constexpr (taken) return detail::subgroup<T>(ir::Op::op, In<T>(x, loc), ir::kNone, ir::Op::by); \
  }
/// Combines the values of the subgroup; all its threads get the result. The order is open: sums of reals may differ in
/// their last bits between devices. For reals, min and max prefer a number to a NaN; over NaNs alone they are NaN.
WEFT_SUBGROUP(subgroup_add, subgroup_reduce, add, kNumbers, "numbers and vectors and matrices of them")
WEFT_SUBGROUP(subgroup_mul, subgroup_reduce, mul, kNumbers, "numbers and vectors and matrices of them")
WEFT_SUBGROUP(subgroup_min, subgroup_reduce, min, kNumbers, "numbers and vectors and matrices of them")
WEFT_SUBGROUP(subgroup_max, subgroup_reduce, max, kNumbers, "numbers and vectors and matrices of them")
/// Combines integers and booleans.
WEFT_SUBGROUP(subgroup_and, subgroup_reduce, bit_and, kBits, "integers, booleans and vectors and matrices of them")
WEFT_SUBGROUP(subgroup_or, subgroup_reduce, bit_or, kBits, "integers, booleans and vectors and matrices of them")
WEFT_SUBGROUP(subgroup_xor, subgroup_reduce, bit_xor, kBits, "integers, booleans and vectors and matrices of them")
/// The sum over the lanes up to and including this one.
WEFT_SUBGROUP(subgroup_inclusive_add, subgroup_inclusive, add, kNumbers, "numbers and vectors and matrices of them")
/// The sum over the lanes before this one; 0 in the first.
WEFT_SUBGROUP(subgroup_exclusive_add, subgroup_exclusive, add, kNumbers, "numbers and vectors and matrices of them")
#undef WEFT_SUBGROUP

#define WEFT_SUBGROUP_EXCHANGE(name, op, lane)                                  \
  template <class V, class T = HostOf<V>>                                       \
  Var<T> name(const V& x, detail::Index by, Loc loc = Loc::here()) {            \
    return detail::subgroup<T>(ir::Op::op, In<T>(x, loc), lane, ir::Op::count); \
  }
/// The value of one lane, taken modulo the subgroup's size; the lane must be the same for all threads.
WEFT_SUBGROUP_EXCHANGE(subgroup_broadcast, subgroup_broadcast, by.id)
/// The value of any lane, taken modulo the subgroup's size.
WEFT_SUBGROUP_EXCHANGE(subgroup_shuffle, subgroup_shuffle, by.id)
/// The value of lane (subgroup_lane() ^ mask), modulo the size.
WEFT_SUBGROUP_EXCHANGE(subgroup_shuffle_xor, subgroup_shuffle, tracing::lane_across(by.id, loc))
/// The value of the lane `delta` before this one; its own value where there is none.
WEFT_SUBGROUP_EXCHANGE(subgroup_shuffle_up, subgroup_shuffle, tracing::lane_before(by.id, loc))
/// The value of the lane `delta` after this one; its own value where there is none.
WEFT_SUBGROUP_EXCHANGE(subgroup_shuffle_down, subgroup_shuffle, tracing::lane_behind(by.id, loc))
#undef WEFT_SUBGROUP_EXCHANGE

/// The value of the first lane.
template <class V>
auto subgroup_broadcast_first(const V& x, Loc loc = Loc::here()) {
  return subgroup_broadcast(x, 0, loc);
}
/// Whether this thread is the first of its subgroup.
inline Var<bool> subgroup_elect(Loc loc = Loc::here()) { return subgroup_lane(loc) == 0; }
/// Whether b is true in some thread of the subgroup (subgroup_all(): in all of them).
inline Var<bool> subgroup_any(In<bool> b) {
  return detail::subgroup<bool>(ir::Op::subgroup_reduce, b, ir::kNone, ir::Op::bit_or);
}
inline Var<bool> subgroup_all(In<bool> b) {
  return detail::subgroup<bool>(ir::Op::subgroup_reduce, b, ir::kNone, ir::Op::bit_and);
}
/// A bit for each lane in which b is true: bit k % 32 of component k / 32.
inline Var<vec<4, unsigned>> subgroup_ballot(In<bool> b) {
  tracing::Id words[4];
  for (std::uint64_t k = 0; k < 4; ++k)
    tracing::subgroup(ir::Op::subgroup_ballot, &b.id, 1, ir::kNone, k, words + k, b.loc);
  return Var<vec<4, unsigned>>(words, detail::FromId{});
}
/// The number of threads of the subgroup in which b is true.
inline Var<int> subgroup_count(In<bool> b) {
  return subgroup_add(Var<int>(tracing::convert(ir::Type::i32, b.id, b.loc), detail::FromId{}), b.loc);
}

}  // namespace weft
