// The value that a launch gives one parameter of a kernel. Internal to the runtime.
#pragma once
#include <span>
#include <string>

#include "../../frontend/types/layout.h"

namespace weft {

class ArrayBase;

namespace detail {

/// The value of one parameter of the module: an array, or the bytes of a value.
struct HostArg {
  const ArrayBase* array = nullptr;
  const void* value = nullptr;
  std::span<const Leaf> leaves = {};  ///< scalars of the value, whose other bytes are padding
  bool optional = false;              ///< the array may be null
  int argument = 0;                   ///< the number of the launch's argument to which it belongs, from 1
  int part = 0;                       ///< the number of the part of that argument
  /// The name, as ".points", of a field of a struct that holds arrays, by the number of the field.
  std::string (*field_name)(int field) = nullptr;
  int field = 0;  ///< number of that field
};

}  // namespace detail

}  // namespace weft
