// Damaged object code: the loader takes it or refuses it with words, and writes nowhere but into the object's memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "../../backends/native/code/compiler.h"
#include "../../backends/native/code/loader.h"
#include "../../backends/native/code/object.h"
#include "../../backends/native/code/programs.h"
#include "../../frontend/support/error.h"
#include "../unit/native/objects.h"
#include "inputs.h"

namespace weft {
namespace {

using backend::native::kHostMachine;
using backend::native::Machine;
using test::below;
using test::one_in;
using test::Random;
using test::TestObject;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kValues[] = {0,          1,          2,          3,          4,           7,
                                     8,          16,         24,         64,         0xfff1,      0xffff,
                                     0x7ffffffc, 0x7fffffff, 0x80000000, 0xfffffff8, 0x100000000, 1ull << 40,
                                     ~0ull >> 1, 1ull << 63, ~0ull - 63, ~0ull - 7,  ~0ull - 3,   ~0ull};

std::uint64_t value(Random& random, std::uint64_t usual) {
  switch (below(random, 4)) {
    case 0: return test::one_of(random, kValues);
    case 1: return usual + below(random, 9) - 4;
    case 2: return random();
    default: return below(random, 200);
  }
}

// Gives one of an object's fields another value.
void change_field(Random& random, TestObject& object) {
  const auto change = [&](auto& field) { field = std::remove_reference_t<decltype(field)>(value(random, field)); };
  TestObject::Symbol& symbol = object.symbols[below(random, object.symbols.size())];
  TestObject::Relocation& relocation = object.relocations[below(random, object.relocations.size())];
  switch (below(random, 12)) {
    case 0: change(symbol.section); break;
    case 1: change(symbol.value); break;
    case 2: change(symbol.info); break;
    case 3: change(relocation.offset); break;
    case 4: change(relocation.type); break;
    case 5: change(relocation.symbol); break;
    case 6: change(relocation.addend); break;
    case 7: change(object.code_align); break;
    case 8: object.code.resize(below(random, 40)); break;
    case 9: object.symbols.push_back(symbol); break;
    case 10: object.relocations.push_back(relocation); break;
    default: {
      TestObject::Section section{".more", 1, 2, std::string(below(random, 64), 'x')};
      change(section.type);
      change(section.flags);
      change(section.link);
      change(section.info);
      change(section.align);
      change(section.entry_bytes);
      object.more.push_back(section);
    }
  }
}

// Puts a value that sizes, offsets and numbers can have somewhere into a file: at a multiple of 4, mostly into its
// headers, which are at its beginning and its end.
void change_number(Random& random, Bytes& file) {
  const std::size_t length = one_in(random, 2) ? 4 : one_in(random, 2) ? 8 : 2;
  const std::size_t places = file.size() / 4;
  if (places < 3) return;
  std::size_t place = below(random, places - 2);
  if (one_in(random, 3)) place = below(random, std::min<std::size_t>(places - 2, 16));
  std::uint64_t now = 0;
  std::memcpy(&now, file.data() + 4 * place, length);
  const std::uint64_t changed = value(random, now);
  std::memcpy(file.data() + 4 * place, &changed, length);
}

// Loads a file into memory between guards.
void load(Random& random, const Bytes& file, std::string_view entry, Machine machine) {
  constexpr std::string_view kOutside[] = {"weft.sin.f32.v8"};
  constexpr std::size_t kGuard = 256;
  constexpr std::byte kUntouched{0xa5};
  const Bytes copy = file;
  try {
    const backend::native::Object object(file, entry, machine, kOutside);
    ASSERT_LT(object.entry(), object.bytes());
    Bytes memory(object.bytes() + 2 * kGuard, kUntouched);
    const auto untouched = [&](std::size_t first) {
      return std::all_of(memory.begin() + std::ptrdiff_t(first), memory.begin() + std::ptrdiff_t(first + kGuard),
                         [](std::byte b) { return b == kUntouched; });
    };
    try {
      const std::uint64_t outside[] = {random()};
      object.place(memory.data() + kGuard, random() & ~0xfffull, outside);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::io);
    }
    EXPECT_TRUE(untouched(0) && untouched(memory.size() - kGuard));
    if (machine == kHostMachine && one_in(random, 20)) backend::native::LoadedCode::load(file, entry);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io) << e.message();
    EXPECT_EQ(e.message().find("object code: "), 0u) << e.message();
  }
  EXPECT_EQ(file, copy);
}

TEST(NativeObjectsFuzz, objects_with_other_fields_are_taken_or_refused) {
  test::for_each_input(2000, [](Random& random) {
    const Machine machine = one_in(random, 2) ? Machine::x86_64 : Machine::aarch64;
    TestObject object = test::table_object(machine);
    for (std::uint64_t k = below(random, 4); k > 0; --k) change_field(random, object);
    load(random, object.write(), "f", machine);
  });
}

TEST(NativeObjectsFuzz, damaged_objects_are_taken_or_refused) {
  const Bytes small[] = {test::table_object(Machine::x86_64).write(), test::table_object(Machine::aarch64).write()};
  test::for_each_input(2000, [&](Random& random) {
    const std::uint64_t which = below(random, 2);
    Bytes file = small[which];
    for (std::uint64_t k = 1 + below(random, 3); k > 0; --k)
      if (one_in(random, 3))
        test::damage(random, file);
      else
        change_number(random, file);
    load(random, file, "f", which ? Machine::aarch64 : Machine::x86_64);
  });
}

// A module with constants, a table of jumps and two functions.
std::string module_text() {
  std::string text =
      "define internal <8 x float> @twice(<8 x float> %x) noinline {\n  %y = fmul <8 x float> %x, <float 2.0, float "
      "3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0, float 9.0>\n  ret <8 x float> %y\n}\n"
      "define void @weft_kernel(ptr %args, ptr %worker, i64 %begin, i64 %end) {\n"
      "  %x = load <8 x float>, ptr %args, align 4\n  switch i64 %begin, label %other [\n";
  for (int k = 0; k < 9; ++k) text += fmt::format("    i64 {}, label %case{}\n", k, k);
  text += "  ]\n";
  for (int k = 0; k < 9; ++k)
    text += fmt::format(
        "case{}:\n  %y{} = call <8 x float> @twice(<8 x float> %x)\n  %p{} = getelementptr i8, ptr %args, i64 {}\n"
        "  store volatile <8 x float> %y{}, ptr %p{}, align 4\n  br label %other\n",
        k, k, k, 64 * k + 36, k, k);
  return text + "other:\n  ret void\n}\n";
}

TEST(NativeObjectsFuzz, damaged_code_of_llvm_is_taken_or_refused) {
  std::string why;
  const backend::native::Compiler* const compiler = backend::native::Compiler::find(&why);
  if (!compiler) GTEST_SKIP() << why;
  const Bytes good = compiler->compile(module_text());
  const backend::native::StoredProgram stored{llvm::Split::rows, 4096, good, {{llvm::kEntryName, good}}};
  test::for_each_input(1000, [&](Random& random) {
    // As an entry of the cache whose checksum is right, or as an object.
    Bytes file = pack(stored);
    const bool whole = one_in(random, 4);
    if (!whole) file = good;
    for (std::uint64_t k = 1 + below(random, 3); k > 0; --k)
      if (one_in(random, 3))
        test::damage(random, file);
      else
        change_number(random, file);
    if (!whole) return load(random, file, llvm::kEntryName, kHostMachine);
    const auto found = backend::native::unpack(file);
    if (!found) return;
    EXPECT_LE(int(found->split), int(llvm::Split::groups));
    load(random, {found->object.begin(), found->object.end()}, llvm::kEntryName, kHostMachine);
    for (const auto& [name, object] : found->functions)
      load(random, {object.begin(), object.end()}, name, kHostMachine);
  });
}

}  // namespace
}  // namespace weft
