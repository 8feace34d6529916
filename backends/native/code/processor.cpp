// Chooses instructions and lanes from the names that LLVM has for the features of a processor.
#include "processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "../../../frontend/support/invalid.h"

namespace weft::backend::native {

namespace {

// The levels of x86-64, each with what it adds to the one before.
struct Level {
  const char* name;
  std::initializer_list<const char*> adds;
};
constexpr Level kLevels[] = {
    {"x86-64-v2", {"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"}},
    {"x86-64-v3", {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}},
    {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
};

// Whether a list such as "+sse3,-avx" has a feature. The last mention of a feature counts.
bool has(std::string_view features, std::string_view feature) {
  bool result = false;
  while (!features.empty()) {
    const std::size_t end = std::min(features.find(','), features.size());
    const std::string_view one = features.substr(0, end);
    if (one.size() > 1 && one.substr(1) == feature) result = one[0] == '+';
    features.remove_prefix(std::min(end + 1, features.size()));
  }
  return result;
}

// The place in kLevels; one past its end if there is no such level.
std::size_t level_number(std::string_view name) {
  return std::size_t(std::ranges::find(kLevels, name, &Level::name) - std::begin(kLevels));
}

// The first feature of a level, or of those below it, that is missing; null if the level is there.
const char* missing(std::string_view features, std::size_t level) {
  for (std::size_t k = 0; k <= level; ++k)
    for (const char* feature : kLevels[k].adds)
      if (!has(features, feature)) return feature;
  return nullptr;
}

// The highest level that is there, where the first one is.
const char* highest_level(std::string_view features) {
  std::size_t level = std::size(kLevels) - 1;
  while (level > 0 && missing(features, level)) --level;
  return kLevels[level].name;
}

}  // namespace

Request Request::from_environment() {
  Request request;
  request.library = platform::environment("WEFT_LLVM").value_or("");
  request.level = platform::environment("WEFT_CPU_LEVEL").value_or("");
  if (request.level == "v2" || request.level == "v3" || request.level == "v4")
    request.level = "x86-64-" + request.level;
  if (!request.level.empty() && level_number(request.level) == std::size(kLevels))
    invalid("WEFT_CPU_LEVEL is '{}'; x86-64-v2, x86-64-v3 or x86-64-v4 is needed", request.level);
  const std::uint64_t lanes = platform::environment_number("WEFT_CPU_LANES", 0);
  if (lanes != 0 && lanes != 4 && lanes != 8 && lanes != 16)
    invalid("WEFT_CPU_LANES is '{}'; 4, 8 or 16 is needed", lanes);
  request.lanes = static_cast<std::uint32_t>(lanes);
  return request;
}

Processor choose_processor(const Host& host, const Request& request, Machine machine,
                           const platform::CallRules& rules) {
  Processor result{host.name, host.features, {}};
  llvm::Target& target = result.target;
  target.masked_memory = target.mask_registers = false;
  if (machine == Machine::x86_64) {
    const char* const old = missing(host.features, 0);
    if (old) unsupported("this processor ({}) is too old for machine code of weft: it lacks {}", host.name, old);
    const std::size_t level = request.level.empty() ? std::size(kLevels) - 1 : level_number(request.level);
    const char* const lacks = missing(host.features, level);
    if (lacks && !request.level.empty())
      invalid("WEFT_CPU_LEVEL is '{}', and this processor ({}) lacks {}; its level is {}", request.level, host.name,
              lacks, highest_level(host.features));
    target.masked_memory = level >= 1 && !missing(host.features, 1);
    target.mask_registers = level >= 2 && !lacks;
    target.fused = level >= 1 && has(host.features, "fma");
    target.half_conversions = level >= 1 && has(host.features, "f16c");
    if (!request.level.empty()) {
      result.name = request.level;
      result.features = {};
    } else {
      // Its conversions to small integers differ from those of docs/semantics.md, and float16 is computed as float32.
      result.features += ",-avx512fp16";
    }
  } else if (!request.level.empty()) {
    invalid("WEFT_CPU_LEVEL is '{}', and this processor ({}) is of another kind, which has no levels", request.level,
            host.name);
  } else if (rules.reserves_x18) {
    result.features += ",+reserve-x18";
  }
  target.lanes = request.lanes ? request.lanes : target.mask_registers ? 16 : target.masked_memory ? 8 : 4;
  return result;
}

}  // namespace weft::backend::native
