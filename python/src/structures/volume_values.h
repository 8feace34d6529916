// The values of volumes in Python: their types, and the arrays that hold them.
#pragma once
#include <string>
#include <tuple>
#include <vector>

#include "../../../runtime/volume/volume.h"
#include "../host/arrays.h"
#include "live_ids.h"

namespace weft::python {

/// A volume as Python holds it.
using VolumeObject = Identified<Volume>;

/// Calls f<T>() for the C++ type of a volume's values. Errors: TypeError for elements that no volume has.
template <class F>
auto for_values(const DType& dtype, F f) {
#define WEFT_CASE(T, kind, S, slope) \
  if (&dtype == &TypeOf<T>::get()) return f.template operator()<T>();
  WEFT_VOLUME_TYPES(WEFT_CASE)
#undef WEFT_CASE
  throw nb::type_error((dtype.name + " is no type of a volume's values").c_str());
}

/// The type of a volume's values; null for index grids.
const DType* values_of(const Volume& volume);
/// The values of all leaves, see Volume::values(). Errors: TypeError for index grids.
Array values_array(const Volume& volume);

/// The numbers of a background as a value. Errors: TypeError for another number of them.
template <class T>
T value_from(const std::vector<double>& numbers) {
  if (int(numbers.size()) != Flat<T>::count)
    throw nb::type_error(("a background of " + std::to_string(Flat<T>::count) + " numbers is wanted").c_str());
  using S = typename Flat<T>::scalar;
  if constexpr (Scalar<T>) {
    return T(S(numbers[0]));
  } else {
    T value{};
    for (int k = 0; k < Flat<T>::count; ++k) value[k] = S(numbers[std::size_t(k)]);
    return value;
  }
}
/// What a program says of a volume that it makes. Errors: TypeError for a transform of other numbers.
VolumeOptions volume_options(const std::vector<double>& matrix, const std::vector<double>& translation,
                             const std::string& name, std::tuple<int, int, int> room);

}  // namespace weft::python
