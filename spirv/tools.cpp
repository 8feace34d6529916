// Text, validation and optimisation by SPIRV-Tools.
#include <fmt/format.h>

#include <spirv-tools/libspirv.hpp>
#include <spirv-tools/optimizer.hpp>

#include "../frontend/support/error.h"
#include "../frontend/support/invalid.h"
#include "emit.h"

namespace weft::spirv {

namespace {

constexpr spv_target_env kEnvironment = SPV_ENV_VULKAN_1_2;

/// Keeps the first message of a tool.
auto keep_first(std::string& text) {
  return [&text](spv_message_level_t level, const char*, const spv_position_t& at, const char* message) {
    if (text.empty() && level <= SPV_MSG_ERROR) text = fmt::format("word {}: {}", at.index, message);
  };
}

}  // namespace

std::string disassemble(const std::vector<std::uint32_t>& words) {
  spvtools::SpirvTools tools(kEnvironment);
  std::string complaint, text;
  tools.SetMessageConsumer(keep_first(complaint));
  const std::uint32_t options =
      SPV_BINARY_TO_TEXT_OPTION_NO_HEADER | SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES;
  if (!tools.Disassemble(words, &text, options)) {
    invalid("no SPIR-V module: " + complaint);
  }
  return text;
}

std::string validate(const std::vector<std::uint32_t>& words) {
  spvtools::SpirvTools tools(kEnvironment);
  std::string complaint;
  tools.SetMessageConsumer(keep_first(complaint));
  spvtools::ValidatorOptions options;
  options.SetScalarBlockLayout(true);
  if (tools.Validate(words.data(), words.size(), options)) return {};
  return complaint.empty() ? "the module is not valid" : complaint;
}

std::vector<std::uint32_t> optimise(const std::vector<std::uint32_t>& words) {
  spvtools::Optimizer optimizer(kEnvironment);
  std::string complaint;
  optimizer.SetMessageConsumer(keep_first(complaint));
  optimizer.RegisterPerformancePasses();
  spvtools::OptimizerOptions options;
  // The optimiser's own validation does not know scalar layout unless told.
  options.set_run_validator(false);
  std::vector<std::uint32_t> result;
  // Words that are not a module must not reach passes that trust them.
  if (std::string bad = validate(words); !bad.empty()) {
    invalid("no valid SPIR-V module to optimise: " + bad);
  }
  if (!optimizer.Run(words.data(), words.size(), &result, options)) {
    invalid("the SPIR-V optimiser failed: " + complaint);
  }
  return result;
}

}  // namespace weft::spirv
