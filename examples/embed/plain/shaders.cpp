// Balls from points: a square for each, turned to the camera, from which the fragments cut a disc and shade it.
#include "shaders.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <stdexcept>
#include <string>

namespace {

constexpr const char* kVertex = R"(#version 460
layout(push_constant) uniform Camera { mat4 to_clip; float radius; };
layout(location = 0) in vec3 place;
layout(location = 1) in vec3 colour;
layout(location = 0) out vec2 corner;
layout(location = 1) out vec3 tint;
void main() {
  corner = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1) * 2 - 1;
  gl_Position = to_clip * vec4(place + vec3(corner * radius, 0), 1);
  tint = colour;
})";

constexpr const char* kFragment = R"(#version 460
layout(location = 0) in vec2 corner;
layout(location = 1) in vec3 tint;
layout(location = 0) out vec4 pixel;
void main() {
  float r2 = dot(corner, corner);
  if (r2 > 1) discard;
  vec3 normal = vec3(corner, sqrt(1 - r2));
  pixel = vec4(tint * (0.35 + 0.65 * max(dot(normal, normalize(vec3(-0.4, 0.7, 0.6))), 0)), 1);
})";

// glslang must be told when its use begins and ends.
struct Process {
  Process() { glslang::InitializeProcess(); }
  ~Process() { glslang::FinalizeProcess(); }
};

std::vector<std::uint32_t> compile(EShLanguage stage, const char* text) {
  static const Process process;
  const auto messages = EShMessages(EShMsgSpvRules | EShMsgVulkanRules);
  glslang::TShader shader(stage);
  shader.setStrings(&text, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, stage, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  if (!shader.parse(GetDefaultResources(), 460, false, messages))
    throw std::runtime_error(std::string("a shader is not GLSL: ") + shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) throw std::runtime_error(std::string("a shader does not link: ") + program.getInfoLog());
  std::vector<std::uint32_t> words;
  glslang::GlslangToSpv(*program.getIntermediate(stage), words);
  return words;
}

}  // namespace

std::vector<std::uint32_t> vertex_shader() { return compile(EShLangVertex, kVertex); }
std::vector<std::uint32_t> fragment_shader() { return compile(EShLangFragment, kFragment); }
