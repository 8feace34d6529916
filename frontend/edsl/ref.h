// Elements of arrays as references: Ref<T> reads when used and writes when assigned.
#pragma once
#include "var.h"

namespace weft {

template <Scalar T>
class Ref<T> : public detail::ScalarOps<T> {
 public:
  using host = T;
  static constexpr ir::Type kType = scalar_type<T>();

  explicit Ref(const tracing::Address& at) : at_(at) {}
  Ref(const Ref&) = default;

  /// Writes the element; assigning one element to another copies the value.
  const Ref& operator=(const Ref& r) const&& { return *this = In<T>(r, Loc{}); }
  /// `auto e = x[i]; e = x[j];` is refused, and with it std::swap(x[i], x[j]): it would move names, not values.
  const Ref& operator=(const Ref& r) const& = delete;
  const Ref& operator=(In<T> v) const {
    tracing::store(at_, kType, 1, &v.id, v.loc);
    return *this;
  }
  template <class A>
  requires(!std::is_convertible_v<const A&, In<T>>) const Ref& operator=(const A&) const {
    WEFT_REFUSE_ASSIGNMENT(T, A);
    return *this;
  }
  WEFT_COMPOUND_ASSIGNMENTS(const Ref&, T, const)

  const Ref& operator++() const requires NumericScalar<T> { return *this += 1; }
  const Ref& operator--() const requires NumericScalar<T> { return *this -= 1; }
  /// Gives the value before.
  Var<T> operator++(int) const requires NumericScalar<T> {
    Var<T> before(*this);
    tracing::Id v = tracing::binary(ir::Op::add, before.read(), In<T>(1).id, at_.loc);
    tracing::store(at_, kType, 1, &v, at_.loc);
    return before;
  }
  Var<T> operator--(int) const requires NumericScalar<T> {
    Var<T> before(*this);
    tracing::Id v = tracing::binary(ir::Op::sub, before.read(), In<T>(1).id, at_.loc);
    tracing::store(at_, kType, 1, &v, at_.loc);
    return before;
  }

  tracing::Id read(Loc loc = {}) const {
    tracing::Id id;
    tracing::load(at_, kType, 1, &id, loc);
    return id;
  }
  const tracing::Address& address() const { return at_; }

 private:
  const Ref& update(ir::Op op, In<T> b) const {
    tracing::update(op, at_, kType, 1, &b.id, 1, b.loc);
    return *this;
  }
  tracing::Address at_;
};

/// An element of an Arr<const T>: read only.
template <Scalar T>
class Ref<const T> : public detail::ScalarOps<T> {
 public:
  using host = T;
  explicit Ref(const tracing::Address& at) : at_(at) {}
  Ref(const Ref&) = default;
  Ref& operator=(const Ref&) = delete;

  tracing::Id read(Loc loc = {}) const {
    tracing::Id id;
    tracing::load(at_, scalar_type<T>(), 1, &id, loc);
    return id;
  }
  const tracing::Address& address() const { return at_; }

 private:
  tracing::Address at_;
};

}  // namespace weft
