// Launches an exported step: the loader reads the files and fills the argument block; the rest is plain Vulkan.
#include "exported.h"

#include <fmt/format.h>
#include <weft/loader/loader.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "drops.h"

namespace {

void check(weft_loader_status status) {
  if (status != WEFT_LOADER_OK) throw std::runtime_error(weft_loader_error());
}

/// The opened files of a kernel.
class File {
 public:
  explicit File(const std::string& json) : path_(json) {
    const weft_loader_status opened = weft_kernel_open(json.c_str(), &kernel_);
    if (opened == WEFT_LOADER_BAD_KERNEL) fail(weft_loader_error());
    check(opened);
    check(weft_kernel_describe(kernel_, &info));
  }
  ~File() { weft_kernel_close(kernel_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const weft_kernel* kernel() const { return kernel_; }
  std::vector<std::string> required(weft_requirement which) const {
    std::vector<std::string> names;
    for (std::uint32_t k = 0; const char* name = weft_kernel_requirement(kernel_, which, k); ++k)
      names.emplace_back(name);
    return names;
  }
  /// The index of an argument with this number of bytes, for an array in each element.
  std::uint32_t find(const char* name, std::size_t bytes) const {
    const std::int32_t at = weft_kernel_find(kernel_, name);
    if (at < 0) fail(fmt::format("the kernel has no argument called {}", name));
    weft_argument a;
    check(weft_kernel_argument(kernel_, std::uint32_t(at), &a));
    if ((a.dimensions ? a.element_bytes : a.bytes) != bytes)
      fail(fmt::format("{} is {}, which is not of {} bytes", name, a.type, bytes));
    return std::uint32_t(at);
  }
  [[noreturn]] void fail(const std::string& why) const { throw std::runtime_error(path_ + ": " + why); }

  weft_kernel_info info{};

 private:
  std::string path_;
  weft_kernel* kernel_ = nullptr;
};

/// The flag of a feature that a simple kernel requires, in the features with which the renderer's device is made; null
/// for any other feature.
VkBool32* feature(const std::string& name, VkPhysicalDeviceFeatures2& core, VkPhysicalDeviceVulkan12Features& more) {
  if (name == "shaderInt64") return &core.features.shaderInt64;
  if (name == "shaderFloat64") return &core.features.shaderFloat64;
  if (name == "scalarBlockLayout") return &more.scalarBlockLayout;
  if (name == "bufferDeviceAddress") return &more.bufferDeviceAddress;
  return nullptr;
}

void ask(const File& file, VkPhysicalDevice physical, VkPhysicalDeviceFeatures2& features) {
  for (const weft_requirement which : {WEFT_DEVICE_EXTENSIONS, WEFT_PROPERTIES})
    for (const std::string& name : file.required(which)) file.fail("the kernel needs " + name);
  if (file.info.by_address || file.info.subgroup_size)
    file.fail("only kernels whose arguments fit push constants, and that leave the size of subgroups open, are run");
  auto* next = static_cast<VkBaseOutStructure*>(features.pNext);
  while (next && next->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) next = next->pNext;
  auto* const features12 = reinterpret_cast<VkPhysicalDeviceVulkan12Features*>(next);
  VkPhysicalDeviceVulkan12Features has12{};
  has12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 has{};
  has.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  has.pNext = &has12;
  vkGetPhysicalDeviceFeatures2(physical, &has);
  for (const std::string& name : file.required(WEFT_FEATURES)) {
    const VkBool32* const there = feature(name, has, has12);
    if (!there) file.fail("the kernel needs " + name);
    if (!*there) throw std::runtime_error("the device has no " + name);
    *feature(name, features, *features12) = VK_TRUE;
  }
}

class Exported final : public Simulation {
 public:
  Exported(std::shared_ptr<const File> file, Renderer& renderer, int count)
      : file_(std::move(file)), renderer_(renderer), count_(count), block_(file_->info.block_bytes) {
    try {
      make_pipeline();
      const Drops drops = drops_at_start(count);
      check(weft_block_clear(file_->kernel(), block_.data()));
      renderer.write(renderer.points(), drops.points.data(), drops.points.size() * sizeof(Point));
      set("vertices", renderer.points(), sizeof(Point));
      set("velocity", with(drops.velocity), sizeof(Drops::Vector));
      set("first_velocity", with(drops.first_velocity), sizeof(Drops::Vector));
      set("age", with(drops.age), sizeof(float));
      dt_ = file_->find("dt", sizeof(float));
      VkPhysicalDeviceProperties properties{};
      vkGetPhysicalDeviceProperties(renderer.physical_device(), &properties);
      const std::int64_t threads = count;
      check(weft_block_set_threads(file_->kernel(), block_.data(), &threads, 1,
                                   properties.limits.maxComputeWorkGroupCount[0], &groups_));
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~Exported() override {
    renderer_.wait_idle();
    destroy();
  }

  void record(int, VkCommandBuffer commands, int steps, float dt) override {
    check(weft_block_set_value(file_->kernel(), block_.data(), dt_, &dt, sizeof dt));
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, file_->info.push_bytes, block_.data());
    // The step comes after the previous frame has read the points; the barrier at the end lets this frame read them.
    constexpr VkAccessFlags kBoth = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    VkPipelineStageFlags from = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_VERTEX_INPUT_BIT;
    for (int k = 0; k < steps; ++k) {
      barrier(commands, from, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, kBoth);
      vkCmdDispatch(commands, groups_.x, groups_.y, groups_.z);
      from = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    }
    barrier(commands, from, VK_PIPELINE_STAGE_VERTEX_INPUT_BIT, VK_ACCESS_VERTEX_ATTRIBUTE_READ_BIT);
  }
  void submitted(int) override {}
  std::vector<Point> points() override {
    std::vector<Point> points(std::size_t(count_), Point{});
    renderer_.read(renderer_.points(), points.data(), points.size() * sizeof(Point));
    return points;
  }
  void end() override {}

 private:
  static constexpr VkBufferUsageFlags kUsage =
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

  void make_pipeline() {
    const VkDevice device = renderer_.device();
    VkShaderModuleCreateInfo module{};
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = file_->info.word_count * 4;
    module.pCode = file_->info.words;
    ::check(vkCreateShaderModule(device, &module, nullptr, &shader_), "vkCreateShaderModule");
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, file_->info.push_bytes};
    VkPipelineLayoutCreateInfo layout{};
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &range;
    ::check(vkCreatePipelineLayout(device, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
    VkComputePipelineCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = shader_;
    create.stage.pName = file_->info.entry_point;
    create.layout = layout_;
    ::check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline_),
            "vkCreateComputePipelines");
  }
  void destroy() {
    vkDestroyPipeline(renderer_.device(), pipeline_, nullptr);
    vkDestroyPipelineLayout(renderer_.device(), layout_, nullptr);
    vkDestroyShaderModule(renderer_.device(), shader_, nullptr);
  }

  template <class T>
  VkBuffer with(const std::vector<T>& values) {
    const VkBuffer made = renderer_.make_buffer(values.size() * sizeof(T), kUsage);
    renderer_.write(made, values.data(), values.size() * sizeof(T));
    return made;
  }
  void set(const char* name, VkBuffer buffer, std::size_t element_bytes) {
    VkBufferDeviceAddressInfo where{};
    where.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
    where.buffer = buffer;
    const std::int64_t size = count_;
    check(weft_block_set_array(file_->kernel(), block_.data(), file_->find(name, element_bytes),
                               vkGetBufferDeviceAddress(renderer_.device(), &where), &size, nullptr));
  }
  static void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
                      VkAccessFlags access) {
    VkMemoryBarrier memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    memory.dstAccessMask = access;
    vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }

  std::shared_ptr<const File> file_;
  Renderer& renderer_;
  int count_;
  std::vector<std::byte> block_;
  std::uint32_t dt_ = 0;
  weft_groups groups_{};
  VkShaderModule shader_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

}  // namespace

Guest exported_guest(const std::string& json) {
  const auto file = std::make_shared<const File>(json);
  Guest guest;
  guest.ask = [file](VkInstance, VkPhysicalDevice physical, VkPhysicalDeviceFeatures2& features,
                     std::vector<const char*>&) { ask(*file, physical, features); };
  guest.begin = [file](Renderer& renderer, int drops) { return std::make_unique<Exported>(file, renderer, drops); };
  return guest;
}
