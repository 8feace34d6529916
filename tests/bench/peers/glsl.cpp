// GLSL to SPIR-V by glslang, at run time.
#include "glsl.h"

#include <fmt/format.h>
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "../../../backends/vulkan/vulkan.h"
#include "../../../spirv/emit.h"

namespace weft::bench {

namespace {

// Tells glslang that it is used, and at the end that it no longer is.
struct Process {
  Process() { glslang::InitializeProcess(); }
  ~Process() { glslang::FinalizeProcess(); }
};

}  // namespace

std::vector<std::uint32_t> compile_glsl(const std::string& name, const std::string& text) {
  static const Process process;
  const auto messages = EShMessages(EShMsgSpvRules | EShMsgVulkanRules);
  glslang::TShader shader(EShLangCompute);
  const char* strings[] = {text.c_str()};
  const char* names[] = {name.c_str()};
  shader.setStringsWithLengthsAndNames(strings, nullptr, names, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  if (!shader.parse(GetDefaultResources(), 460, false, messages))
    throw std::runtime_error(fmt::format("{} is not GLSL: {}", name, shader.getInfoLog()));
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages))
    throw std::runtime_error(fmt::format("{} does not link: {}", name, program.getInfoLog()));
  glslang::SpvOptions options;
  options.disableOptimizer = true;
  std::vector<std::uint32_t> words;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &options);
  return words;
}

void GlslKernel::load(backend::Device& device, const std::string& text) {
  const std::vector<std::uint32_t> words = compile_glsl(name_, text);
  if (std::getenv("WEFT_BENCH_DUMP")) fmt::print(stderr, "; {}\n{}\n", name_, spirv::disassemble(words));
  program_ = backend::load_spirv(device, {name_, words, std::uint32_t(args_.size())});
}

}  // namespace weft::bench
