// Elements that hold arrays: conversion between the host's handles and their form in the memory of a device.
#pragma once
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "../../frontend/types/layout.h"

namespace weft {

class ArrayBase;

namespace detail {

class Storage;
using References = std::vector<std::shared_ptr<Storage>>;

/// Writes an ArrayHandle to zeros, and adds its memory to the references.
/// Errors: Error(invalid_argument) for an array on another device or of more than 2^31 - 1 elements along a dimension;
/// Error(unsupported) for one that is not contiguous.
void pack_handle(const ArrayBase& array, Storage& holder, std::byte* to, References& references);
/// Sets the array to that of an ArrayHandle; to null if none of the references, which are in order of address, holds
/// its address.
void unpack_handle(ArrayBase& array, const std::byte* from, const References& references);

/// Writes one value of T, a type that holds arrays or a field of one, to zeros.
template <class T>
void pack(const T& value, Storage& holder, std::byte* to, References& references) {
  if constexpr (is_array_handle<T>) {
    pack_handle(value, holder, to, references);
  } else if constexpr (!Layout<T>::holds_arrays) {
    // Bytes between the fields are left out: equal values are packed to equal bytes.
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    for (const Leaf& l : Layout<T>::leaves) std::memcpy(to + l.offset, from + l.offset, std::size_t(ir::bytes(l.type)));
  } else {
    with_fields<FieldTypes<T>::count>(value, [&](const auto&... f) {
      std::size_t k = 0;
      (pack(f, holder, to + Layout<T>::fields[k++].offset, references), ...);
    });
  }
}
template <class T>
void unpack(T& value, const std::byte* from, const References& references) {
  if constexpr (is_array_handle<T>) {
    unpack_handle(value, from, references);
  } else if constexpr (!Layout<T>::holds_arrays) {
    std::memcpy(&value, from, sizeof value);
  } else {
    with_fields<FieldTypes<T>::count>(value, [&](auto&... f) {
      std::size_t k = 0;
      (unpack(f, from + Layout<T>::fields[k++].offset, references), ...);
    });
  }
}

}  // namespace detail
}  // namespace weft
