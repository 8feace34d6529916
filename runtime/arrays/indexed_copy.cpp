// Copies elements that lists of indices choose, and elements to such places.
#include <fmt/format.h>

#include <utility>

#include "../../frontend/kernels/names.h"
#include "../../frontend/language/report.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/state.h"
#include "../indexed_array.h"
#include "../launch.h"
#include "../work/capture.h"
#include "../work/element_write.h"
#include "../work/observe.h"
#include "scalars.h"

namespace weft::detail {

namespace {

// The element of the array that the lists choose. An index outside the array ends the thread, because the caller's
// lists decide where these kernels read and write, on devices that check nothing. The failure counts dimensions as the
// caller does, without the first `added`.
template <class T>
auto& chosen_element(const IndexedArr<T, 4>& data, const std::array<Int, 4>& at, const Int& added) {
  const IndexedLayout& layout = data.layout();
  std::array<Int, 4> to = at;
  for (int k = 0; k < 4; ++k) {
    if (!layout.has_list(k)) continue;
    Int& index = to[std::size_t(k)];
    index = Int(through_list(layout, k, at[std::size_t(k)]).id, FromId{});
    const Int64 extent(shape_of(layout.data, k, ir::Type::i64, Loc::here()), FromId{});
    assert_(index >= 0 && Int64(index) < extent, "index", index, "is outside dimension", k - added,
            "of an indexed array, which has", extent, "elements");
  }
  return Arr<T, 4>(layout.data)(to[0], to[1], to[2], to[3]);
}

template <class T>
void indexed_words(const CutView& packed, const CutView& data, const IndexLists& lists, bool scatter) {
  static const auto gather =
      moving_elements(kernel("gather", [](Arr<T, 4> packed, IndexedArr<const T, 4> data, Int added) {
        auto [i, j, k, l] = tid<4>();
        packed(i, j, k, l) = chosen_element(data, {i, j, k, l}, added);
      }));
  static const auto scatter_words =
      moving_elements(kernel("scatter", [](Arr<const T, 4> packed, IndexedArr<T, 4> data, Int added) {
        auto [i, j, k, l] = tid<4>();
        chosen_element(data, {i, j, k, l}, added) = packed(i, j, k, l);
      }));
  if (const int k = dimension_to_cut(packed, sizeof(T)); k >= 0) {
    const std::int64_t n = packed.shape(k);
    for (const auto& [lo, hi] : {std::pair(std::int64_t(0), n / 2), std::pair(n / 2, n)}) {
      IndexLists some = lists;
      Array<int>& list = some[std::size_t(k)];
      if (!list.is_null()) list = list.slice(lo, hi);
      indexed_words<T>(packed.cut(k, lo, hi), list.is_null() ? data.cut(k, lo, hi) : data, some, scatter);
    }
    return;
  }
  IndexLists shifted;
  const int added = data.ndim() == 4 ? 0 : 3 - data.ndim();
  for (int k = 0; k < data.ndim(); ++k) shifted[std::size_t(added + k)] = lists[std::size_t(k)];
  for (std::int64_t word = 0; word < rounds(packed, sizeof(T)); ++word) {
    const Array<T, 4> tight = words<T>(packed, word);
    const IndexedArray<T, 4> chosen(words<T>(data, word), shifted);
    if (scatter)
      launch(scatter_words, tight.extent(), tight, chosen, added);
    else
      launch(gather, tight.extent(), tight, chosen, added);
  }
}

}  // namespace

void indexed_copy(const ArrayBase& packed, const ArrayBase& data, const IndexLists& given, bool scatter) {
  // A list in the memory that is written is copied, because it would be read while it changes.
  IndexLists lists = given;
  for (Array<int>& list : lists)
    if (scatter && !list.is_null() && list.storage() == data.storage()) list = list.clone();
  const Extent chosen = indexed_extent(data, lists);
  if (packed.is_null()) invalid("the source of a copy is a null array");
  for (const ArrayBase* a : {&packed, &data}) a->storage()->check_present();
  for (const Array<int>& list : lists)
    if (!list.is_null()) list.storage()->check_present();
  for (int k = 0; k < data.ndim(); ++k)
    if (packed.shape(k) != chosen[k])
      invalid("dimension {} of the source has {} elements, that of the indexed array {}", k, packed.shape(k),
              chosen[k]);
  if (packed.size() == 0) return;
  if (packed.storage()->device != data.storage()->device)
    invalid("elements of an indexed array on device {} are copied from or to one on device {}", data.device().name(),
            name_beside(*packed.storage()->device, *data.storage()->device));
  // Structs bring the arrays that they hold.
  const std::shared_ptr<Storage>& from = (scatter ? packed : data).storage();
  const ArrayBase& to = scatter ? data : packed;
  const ElementWrite elements{.to = to.storage(), .from = from, .list = {}, .whole = !scatter && is_whole(packed)};
  refuse_freed(*to.storage(), {from});
  elements.refuse_circle();
  const char* const what = scatter ? "a copy to an indexed array" : "a copy of an indexed array";
  if (recorder()) {
    std::vector<const ArrayBase*> others;
    for (const Array<int>& list : lists)
      if (!list.is_null()) others.push_back(&list);
    tell_recorder({.kind = OperationKind::untaped,
                   .to = &to,
                   .from = scatter ? &packed : &data,
                   .others = others,
                   .what = what,
                   .instead = "let a kernel copy the elements, which takes it as an IndexedArr"});
  }
  before_write(to, current_stream(*to.storage()->device), {.by = what, .replaces_all = !scatter});
  const HeardBy nobody(nullptr);
  elements.run([&] {
    if (in_words(packed) && in_words(data))
      indexed_words<std::uint32_t>(CutView(packed), CutView(data), lists, scatter);
    else
      indexed_words<std::uint8_t>(CutView(packed), CutView(data), lists, scatter);
  });
}

void check_indexed(const ArrayBase& data, const IndexLists& lists) {
  if (data.is_null()) invalid("indices into a null array");
  for (int k = 0; k < 4; ++k) {
    const Array<int>& list = lists[std::size_t(k)];
    if (list.is_null()) continue;
    if (k >= data.ndim()) invalid("indices for dimension {} of an array of {} dimension(s)", k, data.ndim());
    if (!(list.device() == data.device()))
      invalid("the indices of dimension {} are on device {}, the array on {}", k, list.device().name(),
              data.device().name());
  }
}

Extent indexed_extent(const ArrayBase& data, const IndexLists& lists) {
  Extent extent(0);
  extent.rank = data.ndim();
  for (int k = 0; k < data.ndim(); ++k) {
    const Array<int>& list = lists[std::size_t(k)];
    extent.n[std::size_t(k)] = list.is_null() ? data.shape(k) : list.shape(0);
  }
  return extent;
}

}  // namespace weft::detail
