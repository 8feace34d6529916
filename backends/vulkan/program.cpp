// Programs: translation through the disk cache, pipelines through the driver's cache.
#include "program.h"

#include <fmt/format.h>

#include <concepts>
#include <cstring>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"
#include "device.h"

namespace weft::backend::vulkan {

namespace {

// Changes whenever the emitter may produce other words for the same module and target.
#ifndef WEFT_EMITTER_STAMP
#error "the build defines WEFT_EMITTER_STAMP: a hash of the emitter's sources, part of the key of cached translations"
#endif
constexpr const char* kEmitterStamp = WEFT_EMITTER_STAMP;

constexpr std::uint32_t kSpirvMagic = 0x07230203;
// Reading a driver's whole cache to see whether it has grown is not free.
constexpr int kCreationsPerSave = 32;

// Why a valid module cannot be a program of weft, or empty. Drivers do not check and would crash.
std::string unfit(std::span<const std::uint32_t> words) {
  constexpr std::uint32_t kEntryPoint = 15, kGlCompute = 5, kDecorate = 71, kDescriptorSet = 34;
  bool main = false;
  for (std::size_t at = 5; at < words.size();) {
    const std::uint32_t op = words[at] & 0xffff, length = words[at] >> 16;
    if (length == 0 || length > words.size() - at) return "an instruction is cut short";
    if (op == kEntryPoint && length >= 5 && words[at + 1] == kGlCompute)
      main = main || std::memcmp(&words[at + 3], "main\0\0\0\0", 8) == 0;
    if (op == kDecorate && length >= 3 && words[at + 2] == kDescriptorSet)
      return "it uses descriptor sets; memory is reached through 64-bit addresses in the arguments";
    at += length;
  }
  return main ? "" : "it has no compute entry point \"main\"";
}

std::string bits(std::same_as<bool> auto... flags) { return {(flags ? '1' : '0')...}; }

}  // namespace

std::string spirv_key(detail::Hash128 hash, const std::string& device_key, const spirv::Target& t, bool optimised,
                      spirv::ArgumentsIn arguments) {
  // Names every member, so that a new one does not compile before it is part of the key.
  const auto& [int8, int16, int64, float16, float64, storage8, storage16, push8, push16, float32_atomic_add,
               float64_atomic_add, float32_shared_atomic_add, float64_shared_atomic_add, int64_atomics,
               int64_shared_atomics, subgroup_vote, subgroup_arithmetic, subgroup_ballot, subgroup_shuffle,
               subgroup_narrow_wide, subgroup_uniform_flow, subgroups_meet_again, lanes_in_step, subgroup_size,
               round_even16, round_even32, round_even64, keep_nan16, keep_nan32, keep_nan64, memory_model, ray_query,
               pointer_steps, pairs_in_words, max_block, of_device] = t;
  const std::string flags = bits(
      int8, int16, int64, float16, float64, storage8, storage16, push8, push16, float32_atomic_add, float64_atomic_add,
      float32_shared_atomic_add, float64_shared_atomic_add, int64_atomics, int64_shared_atomics, subgroup_vote,
      subgroup_arithmetic, subgroup_ballot, subgroup_shuffle, subgroup_narrow_wide, subgroup_uniform_flow,
      subgroups_meet_again, lanes_in_step, round_even16, round_even32, round_even64, keep_nan16, keep_nan32, keep_nan64,
      memory_model, ray_query, pointer_steps, pairs_in_words, optimised, arguments == spirv::ArgumentsIn::memory);
  static_cast<void>(of_device);  // decides the words of messages alone
  return fmt::format("spv:{}:{}:{}:{}:{}:{}", to_hex(hash), device_key, flags, max_block, subgroup_size, kEmitterStamp);
}

std::string pipeline_key(const DeviceInfo& info) { return "pipelines:" + info.cache_key; }

bool pipeline_cache_fits(std::span<const std::byte> bytes, const VkPhysicalDeviceProperties& properties) {
  VkPipelineCacheHeaderVersionOne header{};
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header.headerSize == sizeof header && header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendorID == properties.vendorID && header.deviceID == properties.deviceID &&
         std::memcmp(header.pipelineCacheUUID, properties.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

void VulkanProgram::made_of(std::shared_ptr<const ir::Module> kernel, detail::Hash128 hash) {
  may_chain_ = device_.adapter().target.int64 && spirv::can_chain(*kernel);
  kernel_ = std::move(kernel);
  hash_ = hash;
}

const VulkanProgram* VulkanProgram::by_address() {
  if (args_bytes_ > spirv::kPushConstantBytes) return this;
  if (!kernel_ || !device_.adapter().target.int64) return nullptr;
  std::lock_guard lock(mutex_);
  if (!asked_) try {
      by_address_ = device_.make_program(*kernel_, hash_, spirv::ArgumentsIn::memory);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unsupported) throw;  // the program does without
    }
  asked_ = true;
  return by_address_.get();
}

void VulkanProgram::abandon() {
  if (device_.detached()) return;
  if (pipeline_) device_.retirement().drop({Retired::Kind::pipeline, reinterpret_cast<std::uint64_t>(pipeline_)});
  pipeline_ = VK_NULL_HANDLE;
}

Pipelines::Pipelines(VulkanDevice& device, DiskCache& cache) : device_(device), disk_(cache) {
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, spirv::kPushConstantBytes};
  VkPipelineLayoutCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  create.pushConstantRangeCount = 1;
  create.pPushConstantRanges = &range;
  device_.check_made(device_.vk().vkCreatePipelineLayout(device_.handle(), &create, nullptr, &layout_), layout_,
                     "vkCreatePipelineLayout");
  cache_ = load();
  saved_bytes_ = bytes_of(cache_);
}

// The size of the cache if the driver wrote it now.
std::size_t Pipelines::bytes_of(VkPipelineCache cache) {
  std::size_t size = 0;
  if (!cache || device_.vk().vkGetPipelineCacheData(device_.handle(), cache, &size, nullptr) != VK_SUCCESS) return 0;
  return size;
}

Pipelines::~Pipelines() {
  save();
  device_.vk().vkDestroyPipelineCache(device_.handle(), cache_, nullptr);
  device_.vk().vkDestroyPipelineLayout(device_.handle(), layout_, nullptr);
}

// The driver's cache from disk, or an empty one. Null only if the driver fails, which costs only time.
VkPipelineCache Pipelines::load() {
  const auto stored = disk_.get(pipeline_key(device_.info()));
  VkPipelineCacheCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  if (stored && pipeline_cache_fits(*stored, device_.adapter().properties)) {
    create.initialDataSize = stored->size();
    create.pInitialData = stored->data();
  }
  VkPipelineCache cache = VK_NULL_HANDLE;
  if (device_.vk().vkCreatePipelineCache(device_.handle(), &create, nullptr, &cache) != VK_SUCCESS) {
    create.initialDataSize = 0;
    create.pInitialData = nullptr;
    if (device_.vk().vkCreatePipelineCache(device_.handle(), &create, nullptr, &cache) != VK_SUCCESS)
      return VK_NULL_HANDLE;
  }
  return cache;
}

void Pipelines::save() {
  std::lock_guard lock(save_mutex_);
  if (!cache_ || created_since_save_.exchange(0) == 0 || !disk_.enabled() || device_.lost()) return;
  const VolkDeviceTable& vk = device_.vk();
  const std::size_t own = bytes_of(cache_);
  if (own <= saved_bytes_) return;
  // Other processes and devices may have added entries meanwhile. Merging into a fresh cache keeps ours usable by
  // threads that are creating pipelines now.
  const VkPipelineCache merged = load();
  if (!merged) return;
  std::vector<std::byte> data;
  if (vk.vkMergePipelineCaches(device_.handle(), merged, 1, &cache_) == VK_SUCCESS) {
    std::size_t size = bytes_of(merged);
    data.resize(size);
    if (vk.vkGetPipelineCacheData(device_.handle(), merged, &size, data.data()) != VK_SUCCESS) size = 0;
    data.resize(size);
  }
  vk.vkDestroyPipelineCache(device_.handle(), merged, nullptr);
  if (data.empty()) return;
  disk_.put(pipeline_key(device_.info()), data);
  saved_bytes_ = own;
}

VkPipeline Pipelines::create(std::span<const std::uint32_t> words, const std::string& name, bool full_subgroups) {
  const VolkDeviceTable& vk = device_.vk();
  VkShaderModuleCreateInfo create_module{};
  create_module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  create_module.codeSize = words.size_bytes();
  create_module.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  VkResult result = vk.vkCreateShaderModule(device_.handle(), &create_module, nullptr, &module);
  VkPipeline pipeline = VK_NULL_HANDLE;
  if (result == VK_SUCCESS && module) {
    VkComputePipelineCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    create.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;  // launches may be made in parts: see Grid
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = module;
    create.stage.pName = "main";
    if (full_subgroups) create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    create.layout = layout_;
    result = vk.vkCreateComputePipelines(device_.handle(), cache_, 1, &create, nullptr, &pipeline);
    vk.vkDestroyShaderModule(device_.handle(), module, nullptr);
  }
  if (result == VK_ERROR_DEVICE_LOST || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_OUT_OF_HOST_MEMORY)
    device_.check(result, "vkCreateComputePipelines");
  if (result != VK_SUCCESS || !pipeline)
    throw Error(ErrorKind::unsupported,
                fmt::format("the driver of {} ({}, {}) refuses the shader: {}", device_.info().name,
                            device_.info().adapter, device_.info().driver, to_string(result)),
                name);
  if (created_since_save_.fetch_add(1) + 1 >= kCreationsPerSave) save();
  return pipeline;
}

void Pipelines::destroy(std::uint64_t pipeline) {
  device_.vk().vkDestroyPipeline(device_.handle(), reinterpret_cast<VkPipeline>(pipeline), nullptr);
  destroyed_.store(true);
}

std::shared_ptr<Program> VulkanDevice::compile(const ir::Module& module, detail::Hash128 hash) {
  const std::shared_ptr<VulkanProgram> program = make_program(module, hash, spirv::ArgumentsIn::push_constants);
  program->made_of(std::make_shared<const ir::Module>(module), hash);
  return program;
}

std::unique_ptr<VulkanProgram> VulkanDevice::make_program(const ir::Module& module, detail::Hash128 hash,
                                                          spirv::ArgumentsIn arguments) {
  const platform::FloatMode mode;  // constants are computed by the optimiser and by software drivers
  check_runs();
  check_groups(module, info_);
  const bool optimise = platform::environment_flag("WEFT_SPIRV_OPT", false);
  const std::string key = spirv_key(hash, info_.cache_key, adapter_.target, optimise, arguments);
  std::vector<std::uint32_t> words;
  if (const auto stored = cache_.get(key); stored && stored->size() >= 20 && stored->size() % 4 == 0) {
    words.resize(stored->size() / 4);
    std::memcpy(words.data(), stored->data(), stored->size());
  }
  if (!words.empty() && words[0] == kSpirvMagic) {
    loaded_.fetch_add(1);
  } else {
    words = spirv::emit(module, adapter_.target, arguments);
    if (optimise) words = spirv::optimise(words);
    emitted_.fetch_add(1);
    cache_.put(key, std::as_bytes(std::span(words)));
  }
  const VkPipeline pipeline = pipelines_->create(words, module.name, ir::group_use(module).subgroups);
  return std::make_unique<VulkanProgram>(*this, module.name, pipeline, module.args_bytes);
}

std::shared_ptr<Program> VulkanDevice::load(const SpirvDesc& desc) {
  check_runs();
  // Drivers trust their input, so a damaged shader from elsewhere must not reach them.
  if (desc.words.size() < 5 || desc.words[0] != kSpirvMagic)
    throw Error(ErrorKind::invalid_argument, "not SPIR-V: it does not begin with the magic number", desc.name);
  const std::string invalid = spirv::validate({desc.words.begin(), desc.words.end()});
  if (!invalid.empty()) throw Error(ErrorKind::invalid_argument, "not a valid SPIR-V module: " + invalid, desc.name);
  const std::string why = unfit(desc.words);
  if (!why.empty()) throw Error(ErrorKind::invalid_argument, "not a program: " + why, desc.name);
  return std::make_shared<VulkanProgram>(*this, desc.name, pipelines_->create(desc.words, desc.name, false),
                                         desc.args_bytes);
}

}  // namespace weft::backend::vulkan

namespace weft::backend {

const spirv::Target& spirv_target(Device& device) {
  if (const auto* known = dynamic_cast<const vulkan::VulkanDevice*>(&device)) return known->adapter().target;
  invalid("{} runs no SPIR-V", device.info().name);
}

}  // namespace weft::backend
