// The shared part of all algorithms: checks of their arrays, scratch memory, launches. Internal to the runtime.
#pragma once
#include <map>
#include <mutex>
#include <optional>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/any_floats.h"
#include "../../../frontend/support/error.h"
#include "../../core/view.h"
#include "../../launch.h"
#include "../../work/observe.h"
#include "../options.h"

namespace weft::detail {

/// The most elements that an algorithm counts: a little below 2^31, so that a run that begins inside does not end
/// beyond.
inline constexpr std::int64_t kMostElements = (1ll << 31) - (1ll << 16);

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Bytes that AlgorithmCall::take() uses for an array.
constexpr std::uint64_t scratch_piece(std::int64_t count, std::uint64_t element_bytes) {
  return (std::uint64_t(count) * element_bytes + 15) / 16 * 16;
}

/// Errors: Error(invalid_argument), Error(unsupported) for a number of elements outside an algorithm's limits.
std::int64_t checked_count(const char* algorithm, std::int64_t n);

/// What make() gives for a shape of the devices of this process: kernels of the algorithm, made once for each shape.
template <class K, class Shape, class Make>
const K& made_once(const Shape& shape, const Make& make) {
  static std::mutex mutex;
  static std::map<Shape, K> all;
  const std::lock_guard lock(mutex);
  const auto known = all.find(shape);
  return known != all.end() ? known->second : all.emplace(shape, make()).first->second;
}

/// One call of an algorithm.
class AlgorithmCall {
 public:
  /// \param algorithm  its name in messages
  AlgorithmCall(const char* algorithm, const AlgorithmOptions& options) : algorithm_(algorithm), options_(options) {}

  /// Declares an array that the algorithm works on. \param what  in messages: "the keys"
  /// \param strided  the elements need not be contiguous
  /// Errors: Error(invalid_argument) for a null array or one on another device than the first or the stream,
  /// Error(unsupported) for a strided view or too many elements.
  void takes(const ArrayBase& a, const char* what, bool strided = false);
  /// Errors: Error(invalid_argument) when `a` has another number of elements, or fewer.
  void has_length(const ArrayBase& a, const char* what, std::int64_t n) const;
  void has_room(const ArrayBase& a, const char* what, std::int64_t n) const;
  /// Errors: Error(invalid_argument) when the two share memory.
  void are_apart(const ArrayBase& a, const char* what_a, const ArrayBase& b, const char* what_b) const;
  /// As are_apart(), but they may be the same elements.
  void are_same_or_apart(const ArrayBase& a, const char* what_a, const ArrayBase& b, const char* what_b) const;
  /// Declares that the operation has no derivative: see OperationKind::untaped.
  /// Errors: Error(not_differentiable) while a tape records and one of the arrays carries gradients.
  /// \param what  a text that lives as long as the program
  void has_no_derivative(const ArrayBase& to, const ArrayBase& from, const char* what, const char* instead) const;
  [[noreturn]] void refuse(ErrorKind kind, const std::string& message) const;

  /// Ends the checks and begins the launches: from here on no tape hears of launches.
  /// \param bytes     scratch memory that take() may give out
  /// \param replaces  an output whose elements are all replaced, or null
  /// \param none      nothing is taken this time: memory of the caller's is checked as always, and none is allocated
  /// Errors: Error(invalid_argument) for scratch memory of the caller that is too small, on another device, strided, or
  /// shared with an array of takes(); Error(out_of_memory).
  void begin(std::uint64_t bytes, const ArrayBase* replaces = nullptr, bool none = false);
  /// Takes the next piece of scratch memory.
  template <class T>
  Array<T> take(std::int64_t count) {
    return Row<T>(take_view(count, sizeof(T)));
  }
  /// back_to() releases the pieces taken since mark().
  std::uint64_t mark() const { return next_; }
  void back_to(std::uint64_t mark) { next_ = mark; }

  const DeviceState& device() const { return *device_; }
  /// Whether to run few threads with long runs, or many with short ones.
  bool coarse() const;
  /// Whether the device has a way of its own, for vector code of a processor, and no grain was asked for.
  bool on_processor() const;

  template <class... P, class... A>
  void run(const Kernel<P...>& kernel, const Extent& threads, const A&... args) const {
    if (options_.stream)
      launch(*options_.stream, kernel, threads, args...);
    else
      launch(kernel, threads, args...);
  }

 private:
  View take_view(std::int64_t count, std::uint32_t element_bytes);
  const char* const algorithm_;
  const AlgorithmOptions& options_;
  struct Taken {
    ArrayBase array;
    const char* what;
  };
  std::vector<Taken> taken_;
  DeviceState* device_ = nullptr;
  std::optional<Quiet> quiet_;
  std::optional<Within<bool>> part_;
  std::shared_ptr<Storage> scratch_;
  std::uint64_t next_ = 0, end_ = 0;  ///< addresses in the scratch memory
};

/// Sets all of a few numbers: a launch of no more threads than that.
template <class T>
void set_all(const AlgorithmCall& call, const Array<T>& a, T value) {
  static const auto set = kernel("set", [](Arr<T> a, Var<T> value) {
    const tracing::AnyFloats any;  // the minimum of nothing is infinity
    a[tid()] = value;
  });
  call.run(set, a.size(), a, value);
}

/// The memory of an array by four elements each, as a W; a remainder at the end is left out. Never empty: a launch
/// refuses an empty array even for kernels that do not read it.
template <class T, class W = vec<4, T>>
class Quads : public ArrayOn<W, 1> {
 public:
  static_assert(sizeof(W) == 4 * sizeof(T));
  explicit Quads(const Array<T>& a)
      : ArrayOn<W, 1>(View(a.storage(), a.address(), std::max<std::int64_t>(a.size() / 4, 1), sizeof(W))) {}
};
/// Whether four elements may be read at once.
inline bool is_wide(const ArrayBase& a) { return a.address() % 16 == 0; }

}  // namespace weft::detail
