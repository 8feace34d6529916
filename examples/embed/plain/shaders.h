// The renderer's shaders, in GLSL.
#pragma once
#include <cstdint>
#include <vector>

/// These return SPIR-V, made by glslang. Errors: std::runtime_error with its log.
std::vector<std::uint32_t> vertex_shader();
std::vector<std::uint32_t> fragment_shader();
