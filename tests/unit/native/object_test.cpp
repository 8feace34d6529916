// The loader of objects: code that runs where it is put, and every kind of object that is refused.
#include "../../../backends/native/code/object.h"

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>

#include "../../../backends/native/code/loader.h"
#include "../../../backends/native/code/relocate.h"
#include "../../../frontend/support/error.h"
#include "objects.h"

namespace weft::backend::native {
namespace {

using test::table_object;
using test::TestObject;
using Bytes = std::vector<std::byte>;

// The message with which an object is refused; empty if it is not. Both what checks it and what places it may refuse.
std::string refusal(const Bytes& file, Machine machine = kHostMachine) {
  try {
    const Object object(file, "f", machine);
    Bytes memory(object.bytes());
    object.place(memory.data(), 0x10000);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io);
    return e.message();
  }
  return {};
}

std::string refusal(const std::function<void(TestObject&)>& change) {
  TestObject object = table_object(Machine::x86_64);
  change(object);
  return refusal(object.write(), Machine::x86_64);
}

std::uint32_t word(const Bytes& memory, std::size_t at) {
  std::uint32_t result;
  std::memcpy(&result, memory.data() + at, sizeof result);
  return result;
}

TEST(NativeObject, CodeRunsWithItsConstants) {
  if (kHostMachine == Machine::none) GTEST_SKIP() << "no code for this processor";
  const Bytes file = table_object().write();
  const auto code = LoadedCode::load(file, "f");
  const auto f = reinterpret_cast<int (*)(int)>(code->entry());
  for (int k = 0; k < 4; ++k) EXPECT_EQ(f(k), 10 * (k + 1));
}

TEST(NativeObject, CodeStaysUntilItsEnd) {
  if (kHostMachine == Machine::none) GTEST_SKIP() << "no code for this processor";
  std::vector<std::shared_ptr<LoadedCode>> codes;
  for (int k = 0; k < 50; ++k) {
    Bytes file = table_object().write();
    codes.push_back(LoadedCode::load(file, "f"));
    file.assign(file.size(), std::byte(0xcc));
    if (k % 3 == 0) codes.erase(codes.begin());
  }
  for (const auto& code : codes) EXPECT_EQ(reinterpret_cast<int (*)(int)>(code->entry())(2), 30);
}

TEST(NativeObject, TheLoaderRefusesWhatTheObjectRefuses) {
  if (kHostMachine == Machine::none) GTEST_SKIP() << "no code for this processor";
  TestObject object = table_object();
  EXPECT_THROW(LoadedCode::load(object.write(), "g"), Error);
  object.relocations[0].type = 9;  // fails while the memory is writable
  EXPECT_THROW(LoadedCode::load(object.write(), "f"), Error);
}

// Distances of x86-64 are between the place and the symbol, wherever both lie.
TEST(NativeObject, X86IsRelocated) {
  TestObject object = table_object(Machine::x86_64);
  object.relocations.push_back({8, 1, 2, 5, TestObject::kConstants});  // the address of f, and 5
  const Bytes file = object.write();
  const Object read(file, "f", Machine::x86_64);
  EXPECT_EQ(read.entry(), 0u);
  ASSERT_EQ(read.bytes(), 32u) << "constants are aligned to 16 bytes";
  Bytes memory(read.bytes());
  const std::uint64_t address = 0x7fff12345000;
  read.place(memory.data(), address);
  EXPECT_EQ(word(memory, 6), 16u - 6u - 4u);
  EXPECT_EQ(word(memory, 24), std::uint32_t(address + 5));
  EXPECT_EQ(word(memory, 28), std::uint32_t(address >> 32));
}

TEST(NativeObject, ArmIsRelocated) {
  TestObject object = table_object(Machine::aarch64);
  object.relocations[0].addend = 0x3000;  // other pages, and both low bits that adrp keeps apart
  const Bytes file = object.write();
  const Object read(file, "f", Machine::aarch64);
  Bytes memory(read.bytes());
  read.place(memory.data(), 0x12345000);
  EXPECT_EQ(word(memory, 0), 0xf0000001u) << "adrp x1, 0x12348000";
  EXPECT_EQ(word(memory, 4), 0x91004021u) << "add x1, x1, #16";
  EXPECT_EQ(word(memory, 8), 0xb860d820u);
}

// Each row is what a linker makes of it.
TEST(NativeObject, ArmRelocationsAreThoseOfLinkers) {
  struct Row {
    std::uint32_t type, instruction;
    std::uint64_t at, value;
    std::uint32_t result;
  };
  const Row rows[] = {{274, 0x10000000, 0x1000, 0x1007, 0x70000020},  // adr x0, 7 bytes on
                      {275, 0x90000002, 0x5ff8, 0x2010, 0xb0ffffe2},  // adrp x2, 3 pages before
                      {277, 0x91000021, 0, 0x12abc, 0x912af021},      // add x1, x1, #0xabc
                      {278, 0x39400000, 0, 0x1003, 0x39400c00},       // ldrb w0, [x0, #3]
                      {284, 0x79400000, 0, 0x1006, 0x79400c00},       // ldrh w0, [x0, #6]
                      {285, 0xb9400000, 0, 0x1008, 0xb9400800},       // ldr w0, [x0, #8]
                      {286, 0xf9400000, 0, 0x1018, 0xf9400c00},       // ldr x0, [x0, #24]
                      {299, 0x3dc00000, 0, 0x1020, 0x3dc00800},       // ldr q0, [x0, #32]
                      {282, 0x14000000, 0x1000, 0x0ff8, 0x17fffffe},  // b, 8 bytes back
                      {283, 0x94000000, 0x1000, 0x1040, 0x94000010},  // bl, 64 bytes on
                      {261, 0, 0x1000, 0x0ff0, 0xfffffff0}};          // a distance
  for (const Row& row : rows) {
    Bytes place(4);
    std::memcpy(place.data(), &row.instruction, 4);
    EXPECT_EQ(relocated_bytes(Machine::aarch64, row.type), 4u) << row.type;
    EXPECT_TRUE(apply_relocation(Machine::aarch64, row.type, place.data(), row.at, row.value)) << row.type;
    EXPECT_EQ(word(place, 0), row.result) << row.type;
  }
}

TEST(NativeObject, RelocationsThatDoNotFitAreRefused) {
  Bytes place(8);
  const auto fits = [&](Machine machine, std::uint32_t type, std::uint64_t value) {
    return apply_relocation(machine, type, place.data(), 0, value);
  };
  EXPECT_TRUE(fits(Machine::x86_64, 2, 0x7fffffff));
  EXPECT_FALSE(fits(Machine::x86_64, 2, 0x80000000));
  EXPECT_TRUE(fits(Machine::x86_64, 4, 0xffffffff80000000));
  EXPECT_FALSE(fits(Machine::x86_64, 4, 0xffffffff7fffffff));
  EXPECT_TRUE(fits(Machine::x86_64, 1, ~0ull));
  EXPECT_TRUE(fits(Machine::aarch64, 283, (1 << 27) - 4));
  EXPECT_FALSE(fits(Machine::aarch64, 283, 1 << 27)) << "too far";
  EXPECT_FALSE(fits(Machine::aarch64, 283, 6)) << "between instructions";
  EXPECT_FALSE(fits(Machine::aarch64, 274, 1 << 20));
  EXPECT_FALSE(fits(Machine::aarch64, 275, 1ull << 32));
  EXPECT_FALSE(fits(Machine::aarch64, 286, 4)) << "loads of 8 bytes are aligned to 8";
  EXPECT_FALSE(fits(Machine::aarch64, 299, 8));
}

TEST(NativeObject, OtherFilesAreRefused) {
  EXPECT_EQ(refusal(Bytes{}), "object code: it is cut short");
  EXPECT_EQ(refusal(Bytes(64)), "object code: it is no ELF object of 64 bits");
  EXPECT_EQ(refusal([](TestObject& o) { o.magic[4] = 1; }), "object code: it is no ELF object of 64 bits");
  EXPECT_EQ(refusal([](TestObject& o) { o.type = 3; }), "object code: it is not relocatable");
  EXPECT_EQ(refusal([](TestObject& o) { o.machine = Machine::aarch64; }),
            "object code: it is for another kind of processor (183)");
}

TEST(NativeObject, EveryShorterFileIsRefused) {
  const Bytes file = table_object(Machine::x86_64).write();
  ASSERT_EQ(refusal(file, Machine::x86_64), "");
  for (std::size_t length = 0; length < file.size(); ++length) {
    const Bytes shorter(file.begin(), file.begin() + std::ptrdiff_t(length));
    EXPECT_NE(refusal(shorter, Machine::x86_64), "") << length;
  }
}

TEST(NativeObject, SymbolsFromOutsideHaveTheAddressesThatAreGiven) {
  TestObject object = table_object(Machine::x86_64);
  object.symbols.push_back({"g", 0, 0, 0x10});
  object.relocations.push_back({8, 1, std::uint32_t(object.symbols.size()), 5, TestObject::kConstants});
  const Bytes file = object.write();
  const std::string_view names[] = {"h", "g"};
  EXPECT_THROW(Object(file, "f", Machine::x86_64, std::span(names).first(1)), Error);
  const Object read(file, "f", Machine::x86_64, names);
  Bytes memory(read.bytes());
  const std::uint64_t address = 0x7fff12345000, addresses[] = {1, 0x7fff12346010};
  read.place(memory.data(), address, addresses);
  EXPECT_EQ(word(memory, 24), 0x12346015u);
  EXPECT_EQ(word(memory, 28), 0x7fffu);
  EXPECT_THROW(read.place(memory.data(), address), Error) << "leads nowhere";
}

TEST(NativeObject, FunctionsFromOutsideAreNamed) {
  EXPECT_EQ(refusal([](TestObject& o) {
              o.symbols.push_back({"memcpy", 0, 0, 0x10});
            }),
            "object code: it needs 'memcpy', which it does not have");
}

TEST(NativeObject, TheEntryIsOneFunction) {
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[1].name = "g"; }), "object code: it has no function 'f'");
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[1].info = 0x11; }), "object code: 'f' is no function");
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[1].section = 2; }), "object code: 'f' is no function");
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[1].value = o.code.size(); }), "object code: 'f' is no function");
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols.push_back({"f"}); }), "object code: it has two functions 'f'");
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[1].section = 0xfff1; }), "object code: it has no function 'f'");
}

TEST(NativeObject, SymbolsAreInTheirSections) {
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[0].value = 17; }),
            "object code: symbol 'table' is outside its section");
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[0].value = ~0ull; }),
            "object code: symbol 'table' is outside its section");
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[0].section = 77; }), "object code: symbol 'table' is in no section");
}

TEST(NativeObject, RelocationsStayInTheirSections) {
  const char* const outside = "object code: a relocation is outside section .text";
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].offset = o.code.size() - 4; }), "");
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].offset = o.code.size() - 3; }), outside);
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].offset = ~0ull; }), outside);
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].offset = ~0ull - 3; }), outside);
  const char* const nowhere = "object code: a relocation of section .text leads nowhere";
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].symbol = 3; }), nowhere);
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].symbol = 0; }), nowhere);
  EXPECT_EQ(refusal([](TestObject& o) { o.symbols[0].section = 0xfff2; }), nowhere);
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].addend = std::int64_t(1) << 31; }),
            "object code: a relocation of section .text does not fit");
  EXPECT_EQ(refusal([](TestObject& o) { o.relocations[0].type = 9; }), "object code: there is no relocation of type 9")
      << "through a table of addresses";
}

TEST(NativeObject, SectionsThatCodeMustNotHaveAreRefused) {
  const auto with = [](TestObject::Section section) {
    return refusal([&](TestObject& o) { o.more.push_back(section); });
  };
  const std::string some(16, 'x');
  EXPECT_EQ(with({".data", 1, 3, some}), "object code: section .data holds variables");
  EXPECT_EQ(with({".data", 1, 3, ""}), "") << "compilers write empty ones";
  EXPECT_EQ(with({".bss", 8, 3, some}), "object code: section .bss holds variables");
  EXPECT_EQ(with({".data.rel.ro", 1, 3, some}), "");
  EXPECT_EQ(with({".debug_info", 1, 0, some}), "");
  EXPECT_EQ(with({".tdata", 1, 0x402, some}), "object code: section .tdata is compressed or thread-local");
  EXPECT_EQ(with({".text.2", 1, 0x806, some}), "object code: section .text.2 is compressed or thread-local");
  EXPECT_EQ(with({".text.2", 1, 6, some, 0, 0, 24}), "object code: section .text.2 is aligned to 24 bytes");
  EXPECT_EQ(with({".text.2", 1, 6, some, 0, 0, 8192}), "object code: section .text.2 is aligned to 8192 bytes");
  EXPECT_EQ(with({".symtab", 2, 0, std::string(24, '\0'), 4, 1, 8, 24}), "object code: it has two tables of symbols");
  EXPECT_EQ(with({".rel", 9, 0, some, 3, 1, 8, 16}), "object code: the relocations of .text are damaged");
  EXPECT_EQ(with({".rela", 4, 0, some, 2, 1, 8, 24}), "object code: the relocations of .text are damaged");
  EXPECT_EQ(with({".rela", 4, 0, some, 3, 99, 8, 24}), "object code: relocations are for no section");
}

}  // namespace
}  // namespace weft::backend::native
