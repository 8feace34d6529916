// Makes AArch64 programs of kernels and their memory, for QEMU.
#include "arm_machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "../../../backends/native/code/compiler.h"
#include "../../../backends/native/code/object.h"
#include "../../../frontend/support/platform.h"

namespace weft::test {

namespace {

using namespace backend::native;
namespace fs = std::filesystem;

constexpr const char* kTriple = "aarch64-unknown-linux-gnu";
constexpr std::uint64_t kFirst = 0x400000, kPage = 4096;  ///< where programs begin

/// A file of an executable program, which is one piece of memory.
class Program {
 public:
  Program() : bytes_(kPage) {}
  std::uint64_t end() const { return kFirst + bytes_.size(); }
  std::uint64_t add(std::span<const std::byte> content, std::size_t align = 64) {
    while (bytes_.size() % align != 0) bytes_.push_back({});
    const std::uint64_t at = end();
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    return at;
  }
  /// The file, with the header that loads all of it.
  std::vector<std::byte> file(std::uint64_t entry) {
    std::size_t at = 0;
    const auto put = [&](auto value) {
      std::memcpy(bytes_.data() + at, &value, sizeof value);
      at += sizeof value;
    };
    for (const std::uint8_t byte : {0x7f, int('E'), int('L'), int('F'), 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}) put(byte);
    put(std::uint16_t(2)), put(std::uint16_t(183)), put(std::uint32_t(1)), put(entry);
    put(std::uint64_t(64)), put(std::uint64_t(0)), put(std::uint32_t(0));
    for (const int size : {64, 56, 1, 0, 0, 0}) put(std::uint16_t(size));
    put(std::uint32_t(1)), put(std::uint32_t(7)), put(std::uint64_t(0)), put(kFirst), put(kFirst);
    put(std::uint64_t(bytes_.size())), put(std::uint64_t(bytes_.size())), put(kPage);
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// The instructions of a program's beginning.
class Start {
 public:
  void set(std::uint32_t reg, std::uint64_t value) {
    for (std::uint32_t k = 0; k < 4; ++k)
      words_.push_back((k == 0 ? 0xd2800000u : 0xf2800000u) | k << 21 | std::uint32_t(value >> 16 * k & 0xffff) << 5 |
                       reg);
  }
  void call(std::uint32_t reg) { words_.push_back(0xd63f0000u | reg << 5); }
  void ask_system(std::uint64_t what) {
    set(8, what);
    words_.push_back(0xd4000001u);
  }
  std::span<const std::byte> code() const { return std::as_bytes(std::span(words_)); }

 private:
  std::vector<std::uint32_t> words_;
};
constexpr std::uint64_t kWrite = 64, kExit = 93;

std::string find_emulator() {
  for (const char* name : {"qemu-aarch64-static", "qemu-aarch64"})
    for (const char* folder : {"/usr/bin", "/usr/local/bin"})
      if (fs::exists(fs::path(folder) / name)) return (fs::path(folder) / name).string();
  return {};
}

}  // namespace

const ArmMachine* ArmMachine::find(std::string* why) {
  static const auto found = [] {
    std::pair<std::optional<ArmMachine>, std::string> result;
    const Compiler* const compiler = Compiler::find(&result.second);
    if (!compiler) return result;
    ArmMachine machine;
    machine.library_ = Library::find(platform::environment("WEFT_LLVM").value_or(""), &result.second);
    void* const loaded = platform::find_library(compiler->toolchain().path);
    for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter"}) {
      const auto call = reinterpret_cast<void (*)()>(
          platform::find_function(loaded, (std::string("LLVMInitializeAArch64") + part).c_str()));
      if (!call) {
        result.second = "LLVM has no AArch64";
        return result;
      }
      call();
    }
    char* message = nullptr;
    if (machine.library_->calls.target_from_triple(kTriple, &machine.target_, &message)) {
      result.second = message;
      return result;
    }
    machine.emulator_ = find_emulator();
    if (machine.emulator_.empty())
      result.second = "qemu-aarch64 is not installed (qemu-user-static)";
    else
      result.first = std::move(machine);
    return result;
  }();
  *why = found.second;
  return found.first ? &*found.first : nullptr;
}

llvm::Target ArmMachine::target() const {
  return choose_processor({"generic", "+neon"}, {}, Machine::aarch64, {}).target;
}

std::vector<std::byte> ArmMachine::compile(const std::string& text) const {
  const abi::Functions& calls = library_->calls;
  const auto machine = calls.create_machine(target_, kTriple, "generic", "+neon", abi::kDefaultLevel,
                                            abi::kPositionIndependent, abi::kSmallCode);
  const auto layout = calls.create_layout(machine);
  char* const layout_text = calls.layout_text(layout);
  const std::string whole =
      fmt::format("target triple = \"{}\" target datalayout = \"{}\" {}", kTriple, layout_text, text);
  calls.dispose_message(layout_text);
  calls.dispose_layout(layout);
  const auto context = calls.context_create();
  abi::Handle module = nullptr, buffer = nullptr;
  char* message = nullptr;
  std::vector<std::byte> object;
  if (calls.parse(context, calls.copy_to_buffer(whole.data(), whole.size(), "kernel"), &module, &message)) {
    ADD_FAILURE() << message;
  } else {
    const auto options = calls.pass_options();
    EXPECT_EQ(calls.run_passes(module, "function(early-cse,loop-mssa(licm),simplifycfg)", machine, options), nullptr);
    calls.dispose_pass_options(options);
    if (calls.emit(machine, module, abi::kObjectFile, &message, &buffer)) {
      ADD_FAILURE() << message;
    } else {
      const auto bytes = std::as_bytes(std::span(calls.buffer_start(buffer), calls.buffer_size(buffer)));
      object.assign(bytes.begin(), bytes.end());
      calls.dispose_buffer(buffer);
    }
    calls.dispose_module(module);
  }
  calls.context_dispose(context);
  calls.dispose_machine(machine);
  return object;
}

void ArmMachine::run(std::span<const std::byte> object, std::uint64_t arena_bytes, std::vector<std::byte> block,
                     const std::vector<Array>& arrays,
                     const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) const {
  Program program;
  const Object code(object, llvm::kEntryName, Machine::aarch64);
  std::vector<std::byte> placed(code.bytes());
  code.place(placed.data(), program.end());
  const std::uint64_t entry = program.add(placed) + code.entry();
  const std::uint64_t arena = program.add(std::vector<std::byte>(arena_bytes, std::byte(0xcd)));
  const std::uint64_t worker = program.add(std::as_bytes(std::span(&arena, 1)));
  const std::uint64_t first = program.add({}, kPage);
  std::vector<std::uint64_t> places;
  for (const Array& array : arrays) {
    places.push_back(program.add(array.memory));
    std::memcpy(block.data() + array.at, &places.back(), sizeof places.back());
  }
  const std::uint64_t bytes = program.end() - first, args = program.add(block);
  Start start;
  for (const auto& [begin, end] : ranges) {
    start.set(0, args), start.set(1, worker);
    start.set(2, std::uint64_t(begin)), start.set(3, std::uint64_t(end));
    start.set(9, entry), start.call(9);
  }
  start.set(0, 1), start.set(1, first), start.set(2, bytes), start.ask_system(kWrite);
  start.set(0, 0), start.ask_system(kExit);
  const std::uint64_t at = program.add(start.code());

  const fs::path folder = platform::temporary_folder(), file = folder / "kernel", output = folder / "output";
  ASSERT_TRUE(platform::write_file(file, program.file(at)));
  fs::permissions(file, fs::perms::owner_all);
  EXPECT_EQ(
      platform::run_program({"sh", "-c", fmt::format("exec {} '{}' >'{}'", emulator_, file.string(), output.string())}),
      0);
  const auto left = platform::read_file(output);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  ASSERT_TRUE(left && left->size() == bytes);
  for (std::size_t k = 0; k < arrays.size(); ++k)
    std::memcpy(arrays[k].memory.data(), left->data() + (places[k] - first), arrays[k].memory.size());
}

}  // namespace weft::test
