// Reads capabilities, modes and atomic operations back from a module's words.
#include "requirements.h"

#include <algorithm>
#include <cstring>
#include <spirv/unified1/spirv.hpp11>
#include <unordered_map>

#include "../frontend/support/error.h"

namespace weft::spirv {

namespace {

using Word = std::uint32_t;

struct CapabilityRow {
  spv::Capability capability;
  const char* name;
  const char* feature;   ///< of the device, or null
  const char* property;  ///< of the device, or null
};

// Requirements of the capabilities that emit() declares. Requirements that depend on the memory of an operation are
// found by visit_atomic().
constexpr CapabilityRow kCapabilities[] = {
    {spv::Capability::Shader, "Shader", nullptr, nullptr},
    {spv::Capability::PhysicalStorageBufferAddresses, "PhysicalStorageBufferAddresses", "bufferDeviceAddress", nullptr},
    {spv::Capability::Int8, "Int8", "shaderInt8", nullptr},
    {spv::Capability::Int16, "Int16", "shaderInt16", nullptr},
    {spv::Capability::Int64, "Int64", "shaderInt64", nullptr},
    {spv::Capability::Float16, "Float16", "shaderFloat16", nullptr},
    {spv::Capability::Float64, "Float64", "shaderFloat64", nullptr},
    {spv::Capability::StorageBuffer8BitAccess, "StorageBuffer8BitAccess", "storageBuffer8BitAccess", nullptr},
    {spv::Capability::StorageBuffer16BitAccess, "StorageBuffer16BitAccess", "storageBuffer16BitAccess", nullptr},
    {spv::Capability::AtomicFloat32AddEXT, "AtomicFloat32AddEXT", nullptr, nullptr},
    {spv::Capability::AtomicFloat64AddEXT, "AtomicFloat64AddEXT", nullptr, nullptr},
    {spv::Capability::Int64Atomics, "Int64Atomics", nullptr, nullptr},
    {spv::Capability::GroupNonUniform, "GroupNonUniform", nullptr, "VK_SUBGROUP_FEATURE_BASIC_BIT"},
    {spv::Capability::GroupNonUniformVote, "GroupNonUniformVote", nullptr, "VK_SUBGROUP_FEATURE_VOTE_BIT"},
    {spv::Capability::GroupNonUniformArithmetic, "GroupNonUniformArithmetic", nullptr,
     "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT"},
    {spv::Capability::GroupNonUniformBallot, "GroupNonUniformBallot", nullptr, "VK_SUBGROUP_FEATURE_BALLOT_BIT"},
    {spv::Capability::GroupNonUniformShuffle, "GroupNonUniformShuffle", nullptr, "VK_SUBGROUP_FEATURE_SHUFFLE_BIT"},
    {spv::Capability::RayQueryKHR, "RayQueryKHR", "rayQuery", nullptr},
    {spv::Capability::RoundingModeRTE, "RoundingModeRTE", nullptr, nullptr},
    {spv::Capability::SignedZeroInfNanPreserve, "SignedZeroInfNanPreserve", nullptr, nullptr},
};

std::string text_of(const Word* words, std::size_t count) {
  const auto* bytes = reinterpret_cast<const char*>(words);
  return {bytes, strnlen(bytes, count * 4)};
}

void add(std::vector<std::string>& list, const char* name) {
  if (std::ranges::find(list, name) == list.end()) list.emplace_back(name);
}

class Reader {
 public:
  explicit Reader(Requirements& found) : found_(found) {}

  void visit(spv::Op op, const Word* w, std::size_t length) {
    switch (op) {
      case spv::Op::OpCapability: return capability(spv::Capability(w[1]));
      case spv::Op::OpExtension: return extension(text_of(w + 1, length - 1));
      case spv::Op::OpExecutionMode: return mode(spv::ExecutionMode(w[2]), length > 3 ? w[3] : 0);
      case spv::Op::OpTypeInt:
      case spv::Op::OpTypeFloat: types_[w[1]] = {w[2], op == spv::Op::OpTypeFloat, spv::StorageClass::Function}; return;
      case spv::Op::OpTypePointer: types_[w[1]] = {0, false, spv::StorageClass(w[2])}; return;
      default: break;
    }
    const bool atomic = (op >= spv::Op::OpAtomicLoad && op <= spv::Op::OpAtomicXor && op != spv::Op::OpAtomicStore) ||
                        op == spv::Op::OpAtomicFAddEXT;
    if (atomic) visit_atomic(op, types_[w[1]], types_[pointers_[w[3]]].storage);
    if (op >= spv::Op::OpGroupNonUniformAll && op <= spv::Op::OpGroupNonUniformQuadSwap) visit_subgroup(types_[w[1]]);
    // Every instruction that gives a pointer has its type first and its id second.
    if (length > 2 && types_.contains(w[1]) && op > spv::Op::OpTypeForwardPointer) pointers_[w[2]] = w[1];
  }

 private:
  struct Type {
    Word bits = 0;
    bool is_float = false;
    spv::StorageClass storage = spv::StorageClass::Function;  ///< a pointer's
  };

  void capability(spv::Capability c) {
    const auto* row = std::ranges::find(kCapabilities, c, &CapabilityRow::capability);
    if (row == std::end(kCapabilities)) internal_error("a capability that spirv/requirements.cpp does not list");
    found_.capabilities.emplace_back(row->name);
    if (row->feature) add(found_.features, row->feature);
    if (row->property) add(found_.properties, row->property);
  }

  void extension(const std::string& name) {
    found_.spirv_extensions.push_back(name);
    if (name == "SPV_EXT_shader_atomic_float_add") add(found_.device_extensions, "VK_EXT_shader_atomic_float");
    if (name == "SPV_KHR_ray_query") {
      for (const char* e : {"VK_KHR_ray_query", "VK_KHR_acceleration_structure", "VK_KHR_deferred_host_operations"})
        add(found_.device_extensions, e);
      add(found_.features, "accelerationStructure");
    }
    if (name == "SPV_KHR_subgroup_uniform_control_flow") {
      add(found_.device_extensions, "VK_KHR_shader_subgroup_uniform_control_flow");
      add(found_.features, "shaderSubgroupUniformControlFlow");
    }
  }

  void mode(spv::ExecutionMode m, Word bits) {
    const std::string width = "Float" + std::to_string(bits);
    if (m == spv::ExecutionMode::RoundingModeRTE) add(found_.properties, ("shaderRoundingModeRTE" + width).c_str());
    if (m == spv::ExecutionMode::SignedZeroInfNanPreserve)
      add(found_.properties, ("shaderSignedZeroInfNanPreserve" + width).c_str());
  }

  void visit_atomic(spv::Op op, const Type& type, spv::StorageClass storage) {
    const bool shared = storage == spv::StorageClass::Workgroup;
    if (op == spv::Op::OpAtomicFAddEXT) {
      const bool wide = type.bits == 64;
      add(found_.features, shared ? (wide ? "shaderSharedFloat64AtomicAdd" : "shaderSharedFloat32AtomicAdd")
                                  : (wide ? "shaderBufferFloat64AtomicAdd" : "shaderBufferFloat32AtomicAdd"));
    } else if (type.bits == 64) {
      add(found_.features, shared ? "shaderSharedInt64Atomics" : "shaderBufferInt64Atomics");
    }
  }

  void visit_subgroup(const Type& type) {
    if (type.bits == 8 || type.bits == 16 || (type.bits == 64 && !type.is_float))
      add(found_.features, "shaderSubgroupExtendedTypes");
  }

  Requirements& found_;
  std::unordered_map<Word, Type> types_;
  std::unordered_map<Word, Word> pointers_;  ///< type of each value whose type is in types_
};

}  // namespace

Requirements requirements(std::span<const std::uint32_t> words) {
  Requirements found;
  // Every module of weft's reads memory through addresses in scalar layout.
  found.features = {"bufferDeviceAddress", "scalarBlockLayout"};
  Reader reader(found);
  for (std::size_t at = 5; at < words.size();) {
    const Word length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) internal_error("a SPIR-V module is cut short");
    reader.visit(spv::Op(words[at] & 0xffff), words.data() + at, length);
    at += length;
  }
  return found;
}

}  // namespace weft::spirv
