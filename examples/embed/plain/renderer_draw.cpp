// The renderer's pass, its pipeline and its frames.
#include <algorithm>
#include <cstddef>
#include <iterator>

#include "renderer.h"
#include "shaders.h"

namespace {

constexpr VkFormat kColour = VK_FORMAT_R8G8B8A8_UNORM, kDepth = VK_FORMAT_D32_SFLOAT;

struct Push {
  float to_clip[16];  // by columns
  float radius;
};

// y points down in Vulkan's clip space; depth goes from 0 to 1.
Push push_of(const PointCamera& c, float aspect, float radius) {
  constexpr float near = 0.1f, far = 50;
  Push p{};
  p.to_clip[0] = c.zoom / aspect;
  p.to_clip[5] = -c.zoom;
  p.to_clip[10] = far / (near - far);
  p.to_clip[11] = -1;
  p.to_clip[13] = c.zoom * c.height;
  p.to_clip[14] = near * far / (near - far) - c.distance * far / (near - far);
  p.to_clip[15] = c.distance;
  p.radius = radius;
  return p;
}

}  // namespace

Renderer::Renderer(const RendererSetup& setup)
    : width_(std::uint32_t(setup.width)),
      height_(std::uint32_t(setup.height)),
      num_points_(setup.num_points),
      radius_(setup.radius),
      camera_(setup.camera) {
  try {
    make_instance(setup);
    if (setup.make_surface) surface_ = setup.make_surface(instance_);
    choose_device(setup.device);
    make_device(setup);
    points_ = make_buffer(num_points_ * sizeof(Point), kPointUsage);
    make_pass();
    make_pipeline();
    timeline_ = make_semaphore(true);
    for (Frame& f : frames_) {
      VkCommandPoolCreateInfo pool{};
      pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
      pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
      pool.queueFamilyIndex = family_;
      check(vkCreateCommandPool(device_, &pool, nullptr, &f.pool), "vkCreateCommandPool");
      VkCommandBufferAllocateInfo allocate{};
      allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
      allocate.commandPool = f.pool;
      allocate.commandBufferCount = 1;
      check(vkAllocateCommandBuffers(device_, &allocate, &f.commands), "vkAllocateCommandBuffers");
      f.acquired = make_semaphore(false);
    }
  } catch (...) {
    destroy();
    throw;
  }
}

Renderer::~Renderer() { destroy(); }

void Renderer::make_pass() {
  make_image(colour_, kColour, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
             VK_IMAGE_ASPECT_COLOR_BIT);
  make_image(depth_, kDepth, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, VK_IMAGE_ASPECT_DEPTH_BIT);
  VkAttachmentDescription attachments[2]{};
  for (VkAttachmentDescription& a : attachments) {
    a.samples = VK_SAMPLE_COUNT_1_BIT;
    a.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
    a.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
    a.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  }
  attachments[0].format = kColour;
  attachments[0].storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  attachments[0].finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
  attachments[1].format = kDepth;
  attachments[1].storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  attachments[1].finalLayout = VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL;
  const VkAttachmentReference colour{0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  const VkAttachmentReference depth{1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass{};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &colour;
  subpass.pDepthStencilAttachment = &depth;
  // The pass comes after the copy of the previous frame, and before that of this one.
  constexpr VkPipelineStageFlags kDrawing = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT |
                                            VK_PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT |
                                            VK_PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT;
  constexpr VkAccessFlags kDrawn = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT;
  VkSubpassDependency dependencies[2]{};
  dependencies[0].srcSubpass = VK_SUBPASS_EXTERNAL;
  dependencies[0].srcStageMask = kDrawing | VK_PIPELINE_STAGE_TRANSFER_BIT;
  dependencies[0].srcAccessMask = kDrawn | VK_ACCESS_TRANSFER_READ_BIT;
  dependencies[0].dstStageMask = kDrawing;
  dependencies[0].dstAccessMask = kDrawn | VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_READ_BIT;
  dependencies[1].dstSubpass = VK_SUBPASS_EXTERNAL;
  dependencies[1].srcStageMask = kDrawing;
  dependencies[1].srcAccessMask = kDrawn;
  dependencies[1].dstStageMask = VK_PIPELINE_STAGE_TRANSFER_BIT;
  dependencies[1].dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
  VkRenderPassCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO;
  create.attachmentCount = 2;
  create.pAttachments = attachments;
  create.subpassCount = 1;
  create.pSubpasses = &subpass;
  create.dependencyCount = 2;
  create.pDependencies = dependencies;
  check(vkCreateRenderPass(device_, &create, nullptr, &pass_), "vkCreateRenderPass");
  const VkImageView views[] = {colour_.view, depth_.view};
  VkFramebufferCreateInfo framebuffer{};
  framebuffer.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO;
  framebuffer.renderPass = pass_;
  framebuffer.attachmentCount = 2;
  framebuffer.pAttachments = views;
  framebuffer.width = width_;
  framebuffer.height = height_;
  framebuffer.layers = 1;
  check(vkCreateFramebuffer(device_, &framebuffer, nullptr, &framebuffer_), "vkCreateFramebuffer");
}

void Renderer::make_pipeline() {
  const VkPushConstantRange range{VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof(Push)};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");

  const std::vector<std::uint32_t> words[] = {vertex_shader(), fragment_shader()};
  VkPipelineShaderStageCreateInfo stages[2]{};
  for (int k = 0; k < 2; ++k) {
    VkShaderModuleCreateInfo module{};
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = words[k].size() * 4;
    module.pCode = words[k].data();
    stages[k].sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    stages[k].stage = k == 0 ? VK_SHADER_STAGE_VERTEX_BIT : VK_SHADER_STAGE_FRAGMENT_BIT;
    stages[k].pName = "main";
    check(vkCreateShaderModule(device_, &module, nullptr, &stages[k].module), "vkCreateShaderModule");
  }
  // Each point becomes a square.
  const VkVertexInputBindingDescription binding{0, sizeof(Point), VK_VERTEX_INPUT_RATE_INSTANCE};
  const VkVertexInputAttributeDescription attributes[] = {{0, 0, VK_FORMAT_R32G32B32_SFLOAT, offsetof(Point, place)},
                                                          {1, 0, VK_FORMAT_R32G32B32_SFLOAT, offsetof(Point, colour)}};
  VkPipelineVertexInputStateCreateInfo input{};
  input.sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO;
  input.vertexBindingDescriptionCount = 1;
  input.pVertexBindingDescriptions = &binding;
  input.vertexAttributeDescriptionCount = 2;
  input.pVertexAttributeDescriptions = attributes;
  VkPipelineInputAssemblyStateCreateInfo assembly{};
  assembly.sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO;
  assembly.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP;
  const VkViewport viewport{0, 0, float(width_), float(height_), 0, 1};
  const VkRect2D scissor{{0, 0}, {width_, height_}};
  VkPipelineViewportStateCreateInfo view{};
  view.sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO;
  view.viewportCount = view.scissorCount = 1;
  view.pViewports = &viewport;
  view.pScissors = &scissor;
  VkPipelineRasterizationStateCreateInfo raster{};
  raster.sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO;
  raster.lineWidth = 1;
  VkPipelineMultisampleStateCreateInfo samples{};
  samples.sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO;
  samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
  VkPipelineDepthStencilStateCreateInfo depth{};
  depth.sType = VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO;
  depth.depthTestEnable = depth.depthWriteEnable = VK_TRUE;
  depth.depthCompareOp = VK_COMPARE_OP_LESS;
  VkPipelineColorBlendAttachmentState all{};
  all.colorWriteMask =
      VK_COLOR_COMPONENT_R_BIT | VK_COLOR_COMPONENT_G_BIT | VK_COLOR_COMPONENT_B_BIT | VK_COLOR_COMPONENT_A_BIT;
  VkPipelineColorBlendStateCreateInfo blend{};
  blend.sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO;
  blend.attachmentCount = 1;
  blend.pAttachments = &all;
  VkGraphicsPipelineCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO;
  create.stageCount = 2;
  create.pStages = stages;
  create.pVertexInputState = &input;
  create.pInputAssemblyState = &assembly;
  create.pViewportState = &view;
  create.pRasterizationState = &raster;
  create.pMultisampleState = &samples;
  create.pDepthStencilState = &depth;
  create.pColorBlendState = &blend;
  create.layout = layout_;
  create.renderPass = pass_;
  const VkResult result = vkCreateGraphicsPipelines(device_, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline_);
  for (const auto& stage : stages) vkDestroyShaderModule(device_, stage.module, nullptr);
  check(result, "vkCreateGraphicsPipelines");
}

void Renderer::draw(VkCommandBuffer commands) {
  VkClearValue clear[2]{};
  const float background[] = {0.02f, 0.03f, 0.05f, 1};
  std::copy(std::begin(background), std::end(background), clear[0].color.float32);
  clear[1].depthStencil = {1, 0};
  VkRenderPassBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO;
  begin.renderPass = pass_;
  begin.framebuffer = framebuffer_;
  begin.renderArea = {{0, 0}, {width_, height_}};
  begin.clearValueCount = 2;
  begin.pClearValues = clear;
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline_);
  const Push push = push_of(camera_, float(width_) / float(height_), radius_);
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_VERTEX_BIT, 0, sizeof push, &push);
  const VkDeviceSize offset = 0;
  vkCmdBindVertexBuffers(commands, 0, 1, &points_, &offset);
  vkCmdDraw(commands, 4, num_points_, 0, 0);
  vkCmdEndRenderPass(commands);
}

int Renderer::begin_frame() {
  const Frame& frame = frames_[std::size_t(frame_)];
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &timeline_;
  wait.pValues = &frame.value;
  check(vkWaitSemaphores(device_, &wait, ~0ull), "vkWaitSemaphores");
  check(vkResetCommandPool(device_, frame.pool, 0), "vkResetCommandPool");
  return frame_;
}

void Renderer::end_frame(const std::function<void(VkCommandBuffer)>& before) {
  Frame& frame = frames_[std::size_t(frame_)];
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(frame.commands, &begin), "vkBeginCommandBuffer");
  if (before) before(frame.commands);
  draw(frame.commands);
  std::uint32_t target = 0;
  const bool shown = surface_ && acquire(frame.acquired, target);
  if (shown) show(frame.commands, targets_[target]);
  check(vkEndCommandBuffer(frame.commands), "vkEndCommandBuffer");

  frame.value = ++submitted_;
  const VkSemaphore signals[] = {timeline_, shown ? drawn_[target] : VK_NULL_HANDLE};
  const std::uint64_t values[] = {frame.value, 0};
  const std::uint32_t with_window = shown ? 1 : 0;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1 + with_window;
  timeline.pSignalSemaphoreValues = values;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = with_window;
  info.pWaitSemaphores = &frame.acquired;
  info.pWaitDstStageMask = &stage;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &frame.commands;
  info.signalSemaphoreCount = 1 + with_window;
  info.pSignalSemaphores = signals;
  {
    const std::lock_guard lock(queue_mutex_);
    check(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  }
  if (shown) present(target);
  frame_ = (frame_ + 1) % kFrames;
}
