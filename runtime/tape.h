// Tape: what was launched while it recorded, and the way back through it for gradients.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "array.h"

namespace weft {

namespace detail {
class TapeCore;
class GradientCheck;

/// A function that a call gives, and the place of that call.
struct GivenFunction {
  std::function<void()> function;
  Loc loc;
  template <class F>
  requires(std::is_constructible_v<std::function<void()>, F>) GivenFunction(F&& f, Loc loc = Loc::here())
      : function(std::forward<F>(f)), loc(loc) {}
};
}  // namespace detail

/// An array and what is given as the gradient of it, of the same shape: see Tape::backward().
class Seed {
 public:
  template <class T, int N>
  Seed(const Array<T, N>& of, const std::type_identity_t<Array<T, N>>& gradient)
      : of_(of), gradient_(gradient), leaves_(detail::Layout<T>::leaves) {
    static_assert(detail::holds_reals<T>, "weft: only arrays of real numbers have gradients");
  }

 private:
  friend class detail::TapeCore;
  friend class detail::GradientCheck;
  Seed(const ArrayBase& of, const ArrayBase& gradient, std::span<const detail::Leaf> leaves)
      : of_(of), gradient_(gradient), leaves_(leaves) {}
  ArrayBase of_, gradient_;
  std::span<const detail::Leaf> leaves_;
};

/// How a Tape works.
struct TapeOptions {
  /// Memory on the device that one launch of an adjoint may use for what its threads must remember.
  std::uint64_t scratch_bytes = 256 << 20;
  /// States of a loop that an adjoint keeps; the others are computed again. Gradients are the same for every number.
  std::uint32_t loop_slots = 8;
  /// Gradients are the same in every bit in each run: what threads add to one element in an unknown order is added up
  /// without rounding first. Gradient functions that add to gradients of arrays, float16 arrays that several threads
  /// read, and arrays that are stored where several threads read them are refused.
  /// Cost: 80 bytes for each float32 number of such an array, 536 for each float64 number, while a launch goes back,
  /// and some two integer atomic operations for each addition; the device needs those on 64 bits, and float64. On a
  /// software device the way back took 1.6 to 4.5 times as long (docs/performance.md, suite gradient).
  bool deterministic = false;
};

/// Records what kernels, copies and fills do to arrays, and computes gradients by going back through it.
///
///     auto x = zeros<float>(device, n).requires_grad();
///     Tape tape;
///     tape.record([&] { launch(energy, n, x, loss); });
///     tape.backward(loss);                              // x.grad() is d loss / d x
///
/// Gradients are those by the elements as they were before the first recorded operation, and are added to grad() of
/// every array with requires_grad() that was used. Kernels may overwrite what earlier ones read: the tape keeps copies
/// of exactly the elements that are overwritten while the way back needs them, whoever overwrites them, as long as it
/// is not reset. Arrays that are computed from those with requires_grad() need no such call themselves.
///
/// A tape belongs to the thread that uses it. It keeps the arrays that it recorded until reset() or its end.
class Tape {
 public:
  explicit Tape(const TapeOptions& options = {});
  Tape(Tape&&) noexcept;
  Tape& operator=(Tape&&) noexcept;
  ~Tape();

  /// Calls f() and records what it launches, copies, fills and assigns on this thread; behind what was recorded before.
  /// Inside f another record() may stand, of this tape or another: each operation is recorded by the innermost only.
  /// Operations that no gradient passes are not recorded.
  ///
  /// What changes outside of it: elements that recorded work wrote and that fill(), assign() or copy_from() replace are
  /// constants to what is recorded from then on; changed in another way they are refused there. Elements that recorded
  /// work only reads may change: grad() sums the gradients by all values read. backward() begins with what recorded
  /// work left in the arrays, whatever has become of them since. See docs/differentiability.md.
  /// Errors: what f throws, what came before stays recorded: replace what it has written, as a loss that is added up,
  /// or reset(). Error(invalid_argument) for work on elements that recorded work wrote and that a kernel, a graph or
  /// the host changed since, outside of record(). For its launches Error(not_differentiable) for a
  /// kernel without a derivative, Error(invalid_argument) for arguments that overlap in part, one of them written. That
  /// launch is not made.
  /// Cost: about a microsecond for each launch beside its own (docs/performance.md, suite launch), and the time to
  /// build the adjoint for the first of each kernel.
  void record(const std::function<void()>& f, Loc loc = Loc::here());

  /// Gradients of one number: an array of one element.
  /// Errors: Error(invalid_argument) for an array of several elements or one that nothing recorded computes from arrays
  /// with requires_grad(), when nothing is recorded, or while a tape records; Error(out_of_memory) naming the kernel
  /// that needs more scratch memory than TapeOptions::scratch_bytes. Then gradients are undefined until zero().
  /// Cost: for each recorded launch that the result depends on, one of its adjoint. Memory: gradients of all arrays
  /// that carry them, which are kept for the next call.
  template <class T, int N>
  void backward(const Array<T, N>& loss, Loc loc = Loc::here()) {
    static_assert(RealScalar<T>, "weft: backward() takes one real number, or seeds: backward({{y, gradient_of_y}})");
    detail::called_from(loc, [&] { check_loss(loss); });
    backward({Seed(loss, Array<T, N>::full(loss.device(), {loss.extent(), loc}, T(1)))}, loc);
  }
  /// Gradients of the sum of y * seed over all elements of all pairs {y, seed}: one row of a Jacobian. Seeds of one
  /// array add up.
  /// Errors: the same, and Error(invalid_argument) for a seed of another shape or on another device.
  void backward(std::initializer_list<Seed> seeds, Loc loc = Loc::here()) {
    backward(std::span<const Seed>(seeds.begin(), seeds.size()), loc);
  }
  void backward(std::span<const Seed> seeds, Loc loc = Loc::here());

  /// The gradient of an array that carries one: grad() where it has gradient storage, else what the tape keeps since
  /// the last backward(). For an array that was computed on the tape that is the gradient by what it held before,
  /// inside a function of record_func() by what it held at that place.
  /// Errors: Error(invalid_argument) for an array that carries no gradient.
  template <class T, int N>
  Array<T, N> gradient(const Array<T, N>& array, Loc loc = Loc::here()) {
    Array<T, N> a = array;
    detail::called_from(loc, [&] { take_gradient(a); });
    return a;
  }
  /// Sets the gradients of all arrays of the tape to zero, grad() of those with gradient storage too.
  void zero(Loc loc = Loc::here());
  /// Forgets what was recorded and frees what was kept. Gradients of arrays with requires_grad() stay.
  void reset(Loc loc = Loc::here());
  /// How many operations are recorded.
  std::size_t size() const;

  /// Inside record(): lets `backward` stand for operations that the tape cannot see or that need a derivative of their
  /// own; leave those out of the recording by making them before record() or in unrecorded(). On the way back, at this
  /// place, the function is called; it adds to gradient(input) what follows from gradient(output), and sets the
  /// gradients of outputs that were overwritten to zero. All arrays given carry gradients from now on, and hold then
  /// what they held when record_func() was called. The function stands for what was done to them outside of the
  /// recording since the tape worked on them.
  /// Errors: Error(invalid_argument) outside record(), for a null array, for one that was freed, or for a view of which
  /// other elements were changed with its own, where these lie between its own.
  template <class... T, int... N>
  void record_func(const detail::GivenFunction& backward, const Array<T, N>&... arrays) {
    static_assert((detail::holds_reals<T> && ...), "weft: only arrays of real numbers have gradients");
    detail::called_from(backward.loc, [&] { add_function(backward.function, {&arrays...}); });
  }
  /// Inside record(): calls step(0) .. step(steps - 1) as one operation, in the memory of `slots` states of the arrays
  /// that the steps change, whatever their number: on the way back, steps between two states that were kept are run
  /// again. Gradients are the same for every number of slots; so are the arrays, which hold their final values then.
  ///
  /// A step must do the same to the arrays whenever it is called with the same number and the arrays hold what they
  /// held: it must not depend on anything else that changes, nor on an order of atomic additions. Inside it, launches,
  /// copies, fills and assignments on this thread may stand, and arrays that it makes for itself; what later steps or
  /// the loss need must be made before. Handles that take turns are chosen by the step's number.
  /// Errors: Error(invalid_argument) outside record(), or for fewer than 1 slot; what step() throws: the tape then
  /// cannot go back before reset(). backward() throws Error(invalid_argument) with the step's number for one that does
  /// not launch, copy, fill and assign the same when it is run again (what is written by way of host_span() is not
  /// seen), and for one that makes again what outlived it the first time and has a gradient; gradients are then
  /// undefined until zero(), and arrays hold their final values.
  /// Cost: `slots` copies of what a step changes, and for backward() two more. Steps are run again: of 10,000 each is
  /// run 4.6 times in all for 32 slots, some 8 times for 8.
  void checkpointed(int steps, int slots, std::function<void(int)> step, Loc loc = Loc::here());
  /// Calls f() with no tape recording what it does.
  static void unrecorded(const std::function<void()>& f, Loc loc = Loc::here());

 private:
  /// Lays the handle over the gradients.
  void take_gradient(ArrayBase& array);
  static void check_loss(const ArrayBase& loss);
  /// Errors: Error(invalid_argument) for a tape that was moved from.
  std::shared_ptr<detail::TapeCore> core() const;
  void add_function(std::function<void()> backward, std::vector<const ArrayBase*> arrays);

  std::shared_ptr<detail::TapeCore> core_;
};

}  // namespace weft
