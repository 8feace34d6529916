// Traced control flow: If, range, While, Break, Continue, Return, with and without macros.
#pragma once
#include "var.h"

namespace weft {

namespace detail {

/// Checks the condition of If and While. A type other than a boolean ends here, which spares the reader a list of In's
/// constructors.
template <class C>
In<bool> condition(const C& c, Loc loc = Loc::here()) {
  constexpr bool is_bool = std::is_convertible_v<const C&, In<bool>>;
  static_assert(is_bool, "weft: a condition is a Bool; compare numbers, as in n != 0");
  if constexpr (is_bool)
    return In<bool>(c, loc);
  else
    return In<bool>(true, loc);
}

/// A block of traced control flow, open while its object lives in the header of a `for`. The step of that `for` closes
/// it. A body left by a native break, return, goto or exception never gets to the step, which the destructor notices.
class Block {
 public:
  enum class Kind { if_, else_, else_if, while_ };
  Block(Kind kind, Loc loc);
  ~Block();
  Block(const Block&) = delete;

  /// True the first time. If and While evaluate their condition here, because While's is part of the loop.
  template <class C>
  bool enter(C condition) {
    if (state_ != State::fresh) return false;
    state_ = State::open;
    if (kind_ == Kind::while_) open_loop();
    In<bool> c = condition();
    begin(c.id);
    return true;
  }
  bool enter() {
    if (state_ != State::fresh) return false;
    state_ = State::open;
    begin(ir::kNone);
    return true;
  }
  /// The `for` of an If runs twice: for its body, and, once that is closed, for the code after `else`.
  bool next() {
    if (state_ == State::open) {
      leave();
      return true;
    }
    return state_ == State::fresh;
  }
  void leave();

 private:
  enum class State : std::uint8_t { fresh, open, closed };
  void open_loop();
  void begin(tracing::Id condition);
  void close();

  Kind kind_;
  State state_ = State::fresh;
  std::uint16_t reopened_ = 0;  ///< else: the number of regions entered to reach the end of an ElseIf chain
  int exceptions_;
  Loc loc_;
};

/// A counted loop: begin() traces its head, the one increment its end.
class RangeLoop {
 public:
  RangeLoop(tracing::Id lo, tracing::Id hi, tracing::Id step, Loc loc);
  ~RangeLoop();
  RangeLoop(const RangeLoop&) = delete;
  /// Opens the loop; returns the counter of this iteration.
  tracing::Id open();
  void close();
  bool fresh() const { return state_ == 0; }
  /// Allows a range to be run through several times.
  void restart() {
    if (state_ == 2) state_ = 0;
  }

 private:
  tracing::Id lo_, hi_, step_;
  std::uint32_t trace_;
  std::uint32_t counter_ = 0;
  bool counts_ = false;  ///< the counter is the number of the iteration, not the value itself
  tracing::Id count_ = ir::kNone;
  std::uint8_t state_ = 0;
  int exceptions_;
  Loc loc_;
};

}  // namespace detail

/// The values lo, lo + step, ... below hi (above it for a negative step), as Python's range. A step of 0 is an error of
/// the kernel if it is a number of the host's; a traced step of 0 gives no values. Bounds and step are evaluated once;
/// assigning the loop's variable does not change the course of the loop.
template <IntegerScalar T>
class Range {
 public:
  Range(tracing::Id lo, tracing::Id hi, tracing::Id step, Loc loc) : loop_(lo, hi, step, loc) {}
  struct End {};
  struct Iterator {
    detail::RangeLoop* loop;
    Var<T> operator*() const { return Var<T>(loop->open(), detail::FromId{}); }
    void operator++() { loop->close(); }
    bool operator!=(End) const { return loop->fresh(); }
  };
  Iterator begin() {
    loop_.restart();
    return {&loop_};
  }
  End end() { return {}; }

 private:
  detail::RangeLoop loop_;
};

namespace detail {
// The type of a range is that of its traced bounds, or int if all are host numbers.
template <class T>
struct IntegerOf {
  using type = void;
};
template <IntegerScalar T>
struct IntegerOf<Var<T>> {
  using type = T;
};
template <IntegerScalar T>
struct IntegerOf<HostChoice<T>> : IntegerOf<Var<T>> {};
template <class A, class... B>
struct RangeType {
  using type = std::conditional_t<std::is_void_v<typename IntegerOf<A>::type>, typename RangeType<B...>::type,
                                  typename IntegerOf<A>::type>;
};
template <class A>
struct RangeType<A> {
  using type = std::conditional_t<std::is_void_v<typename IntegerOf<A>::type>, int, typename IntegerOf<A>::type>;
};
/// A bound or the step of a range.
template <class T, class A>
tracing::Id bound(const A& a, Loc loc) {
  constexpr bool fits = std::is_convertible_v<const A&, In<T>>;
  static_assert(fits, "weft: the bounds and the step of a range are integers of one type; convert, as in Int(x)");
  if constexpr (fits)
    return In<T>(a, loc).id;
  else
    return ir::kNone;
}
}  // namespace detail

/// A loop of the kernel: `for (auto i : range(n)) {..}`. A native `for` is unrolled while the kernel is traced.
template <class H, class T = typename detail::RangeType<H>::type>
Range<T> range(const H& hi, Loc loc = Loc::here()) {
  return {In<T>(0, loc).id, detail::bound<T>(hi, loc), In<T>(1, loc).id, loc};
}
template <class L, class H, class T = typename detail::RangeType<L, H>::type>
Range<T> range(const L& lo, const H& hi, Loc loc = Loc::here()) {
  return {detail::bound<T>(lo, loc), detail::bound<T>(hi, loc), In<T>(1, loc).id, loc};
}
template <class L, class H, class S, class T = typename detail::RangeType<L, H, S>::type>
Range<T> range(const L& lo, const H& hi, const S& step, Loc loc = Loc::here()) {
  return {detail::bound<T>(lo, loc), detail::bound<T>(hi, loc), detail::bound<T>(step, loc), loc};
}

/// Leaves the innermost traced loop.
void Break(Loc loc = Loc::here());
/// Continues with the next iteration of the innermost traced loop. (A native `continue` inside a traced block merely
/// ends the block and cannot be noticed.)
void Continue(Loc loc = Loc::here());
/// Ends this thread's run of the kernel, even from inside inlined functions.
void Return(Loc loc = Loc::here());

/// The chain of an If without macros: if_(c, [&] {..}).elif_(d, [&] {..}).else_([&] {..}). `elif_` takes a function
/// that computes its condition, which runs only if the earlier conditions are false.
class IfChain {
 public:
  template <class C, class F>
  IfChain elif_(C condition, F body, Loc loc = Loc::here()) {
    detail::Block otherwise(detail::Block::Kind::else_if, loc);
    otherwise.enter();
    {
      detail::Block block(detail::Block::Kind::if_, loc);
      block.enter([&] { return detail::condition(condition(), loc); });
      body();
      block.leave();
    }
    otherwise.leave();
    return {};
  }
  template <class F>
  void else_(F body, Loc loc = Loc::here()) {
    detail::Block block(detail::Block::Kind::else_, loc);
    block.enter();
    body();
    block.leave();
  }
};
template <class C, class F>
requires(!std::same_as<C, bool>) IfChain if_(const C& condition, F body, Loc loc = Loc::here()) {
  detail::Block block(detail::Block::Kind::if_, loc);
  block.enter([&] { return detail::condition(condition, loc); });
  body();
  block.leave();
  return {};
}

namespace detail {
/// The chain that if_() begins on the host, as IfChain in a kernel.
class HostIfChain {
 public:
  explicit HostIfChain(bool done) : done_(done) {}
  template <class C, class F>
  HostIfChain elif_(C condition, F body) {
    if (done_ || !condition()) return *this;
    body();
    return HostIfChain(true);
  }
  template <class F>
  void else_(F body) {
    if (!done_) body();
  }

 private:
  bool done_;
};
}  // namespace detail

/// Runs the branch that holds, on the host, so that a template written with if_ also runs there.
template <class F>
detail::HostIfChain if_(std::same_as<bool> auto condition, F body) {
  if (condition) body();
  return detail::HostIfChain(condition);
}
/// A While without macros; condition and body are functions without arguments, which the trace runs once.
template <class C, class F>
void while_(C condition, F body, Loc loc = Loc::here()) {
  detail::Block block(detail::Block::Kind::while_, loc);
  block.enter([&] { return detail::condition(condition(), loc); });
  body();
  block.leave();
}

}  // namespace weft

#define WEFT_CAT_(a, b) a##b
#define WEFT_CAT(a, b) WEFT_CAT_(a, b)
#define WEFT_BLOCK_(id, kind, ...)                                                                              \
  for (::weft::detail::Block WEFT_CAT(weft_block_, id)(::weft::detail::Block::Kind::kind, ::weft::Loc::here()); \
       WEFT_CAT(weft_block_, id).enter(__VA_ARGS__); WEFT_CAT(weft_block_, id).leave())

#define WEFT_IF_(id, ...)                                                                                      \
  for (::weft::detail::Block WEFT_CAT(weft_block_, id)(::weft::detail::Block::Kind::if_, ::weft::Loc::here()); \
       WEFT_CAT(weft_block_, id).next();)                                                                      \
    if (WEFT_CAT(weft_block_, id).enter([&] { return ::weft::detail::condition(__VA_ARGS__); }))

/// Branches of the kernel: If (c) {..} ElseIf (d) {..} Else {..}. Conditions are evaluated in order, each only if those
/// before it are false. An Else belongs to the If to which a native `else` would.
#define If(...) WEFT_IF_(__COUNTER__, __VA_ARGS__)
#define Else else WEFT_BLOCK_(__COUNTER__, else_)
#define ElseIf(...) else WEFT_BLOCK_(__COUNTER__, else_if) If (__VA_ARGS__)
/// A loop of the kernel: While (c) {..}. The condition is evaluated before each iteration.
#define While(...) WEFT_BLOCK_(__COUNTER__, while_, [&] { return ::weft::detail::condition(__VA_ARGS__); })
