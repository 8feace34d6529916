// Messages of kernels to the host: print() and assert_().
#pragma once
#include <string_view>

#include "face.h"
#include "struct_var.h"

namespace weft {

namespace detail {

template <class T>
concept Printable = Record<T> || requires {
  {Flat<T>::count};
};

/// The number of columns of a matrix, which messages show row by row; 1 for all other values, which are one list.
template <class T>
inline constexpr int kColumns = 1;
template <int R, int C, class T>
inline constexpr int kColumns<mat<R, C, T>> = C;

/// A part of a message: a text, or a traced or host value.
class Item {
 public:
  template <class A>
  Item(const A& a, Loc loc = Loc::here()) : loc(loc) {
    using T = HostOf<A>;
    if constexpr (std::is_convertible_v<const A&, std::string_view>) {
      add_text(std::string(std::string_view(a)));
    } else if constexpr (!Printable<T>) {
      static_assert(Printable<T>, "weft: print() and assert_() take texts, scalars, vectors, matrices and structs");
    } else {
      const In<T> in(a, loc);
      if constexpr (Scalar<T>) {
        ids.push_back(in.id);
      } else {
        ids.assign(in.id, in.id + Layout<T>::count);
      }
      add_value<T>();
    }
  }

  std::vector<ir::MessagePiece> pieces;
  std::vector<tracing::Id> ids;  ///< a value's scalars, in order
  Loc loc;

 private:
  ir::MessagePiece& add();
  void add_text(std::string text);

  template <class T>
  void add_value() {
    if constexpr (is_std_array<T>) {
      add_text("[");
      for (std::size_t i = 0; i < std::tuple_size_v<T>; ++i) {
        if (i) add_text(", ");
        add_value<typename T::value_type>();
      }
      add_text("]");
    } else if constexpr (Record<T>) {
      add_text(TypeName<T>::get() + "(");
      add_fields<T>(FieldTypes<T>(), std::make_index_sequence<std::size_t(FieldTypes<T>::count)>());
      add_text(")");
    } else {
      ir::MessagePiece& piece = add();
      piece.type = scalar_type<typename Flat<T>::scalar>();
      piece.composite = !Scalar<T>;
      piece.columns = kColumns<T>;
      piece.rows = std::uint32_t(Flat<T>::count) / piece.columns;
    }
  }
  template <class T, class... F, std::size_t... K>
  void add_fields(Types<F...>, std::index_sequence<K...>) {
    ((add_text((K ? ", " : "") + struct_field_name<T, int(K)>() + "="), add_value<F>()), ...);
  }
};

void record_print(std::span<Item> items, Loc loc);
void record_assertion(tracing::Id condition, std::span<Item> items, Loc loc);

}  // namespace detail

/// Prints a line: texts, scalars, vectors, matrices, structs, separated by blanks. Floats take the fewest digits that
/// tell them from their neighbours, vectors are "[1, 2, 3]", matrices "[[1, 2], [3, 4]]", structs "Ball(center=[1, 2,
/// 3], radius=0.5)".
///
/// The host shows the lines at the next wait for the launch (reading an array, synchronize()), ordered by launch, by
/// thread, and as the thread printed them; see set_print_sink(). Lines that do not fit into the buffer of the stream
/// are counted, and the host says how many lines of which kernel were lost; see set_report_bytes().
/// Cost: a few words of memory traffic and one atomic addition a call.
template <class... A>
void print(detail::Item first, const A&... rest) {
  const Loc loc = first.loc;
  detail::Item items[] = {std::move(first), detail::Item(rest, loc)...};
  detail::record_print(items, loc);
}
inline void print(Loc loc = Loc::here()) { detail::record_print({}, loc); }

/// Ends the thread if the condition is false, and makes the next wait for the launch throw Error(kernel_fault) with the
/// kernel, the line, the thread, and `items` in the form of print(). Always checked. Of several failures, the one of
/// the first launch and its lowest thread is thrown, with the number of the others. In the condition of a While the
/// thread continues, as it cannot return there: its While loops end before their next iteration, and then the thread.
/// Cost: a comparison and a branch.
template <class... A>
void assert_(In<bool> condition, const A&... items) {
  detail::Item list[] = {detail::Item(items, condition.loc)..., detail::Item("", condition.loc)};
  detail::record_assertion(condition.id, {list, sizeof...(items)}, condition.loc);
}

}  // namespace weft
