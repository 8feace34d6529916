// Tape: records operations, and computes gradients by going back through them.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "array.h"

namespace weft {

class TapeScope;

namespace detail {
class TapeCore;

/// A function that a call is given, and the place of that call.
struct GivenFunction {
  std::function<void()> function;
  Loc loc;
  template <class F>
  requires(std::is_constructible_v<std::function<void()>, F>) GivenFunction(F&& f, Loc loc = Loc::here())
      : function(std::forward<F>(f)), loc(loc) {}
};
}  // namespace detail

/// An array with the gradient of it that is given, of the same shape: see Tape::backward().
class Seed {
 public:
  template <class T, int N>
  Seed(const Array<T, N>& of, const std::type_identity_t<Array<T, N>>& gradient)
      : of_(of), gradient_(gradient), leaves_(detail::Layout<T>::leaves) {
    static_assert(detail::holds_reals<T>, "weft: only arrays of real numbers have gradients");
  }
  /// For code that knows the type of the elements at run time alone.
  /// \param leaves  the scalars of an element, in memory that outlives the tape
  Seed(const ArrayBase& of, const ArrayBase& gradient, std::span<const detail::Leaf> leaves)
      : of_(of), gradient_(gradient), leaves_(leaves) {}

 private:
  friend class detail::TapeCore;
  ArrayBase of_, gradient_;
  std::span<const detail::Leaf> leaves_;
};

/// The options of a Tape.
struct TapeOptions {
  /// The most device memory that one launch of an adjoint may use for values that its threads must remember.
  std::uint64_t scratch_bytes = 256 << 20;
  /// The number of states of a loop that an adjoint keeps; the other states are computed again. It does not change
  /// gradients.
  std::uint32_t loop_slots = 8;
  /// Makes gradients the same, bit by bit, in each run: contributions that threads add to one element in an unknown
  /// order are summed without rounding first. Refused are gradient functions that add to gradients of arrays, float16
  /// arrays that several threads read, and arrays that are stored where several threads read them.
  /// Cost: during a launch of the way back, 80 bytes for each float32 number of such an array, 536 for each float64
  /// number, and about two integer atomic operations for each addition; the device needs 64-bit atomics and float64. On
  /// a software device the way back took 1.6 to 4.5 times as long (docs/performance.md, suite gradient).
  bool deterministic = false;
};

/// Records what kernels, copies and fills do to arrays, and computes gradients by going back through the record.
///
///     auto x = zeros<float>(device, n).requires_grad();
///     Tape tape;
///     tape.record([&] { launch(energy, n, x, loss); });
///     tape.backward(loss);                              // x.grad() is d loss / d x
///
/// Gradients are derivatives by the elements as they were before the first recorded operation, and are added to grad()
/// of every array with requires_grad() that was used. Kernels may overwrite elements that earlier ones read: until
/// reset(), the tape keeps copies of exactly the overwritten elements that the way back needs, whichever work
/// overwrites them. Arrays that are computed from arrays with requires_grad() need no such call themselves.
///
/// A tape belongs to the thread that uses it. It keeps the recorded arrays until reset() or its end.
class Tape {
 public:
  explicit Tape(const TapeOptions& options = {});
  Tape(Tape&&) noexcept;
  Tape& operator=(Tape&&) noexcept;
  ~Tape();

  /// Calls f() and records the launches, copies, fills and assignments of this thread, after what was recorded before.
  /// Inside f another record() may stand, of this tape or another: only the innermost one records an operation.
  /// Operations that no gradient passes are not recorded.
  ///
  /// Changes outside a recording have these effects. Elements that recorded work wrote become constants to later
  /// recorded work when fill(), assign() or copy_from() replaces them; changed in another way, they are refused there.
  /// Elements that recorded work only reads may change: grad() sums the gradients by all values read. backward() begins
  /// with the values that recorded work left in the arrays, whatever has become of them since. See
  /// docs/differentiability.md.
  /// Errors: whatever f throws, after which earlier operations stay recorded; Error(invalid_argument) for work on
  /// elements that were changed outside record(), and for arguments that overlap in part, one of them written;
  /// Error(not_differentiable) for a launch of a kernel without a derivative. See docs/differentiability.md.
  /// Cost: about a microsecond for each launch in addition to its own cost (docs/performance.md, suite launch), and the
  /// time to build the adjoint for the first launch of each kernel.
  void record(const std::function<void()>& f, Loc loc = Loc::here());

  /// Computes the gradients of one number, which is an array of one element.
  /// Errors: Error(invalid_argument) for an array of several elements, or one that nothing recorded computes from
  /// arrays with requires_grad(), when nothing is recorded, or while a tape records; Error(out_of_memory) naming the
  /// kernel that needs more scratch memory than TapeOptions::scratch_bytes. Gradients are then undefined until zero().
  /// Cost: a launch of the adjoint for each recorded launch that the result depends on. Memory: the gradients of all
  /// arrays that carry them, which are kept for the next call.
  template <class T, int N>
  void backward(const Array<T, N>& loss, Loc loc = Loc::here()) {
    static_assert(RealScalar<T>, "weft: backward() takes one real number, or seeds: backward({{y, gradient_of_y}})");
    detail::called_from(loc, [&] { check_loss(loss); });
    backward({Seed(loss, Array<T, N>::full(loss.device(), {loss.extent(), loc}, T(1)))}, loc);
  }
  /// Computes the gradients of the sum of y * seed over all elements of all pairs {y, seed}: one row of a Jacobian.
  /// Seeds of one array add up.
  /// Errors: as for one number, and Error(invalid_argument) for a seed of another shape or on another device.
  void backward(std::initializer_list<Seed> seeds, Loc loc = Loc::here()) {
    backward(std::span<const Seed>(seeds.begin(), seeds.size()), loc);
  }
  void backward(std::span<const Seed> seeds, Loc loc = Loc::here());

  /// The gradient of an array that carries one: grad() if the array has gradient storage, else what the tape keeps
  /// since the last backward(). The gradient of an array that was computed on the tape is by the values that it held
  /// before; inside a function of record_func() it is by the values that the array held at that place.
  /// Errors: Error(invalid_argument) for an array that carries no gradient.
  template <class T, int N>
  Array<T, N> gradient(const Array<T, N>& array, Loc loc = Loc::here()) {
    Array<T, N> a = array;
    detail::called_from(loc, [&] { take_gradient(a); });
    return a;
  }
  /// Turns the handle into that of the array's gradients, as gradient() returns: for code that knows the type of the
  /// elements at run time alone.
  void take_gradient(ArrayBase& array);
  /// Sets the gradients of all arrays of the tape to zero, including grad() of arrays with gradient storage.
  void zero(Loc loc = Loc::here());
  /// Forgets the record and frees what was kept. Gradients of arrays with requires_grad() stay.
  void reset(Loc loc = Loc::here());
  /// The number of recorded operations.
  std::size_t size() const;

  /// Lets `backward` stand for operations that the tape cannot see, or that need a derivative of their own. Call it
  /// inside record(); leave those operations out of the recording by making them before record() or in unrecorded(). On
  /// the way back the function is called at this place, also if no gradient has come to the arrays. It adds what
  /// follows from gradient(output) to gradient(input), and sets the gradients of overwritten outputs to zero. All given
  /// arrays carry gradients from now on, and during the call they hold the values that they held at record_func(). The
  /// function stands for all changes to them outside the recording since the tape last worked on them.
  /// Errors: Error(invalid_argument) outside record(), for a null array, for an array that was freed, or for a view
  /// whose elements were changed together with other elements that lie between them.
  template <class... T, int... N>
  void record_func(const detail::GivenFunction& backward, const Array<T, N>&... arrays) {
    static_assert((detail::holds_reals<T> && ...), "weft: only arrays of real numbers have gradients");
    detail::called_from(backward.loc, [&] { add_function(backward.function, {&arrays...}); });
  }
  /// Does what record_func() does, for a list of arrays whose number and types are known at run time alone.
  void add_function(std::function<void()> backward, std::vector<const ArrayBase*> arrays);
  /// Calls step(0) .. step(steps - 1) as one operation, inside record(), in the memory of `slots` states of the arrays
  /// that the steps change, whatever the number of steps: the way back runs the steps between two kept states again.
  /// Neither the gradients nor the final values of the arrays, which they hold afterwards, depend on the number of
  /// slots.
  ///
  /// A step must do the same to the arrays whenever it is called with the same number and the arrays hold the same
  /// values: it must not depend on anything else that changes, nor on an order of atomic additions. It may launch,
  /// copy, fill and assign on this thread, and make arrays for itself; arrays that later steps or the loss need must be
  /// made before. Choose handles that take turns by the step's number.
  /// Errors: Error(invalid_argument) outside record(), or for fewer than 1 slot; whatever step() throws, after which
  /// the tape cannot go back before reset(). backward() throws Error(invalid_argument) naming a step that does not do
  /// the same when it runs again. See docs/differentiability.md.
  /// Cost: `slots` copies of what a step changes, and two more for backward(). Steps run again: each of 10,000 steps
  /// runs 4.6 times in all with 32 slots, about 8 times with 8.
  void checkpointed(int steps, int slots, std::function<void(int)> step, Loc loc = Loc::here());
  /// Calls f() while no tape records this thread's operations.
  static void unrecorded(const std::function<void()>& f, Loc loc = Loc::here());

 private:
  friend class TapeScope;
  static void check_loss(const ArrayBase& loss);
  /// The record of this tape.
  /// Errors: Error(invalid_argument) for a tape that was moved from.
  std::shared_ptr<detail::TapeCore> core() const;

  std::shared_ptr<detail::TapeCore> core_;
};

/// Records as Tape::record() does, for as long as the scope lives: for code that cannot be a function. Scopes end in
/// the thread that made them, the last one first.
///
///     Tape tape;
///     {
///       TapeScope recording(tape);
///       launch(energy, n, x, loss);
///     }
///     tape.backward(loss);
///
/// The tape may be moved or dropped meanwhile; the scope keeps its record.
/// Errors: as Tape::record(), from the constructor.
class TapeScope {
 public:
  explicit TapeScope(const Tape& tape, Loc loc = Loc::here());
  TapeScope(const TapeScope&) = delete;
  TapeScope& operator=(const TapeScope&) = delete;
  ~TapeScope();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
