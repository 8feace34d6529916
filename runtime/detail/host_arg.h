// The argument of a launch for one parameter of a kernel. Internal to the runtime.
#pragma once
#include <span>
#include <string>

#include "../../frontend/types/layout.h"

namespace weft {

class ArrayBase;

namespace detail {

/// The argument for one parameter of the module: an array, or the bytes of a value.
struct HostArg {
  const ArrayBase* array = nullptr;
  const void* value = nullptr;
  std::span<const Leaf> leaves = {};  ///< scalars of the value, whose other bytes are padding
  bool optional = false;              ///< the array may be null
  int argument = 0;                   ///< number, from 1, of the launch's argument that it is a part of
  int part = 0;                       ///< 0: the array or value; k: the indices of dimension k - 1
  /// Names a field of a struct that holds arrays: ".points". Null for other arguments.
  std::string (*field_name)(int field) = nullptr;
  int field = 0;  ///< number of that field
};

}  // namespace detail

}  // namespace weft
