// Converts reflections to JSON and back.
#include "../reflection.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "../../frontend/ir/module.h"
#include "../../frontend/support/error.h"

namespace weft {

using Json = nlohmann::ordered_json;
using Role = ReflectedArgument::Role;

namespace {

constexpr const char* kRoles[] = {"argument", "gradient",     "after", "owners",  "scratch",
                                  "log",      "first_thread", "lanes", "failures"};
constexpr const char* kFormat = "weft-kernel";

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorKind::invalid_argument, "reflection: " + what); }

// The result is a string, because readers whose numbers have 53 bits would round a number.
std::string hexadecimal(std::uint64_t number) {
  std::string digits(16, '0');
  for (int k = 0; k < 16; ++k) digits[std::size_t(15 - k)] = "0123456789abcdef"[number >> 4 * k & 15];
  return digits;
}

Json array_to_json(const ReflectedArgument& a) {
  Json j;
  j["dimensions"] = a.dimensions;
  j["layout"] = a.strided ? "strided" : "contiguous";
  j["element_bytes"] = a.element_bytes;
  j["alignment"] = a.alignment;
  j["access"] = Json::array();
  if (a.reads) j["access"].push_back("read");
  if (a.writes) j["access"].push_back("write");
  j["address"] = {{"offset", a.address_offset()}, {"type", "uint64"}};
  j["shape"] = {{"offset", a.shape_offset()}, {"type", a.strided ? "int64" : "int32"}};
  if (a.strided) j["strides"] = {{"offset", a.strides_offset()}, {"type", "int64"}};
  return j;
}

Json argument_to_json(const ReflectedArgument& a, const Reflection& r) {
  Json j;
  j["name"] = a.name;
  j["role"] = to_string(a.role);
  if (a.argument) j["argument"] = a.argument;
  if (a.role == Role::gradient || a.role == Role::after || a.role == Role::owners) j["of"] = r.arguments[a.of].name;
  j["type"] = a.type;
  j["offset"] = a.offset;
  j["bytes"] = a.bytes;
  if (a.is_array()) j["array"] = array_to_json(a);
  if (a.restored) j["restored"] = true;
  if (a.unit) j["unit"] = a.unit;
  if (a.bytes_per_thread) j["bytes_per_thread"] = a.bytes_per_thread;
  return j;
}

/// A value of JSON, and the path to it for messages.
class Field {
 public:
  Field(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  Field operator[](const char* name) const {
    if (!json_.is_object() || !json_.contains(name)) invalid(path_ + "." + name + " is missing");
    return {json_[name], path_ + "." + name};
  }
  bool has(const char* name) const { return json_.is_object() && json_.contains(name); }

  std::string text() const {
    if (!json_.is_string()) invalid(path_ + " is no string");
    return json_.get<std::string>();
  }
  bool flag() const {
    if (!json_.is_boolean()) invalid(path_ + " is neither true nor false");
    return json_.get<bool>();
  }
  std::uint32_t number() const {
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() > ~0u) invalid(path_ + " is no 32-bit number");
    return json_.get<std::uint32_t>();
  }
  std::uint32_t number_or_0(const char* name) const { return has(name) ? (*this)[name].number() : 0; }
  std::uint64_t large() const {
    if (!json_.is_number_unsigned()) invalid(path_ + " is no number");
    return json_.get<std::uint64_t>();
  }
  std::uint64_t hexadecimal() const {
    const std::string digits = text();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) invalid(path_ + " is no hexadecimal number");
    return number;
  }
  std::vector<Field> list() const {
    if (!json_.is_array()) invalid(path_ + " is no list");
    std::vector<Field> fields;
    for (std::size_t k = 0; k < json_.size(); ++k) fields.emplace_back(json_[k], path_ + "[" + std::to_string(k) + "]");
    return fields;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const Field& f : list()) all.push_back(f.text());
    return all;
  }
  /// Reads one of some words, and returns its number.
  std::uint32_t word(std::span<const char* const> words) const {
    const std::string found = text();
    for (std::uint32_t k = 0; k < words.size(); ++k)
      if (found == words[k]) return k;
    invalid(path_ + " is \"" + found + "\"");
  }
  [[noreturn]] void refuse(const std::string& why) const { invalid(path_ + " " + why); }

 private:
  const Json& json_;
  std::string path_;
};

void expect_offset(const Field& place, std::uint32_t offset, const char* type) {
  if (place["offset"].number() != offset) place["offset"].refuse("is not " + std::to_string(offset));
  if (place["type"].text() != type) place["type"].refuse(std::string("is not ") + type);
}

void array_from_json(const Field& f, ReflectedArgument& a) {
  constexpr const char* kLayouts[] = {"contiguous", "strided"};
  a.dimensions = f["dimensions"].number();
  if (a.dimensions < 1 || a.dimensions > 4) f["dimensions"].refuse("is not 1 to 4");
  a.strided = f["layout"].word(kLayouts) == 1;
  a.element_bytes = f["element_bytes"].number();
  if (!a.element_bytes) f["element_bytes"].refuse("is 0");
  a.alignment = f["alignment"].number();
  if (!a.alignment || (a.alignment & (a.alignment - 1))) f["alignment"].refuse("is no power of two");
  for (const Field& access : f["access"].list()) {
    constexpr const char* kAccesses[] = {"read", "write"};
    (access.word(kAccesses) == 0 ? a.reads : a.writes) = true;
  }
  expect_offset(f["address"], a.address_offset(), "uint64");
  expect_offset(f["shape"], a.shape_offset(), a.strided ? "int64" : "int32");
  if (a.strided) expect_offset(f["strides"], a.strides_offset(), "int64");
  if (a.bytes < 8 + a.dimensions * (a.strided ? 16 : 4)) f.refuse("is larger than its bytes in the block");
}

ReflectedArgument argument_from_json(const Field& f, const std::vector<ReflectedArgument>& before) {
  ReflectedArgument a;
  a.name = f["name"].text();
  a.role = Role(f["role"].word(kRoles));
  a.argument = f.number_or_0("argument");
  if (a.role == Role::gradient || a.role == Role::after || a.role == Role::owners) {
    const std::string of = f["of"].text();
    while (a.of < before.size() && before[a.of].name != of) ++a.of;
    if (a.of == before.size()) f["of"].refuse("names no argument before this one");
  }
  a.type = f["type"].text();
  a.offset = f["offset"].number();
  a.bytes = f["bytes"].number();
  if (!a.bytes) f["bytes"].refuse("is 0");
  if (f.has("array")) array_from_json(f["array"], a);
  if ((a.role == Role::first_thread || a.role == Role::lanes) && a.bytes != 4) f["bytes"].refuse("is not 4");
  a.restored = f.has("restored") && f["restored"].flag();
  a.unit = f.number_or_0("unit");
  a.bytes_per_thread = f.number_or_0("bytes_per_thread");
  return a;
}

// Arguments lie side by side, after the number of threads.
void check_places(const Reflection& r) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places{{0, 4}};
  for (const ReflectedArgument& a : r.arguments) places.emplace_back(a.offset, std::uint64_t(a.offset) + a.bytes);
  if (r.dimensions > 1)
    places.emplace_back(r.extents_offset,
                        r.extents_offset + std::uint64_t(ir::Interface::kExtentBytes) * (r.dimensions - 1));
  std::sort(places.begin(), places.end());
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (places[k].second > r.args_bytes) invalid("an argument stands outside the block");
    if (k > 0 && places[k].first < places[k - 1].second) invalid("arguments overlap in the block");
  }
}

}  // namespace

const char* to_string(Role role) { return kRoles[std::size_t(role)]; }

std::uint64_t detail::hash_of_words(std::span<const std::uint32_t> words) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint32_t word : words)
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (word >> 8 * byte & 0xff)) * 0x100000001b3;
  return hash;
}

std::string to_json(const Reflection& r) {
  Json j;
  j["format"] = kFormat;
  j["version"] = Reflection::kVersion;
  j["name"] = r.name;
  j["kind"] = r.adjoint ? "adjoint" : "kernel";
  j["spirv"] = {{"version", "1.5"}, {"bytes", r.spirv_bytes}, {"fnv1a64", hexadecimal(r.spirv_hash)}};
  j["entry_point"] = r.entry_point;
  j["workgroup_size"] = {r.block, 1, 1};

  Json& block = j["argument_block"];
  block["bytes"] = r.args_bytes;
  block["passing"] = r.by_address ? "address" : "push_constants";
  block["push_constant_bytes"] = r.push_bytes();
  block["threads"] = {{"offset", 0}, {"type", "uint32"}};
  if (r.dimensions > 1) block["extents"] = {{"offset", r.extents_offset}, {"count", r.dimensions - 1}};

  j["arguments"] = Json::array();
  for (const ReflectedArgument& a : r.arguments) j["arguments"].push_back(argument_to_json(a, r));

  Json& dispatch = j["dispatch"];
  dispatch["dimensions"] = r.dimensions;
  dispatch["whole_workgroups"] = r.whole_groups;
  dispatch["max_threads"] = detail::kMaxThreads;

  Json& needs = j["requires"];
  needs["vulkan"] = "1.2";
  needs["capabilities"] = r.capabilities;
  needs["spirv_extensions"] = r.spirv_extensions;
  needs["features"] = r.features;
  needs["device_extensions"] = r.device_extensions;
  needs["properties"] = r.properties;
  needs["workgroup_threads"] = r.block;
  needs["shared_bytes"] = r.shared_bytes;
  needs["subgroup_size"] = r.subgroup_size;
  try {
    return j.dump(2) + "\n";
  } catch (const Json::type_error&) {  // texts of JSON are UTF-8, and all but the names come from weft
    invalid("the name of kernel \"" + r.name + "\", or that of an argument, is not UTF-8");
  }
}

Reflection reflection_from_json(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) invalid("the text is no JSON");
  const Field f(json, "$");
  if (f["format"].text() != kFormat) f["format"].refuse(std::string("is not \"") + kFormat + "\"");
  if (const std::uint32_t version = f["version"].number(); version != Reflection::kVersion)
    f["version"].refuse("is " + std::to_string(version) + "; this reader knows " +
                        std::to_string(Reflection::kVersion));
  Reflection r;
  constexpr const char* kKinds[] = {"kernel", "adjoint"};
  constexpr const char* kPassing[] = {"push_constants", "address"};
  r.name = f["name"].text();
  r.adjoint = f["kind"].word(kKinds) == 1;
  r.spirv_bytes = f["spirv"]["bytes"].large();
  r.spirv_hash = f["spirv"]["fnv1a64"].hexadecimal();
  r.entry_point = f["entry_point"].text();
  const std::vector<Field> group = f["workgroup_size"].list();
  if (group.size() != 3 || group[1].number() != 1 || group[2].number() != 1 || group[0].number() == 0)
    f["workgroup_size"].refuse("is no list of three sizes, of which the last two are 1");
  r.block = group[0].number();

  const Field block = f["argument_block"];
  r.args_bytes = block["bytes"].number();
  r.by_address = block["passing"].word(kPassing) == 1;
  const Field dispatch = f["dispatch"];
  r.dimensions = dispatch["dimensions"].number();
  if (r.dimensions > 4) dispatch["dimensions"].refuse("is not 0 to 4");
  r.whole_groups = dispatch["whole_workgroups"].flag();
  if (r.dimensions > 1) r.extents_offset = block["extents"]["offset"].number();
  for (const Field& a : f["arguments"].list()) r.arguments.push_back(argument_from_json(a, r.arguments));
  check_places(r);

  const Field needs = f["requires"];
  r.capabilities = needs["capabilities"].texts();
  r.spirv_extensions = needs["spirv_extensions"].texts();
  r.features = needs["features"].texts();
  r.device_extensions = needs["device_extensions"].texts();
  r.properties = needs["properties"].texts();
  r.shared_bytes = needs["shared_bytes"].number();
  r.subgroup_size = needs["subgroup_size"].number();
  return r;
}

}  // namespace weft
