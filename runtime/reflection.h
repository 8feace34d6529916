// The description of an exported kernel for programs in plain Vulkan, as a struct and as JSON.
//
// Includes nothing else of weft but its errors, so that loader/ can be used without the rest.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// An argument of an exported kernel and its place in the argument block.
///
/// A value's bytes, in the scalar and tight layout of the C++ type, are copied to `offset`. An array is a u64 address
/// followed, in the contiguous layout, by i32 shape[ndim], or, in the strided one, by i64 shape[ndim] and i64
/// strides[ndim] in bytes.
struct ReflectedArgument {
  enum class Role : std::uint8_t {
    argument,      ///< of the kernel itself
    gradient,      ///< of an adjoint: an array in the layout of argument `of`, to which (or from which) gradients go
    after,         ///< of an adjoint: argument `of` as it was after the kernel's launch; `of` itself is as before the
                   ///< launch
    owners,        ///< of an adjoint: zeros, one word for each `unit` bytes, see ReflectedArgument::unit
    scratch,       ///< of an adjoint: bytes_per_thread for each of `lanes` threads; any content
    log,           ///< of an adjoint: bytes_per_thread for each of `lanes` threads; any content
    first_thread,  ///< of an adjoint: u32, the number of threads in earlier dispatches of this launch
    lanes,         ///< of an adjoint: u32, a multiple of 8; the most threads of a dispatch
    failures  ///< of an adjoint: 65,536 bytes, zeros. Word 1 is not 0 after the launch if several threads stored one
              ///< element, whose gradient is then undefined
  };
  std::string name;            ///< "x", "mesh.points", or "argument 1"
  std::string type;            ///< "float32", "vec3", "Array<vec3, 2>", as weft's messages call it
  std::uint32_t argument = 0;  ///< the number of the C++ function's argument that this is, or is a part of, from 1; 0:
                               ///< added by the adjoint
  Role role = Role::argument;
  std::uint32_t of = 0;  ///< gradient, after, owners: the index of the argument that it belongs to

  std::uint32_t offset = 0;  ///< in the argument block, bytes
  std::uint32_t bytes = 0;   ///< there

  // These fields describe an array.
  std::uint32_t dimensions = 0;  ///< 0: a value
  bool strided = false;          ///< layout
  std::uint32_t element_bytes = 0;
  std::uint32_t alignment = 0;  ///< the address and strides are multiples of it
  bool reads = false, writes = false;
  /// Whether the adjoint changes the elements of this argument while it runs and puts them back.
  bool restored = false;
  /// For owners: the array has a 32-bit word for each `unit` bytes of argument `of` from its first element to its last
  /// one, rounded up to whole pieces of 64 bytes of `of`. 2 or 4.
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
  /// The version of the JSON. It grows when readers of the previous version would launch a kernel wrongly.
  static constexpr std::uint32_t kVersion = 1;

  std::string name;
  bool adjoint = false;
  std::string entry_point = "main";
  std::uint32_t block = 0;        ///< threads per workgroup, along x
  std::uint64_t spirv_hash = 0;   ///< FNV-1a of the module's bytes
  std::uint64_t spirv_bytes = 0;  ///< of the module, in bytes

  // These fields describe the argument block.
  std::uint32_t args_bytes = 0;  ///< a multiple of 4; bytes that no argument covers are 0
  bool by_address = false;  ///< push constants are the u64 address of the block, aligned to 8; else the block itself
  std::vector<ReflectedArgument> arguments;

  // These fields describe the launch.
  std::uint32_t dimensions = 0;      ///< the number of extents of the launch; 0: any, as the kernel asks for no
                                     ///< coordinates
  std::uint32_t extents_offset = 0;  ///< dimensions > 1: {u32 extent, u32 multiplier, u32 shift} for each extent but
                                     ///< the first
  bool whole_groups = false;         ///< the number of threads must be a multiple of `block`

  // These fields list the requirements of the kernel to the device.
  std::uint32_t shared_bytes = 0;   ///< memory that the threads of a workgroup share
  std::uint32_t subgroup_size = 0;  ///< not 0: full subgroups of exactly this size
  std::vector<std::string> capabilities, spirv_extensions, features, device_extensions, properties;

  std::uint32_t push_bytes() const { return by_address ? 8 : args_bytes; }
  bool operator==(const Reflection&) const = default;
};

namespace detail {
/// The most threads of one dispatch.
inline constexpr std::int64_t kMaxThreads = (1ll << 31) - 1;

/// The 64-bit FNV-1a hash, which tells a module from another one.
std::uint64_t hash_of_words(std::span<const std::uint32_t> words);
}  // namespace detail

/// The reflection as indented JSON text, the same for equal reflections. docs/exporting.md describes the fields.
/// Errors: Error(invalid_argument) for names that are not UTF-8.
std::string to_json(const Reflection& reflection);

/// The reflection that a JSON text describes.
/// Errors: Error(invalid_argument) naming the field, for a text that is no such JSON, has another version, or describes
/// an impossible kernel (arguments that overlap or stand outside the block, sizes of 0).
Reflection reflection_from_json(const std::string& text);

/// The name of a role in JSON: "argument", "gradient", ...
const char* to_string(ReflectedArgument::Role role);

}  // namespace weft
