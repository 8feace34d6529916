// What a program in plain Vulkan must know to launch an exported kernel: as a struct and as JSON.
//
// Needs nothing else of weft but its errors, so that loader/ can be used without the rest.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// An argument of an exported kernel and its place in the argument block.
///
/// A value's bytes are copied to `offset`: those of the C++ type, whose layout is scalar and tight. An array is
/// u64 address; then in the contiguous layout i32 shape[ndim], in the strided one i64 shape[ndim] and i64 strides[ndim]
/// in bytes.
struct ReflectedArgument {
  enum class Role : std::uint8_t {
    argument,      ///< of the kernel itself
    gradient,      ///< of an adjoint: array laid out as argument `of` is, to which (or from which) gradients go
    after,         ///< of an adjoint: argument `of` as it was after the kernel's launch; `of` itself is as before it
    owners,        ///< of an adjoint: zeros, `unit` for ..., see ReflectedArgument::unit
    scratch,       ///< of an adjoint: bytes_per_thread for each of `lanes` threads; any content
    log,           ///< of an adjoint: bytes_per_thread for each of `lanes` threads; any content
    first_thread,  ///< of an adjoint: u32, how many threads the dispatches of this launch before this one had
    lanes,         ///< of an adjoint: u32, a multiple of 8; a dispatch has no more threads
    failures  ///< of an adjoint: 65,536 bytes, zeros. Word 1 is not 0 after the launch where several threads stored
              ///< one element, so that its gradient is not defined
  };
  std::string name;            ///< "x", "mesh.points", or "argument 1"
  std::string type;            ///< "float32", "vec3", "Array<vec3, 2>", as weft's messages call it
  std::uint32_t argument = 0;  ///< which one of the C++ function's it is (a part of), from 1; 0: added by the adjoint
  Role role = Role::argument;
  std::uint32_t of = 0;  ///< gradient, after, owners: index of the argument that it is about

  std::uint32_t offset = 0;  ///< in the argument block, bytes
  std::uint32_t bytes = 0;   ///< there

  // Of an array
  std::uint32_t dimensions = 0;  ///< 0: a value
  bool strided = false;          ///< layout
  std::uint32_t element_bytes = 0;
  std::uint32_t alignment = 0;  ///< the address and strides are multiples of it
  bool reads = false, writes = false;
  /// Of an adjoint's argument: it changes the elements while it runs and puts them back.
  bool restored = false;
  /// owners: a 32-bit word for each `unit` bytes of argument `of` from its first element to its last one, rounded up to
  /// whole pieces of 64 bytes of that. 2 or 4.
  std::uint32_t unit = 0;
  std::uint32_t bytes_per_thread = 0;  ///< scratch, log

  bool is_array() const { return dimensions > 0; }
  std::uint32_t address_offset() const { return offset; }
  std::uint32_t shape_offset() const { return offset + 8; }
  std::uint32_t strides_offset() const { return offset + 8 + 8 * dimensions; }
  bool operator==(const ReflectedArgument&) const = default;
};

/// An exported kernel. docs/exporting.md tells how to launch one.
struct Reflection {
  /// Of the JSON. Grows when a reader of the old form would launch a kernel wrongly.
  static constexpr std::uint32_t kVersion = 1;

  std::string name;
  bool adjoint = false;
  std::string entry_point = "main";
  std::uint32_t block = 0;        ///< threads per workgroup, along x
  std::uint64_t spirv_hash = 0;   ///< FNV-1a of the module's bytes
  std::uint64_t spirv_bytes = 0;  ///< of the module

  // The argument block
  std::uint32_t args_bytes = 0;  ///< a multiple of 4; what no argument covers is 0
  bool by_address = false;  ///< push constants are the u64 address of the block, aligned to 8; else the block itself
  std::vector<ReflectedArgument> arguments;

  // The launch
  std::uint32_t dimensions = 0;      ///< of the launch: that many extents; 0: the kernel asks for no coordinates, any
  std::uint32_t extents_offset = 0;  ///< dimensions > 1: {u32 extent, u32 multiplier, u32 shift} for each but the first
  bool whole_groups = false;         ///< the number of threads must be a multiple of `block`

  // What the device must have
  std::uint32_t shared_bytes = 0;   ///< memory that the threads of a workgroup share
  std::uint32_t subgroup_size = 0;  ///< not 0: full subgroups of just this size
  std::vector<std::string> capabilities, spirv_extensions, features, device_extensions, properties;

  std::uint32_t push_bytes() const { return by_address ? 8 : args_bytes; }
  bool operator==(const Reflection&) const = default;
};

namespace detail {
/// The most threads of one dispatch.
inline constexpr std::int64_t kMaxThreads = (1ll << 31) - 1;

/// FNV-1a, 64 bits: tells a module from another one.
std::uint64_t hash_of_words(std::span<const std::uint32_t> words);
}  // namespace detail

/// JSON text, indented, the same for equal reflections. docs/exporting.md describes the fields.
/// Errors: Error(invalid_argument) for names that are not UTF-8.
std::string to_json(const Reflection& reflection);

/// Errors: Error(invalid_argument) that names the field, for text that is no such JSON, of another version, or that
/// describes no kernel that can be (arguments that overlap or stand outside the block, sizes of 0).
Reflection reflection_from_json(const std::string& text);

/// "argument", "gradient", ...
const char* to_string(ReflectedArgument::Role role);

}  // namespace weft
