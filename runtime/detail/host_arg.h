// What a launch gives one parameter of a kernel. Internal to the runtime.
#pragma once
#include <span>
#include <string>

#include "../../frontend/types/layout.h"

namespace weft {

class ArrayBase;

namespace detail {

/// What one parameter of the module is given: an array, or the bytes of a value.
struct HostArg {
  const ArrayBase* array = nullptr;
  const void* value = nullptr;
  std::span<const Leaf> leaves = {};  ///< of the value: its other bytes are padding
  bool optional = false;              ///< the array may be null
  int argument = 0;                   ///< number of the argument of the launch that it is a part of, from 1
  int part = 0;                       ///< and which part of that
  /// Of a field of a struct that holds arrays: ".points", and which it is of all fields.
  std::string (*field_name)(int field) = nullptr;
  int field = 0;
};

}  // namespace detail

}  // namespace weft
