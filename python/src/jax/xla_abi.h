// The binary interface by which XLA calls functions of others, version 0.3, as its header xla/ffi/api/c_api.h fixes it:
// the part that is used here.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::python::xla {

struct Extension {
  std::size_t struct_size;
  int kind;
  Extension* next;
};
inline constexpr int kMetadata = 1;  ///< the kind of a MetadataExtension

struct Version {
  std::size_t struct_size;
  Extension* extension;
  int major, minor;
};
inline constexpr int kMajor = 0, kMinor = 3;

/// What XLA asks of a function before it calls it.
struct Metadata {
  std::size_t struct_size;
  Version version;
  std::uint32_t traits;
  std::int64_t state_type;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;  ///< null: none
enum class Code : int { invalid_argument = 3, unimplemented = 12, internal = 13 };
struct ErrorArgs {
  std::size_t struct_size;
  Extension* extension;
  const char* message;
  Code code;
};

/// The first fields of the table of functions that XLA offers.
struct Api {
  std::size_t struct_size;
  Extension* extension;
  Version version;
  const void* internal;
  Error* (*create_error)(ErrorArgs* args);
};

enum class Type : int {
  pred = 1,
  s8 = 2,
  s16 = 3,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  u16 = 7,
  u32 = 8,
  u64 = 9,
  f16 = 10,
  f32 = 11,
  f64 = 12,
};

/// An array in row-major order.
struct Buffer {
  std::size_t struct_size;
  Extension* extension;
  Type type;
  void* data;
  std::int64_t rank;
  const std::int64_t* dims;
};

struct Buffers {
  std::size_t struct_size;
  Extension* extension;
  std::int64_t size;
  const int* kinds;
  Buffer** items;
};

struct Text {
  const char* data;
  std::size_t size;
};
enum class AttributeKind : int { array = 1, dictionary = 2, scalar = 3, string = 4 };
struct Scalar {
  Type type;
  const void* value;
};
struct Values {
  Type type;
  std::size_t size;
  const void* data;
};
struct Attributes {
  std::size_t struct_size;
  Extension* extension;
  std::int64_t size;
  const AttributeKind* kinds;
  Text** names;
  void** items;  ///< Values, Attributes, Scalar, Text
};

enum class Stage : int { instantiate = 0, prepare = 1, initialize = 2, execute = 3 };

/// A call of a function.
struct Frame {
  std::size_t struct_size;
  Extension* extension;
  const Api* api;
  void* context;
  Stage stage;
  Buffers inputs, outputs;
  Attributes attributes;
  void* future;
};

}  // namespace weft::python::xla
