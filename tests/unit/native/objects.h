// Relocatable ELF objects made by hand, for tests of what loads them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../../../backends/native/code/processor.h"

namespace weft::test {

/// An object with a section of code (number 1), one of constants (2), and the tables that these need. Each field can be
/// given a wrong value.
struct TestObject {
  using Machine = backend::native::Machine;
  static constexpr std::uint16_t kText = 1, kConstants = 2;
  static constexpr std::uint32_t kProgramBits = 1;
  static constexpr std::uint64_t kLoaded = 2, kInstructions = 4;

  struct Section {
    std::string name;
    std::uint32_t type = kProgramBits;
    std::uint64_t flags = kLoaded;
    std::string content;
    std::uint32_t link = 0, info = 0;
    std::uint64_t align = 16, entry_bytes = 0;
  };
  struct Symbol {
    std::string name;
    std::uint16_t section = kText;
    std::uint64_t value = 0;
    std::uint8_t info = 0x12;  ///< global, function
  };
  struct Relocation {
    std::uint64_t offset = 0;
    std::uint32_t type = 0, symbol = 0;
    std::int64_t addend = 0;
    std::uint16_t section = kText;
  };

  Machine machine = backend::native::kHostMachine;
  std::string magic = std::string(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
      16);
  std::uint16_t type = 1;
  std::string code, constants;
  std::uint64_t code_align = 16;
  std::vector<Symbol> symbols;  ///< from number 1 on
  std::vector<Relocation> relocations;
  std::vector<Section> more;  ///< further sections, last

  std::vector<std::byte> write() const;
};

namespace detail {

template <class T>
void add(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::uint32_t add_name(std::string& names, const std::string& name) {
  const auto at = static_cast<std::uint32_t>(names.size());
  names += name + '\0';
  return at;
}

}  // namespace detail

inline std::vector<std::byte> TestObject::write() const {
  using detail::add;
  constexpr std::uint32_t kSymbols = 3, kNames = 4, kTypeSymbols = 2, kTypeNames = 3, kTypeRelocations = 4;
  std::string names(1, '\0'), rows(24, '\0');
  for (const Symbol& s : symbols) {
    add(rows, detail::add_name(names, s.name));
    add(rows, std::uint16_t(s.info));
    add(rows, s.section);
    add(rows, s.value);
    add(rows, std::uint64_t(0));
  }
  std::vector<Section> sections = {{"", 0, 0, "", 0, 0, 0},
                                   {".text", kProgramBits, kLoaded | kInstructions, code, 0, 0, code_align},
                                   {".rodata", kProgramBits, kLoaded, constants},
                                   {".symtab", kTypeSymbols, 0, rows, kNames, 1, 8, 24},
                                   {".strtab", kTypeNames, 0, "", 0, 0, 1}};
  for (const std::uint16_t target : {kText, kConstants}) {
    std::string found;
    for (const Relocation& r : relocations) {
      if (r.section != target) continue;
      add(found, r.offset);
      add(found, std::uint64_t(r.symbol) << 32 | r.type);
      add(found, r.addend);
    }
    if (!found.empty()) sections.push_back({".rela", kTypeRelocations, 0, found, kSymbols, target, 8, 24});
  }
  sections.insert(sections.end(), more.begin(), more.end());
  std::vector<std::uint32_t> at;
  for (const Section& s : sections) at.push_back(detail::add_name(names, s.name));
  sections[kNames].content = names;

  std::string contents, headers;
  for (std::size_t k = 0; k < sections.size(); ++k) {
    const Section& s = sections[k];
    contents.resize((contents.size() + 15) / 16 * 16);
    add(headers, at[k]);
    add(headers, s.type);
    add(headers, s.flags);
    add(headers, std::uint64_t(0));
    add(headers, std::uint64_t(64 + contents.size()));
    add(headers, std::uint64_t(s.content.size()));
    add(headers, s.link);
    add(headers, s.info);
    add(headers, s.align);
    add(headers, s.entry_bytes);
    contents += s.content;
  }
  std::string file = magic;
  add(file, type);
  add(file, std::uint16_t(machine));
  add(file, std::uint32_t(1));
  add(file, std::uint64_t(0));
  add(file, std::uint64_t(0));
  add(file, std::uint64_t(64 + contents.size()));
  add(file, std::uint32_t(0));
  for (const int value : {64, 0, 0, 64, int(sections.size()), int(kNames)}) add(file, std::uint16_t(value));
  file += contents + headers;
  std::vector<std::byte> result(file.size());
  std::memcpy(result.data(), file.data(), file.size());
  return result;
}

/// Instructions as they lie in memory.
inline std::string instructions(std::initializer_list<std::uint32_t> words) {
  std::string result;
  for (const std::uint32_t word : words) detail::add(result, word);
  return result;
}

/// An object with the function int f(int i) { return table[i]; }, where the table has 10, 20, 30 and 40.
inline TestObject table_object(backend::native::Machine machine = backend::native::kHostMachine) {
  TestObject object;
  object.machine = machine;
  object.constants = instructions({10, 20, 30, 40});
  object.symbols = {{"table", TestObject::kConstants, 0, 1}, {"f"}};
  if (machine == backend::native::Machine::aarch64) {
    // adrp x1, table; add x1, x1, :lo12:table; ldr w0, [x1, w0, sxtw #2]; ret
    object.code = instructions({0x90000001, 0x91000021, 0xb860d820, 0xd65f03c0});
    object.relocations = {{0, 275, 1}, {4, 277, 1}};
  } else {
    // movslq %edi, %rdi; lea table(%rip), %rdx; mov (%rdx,%rdi,4), %eax; ret
    object.code = std::string("\x48\x63\xff\x48\x8d\x15\0\0\0\0\x8b\x04\xba\xc3", 14);
    object.relocations = {{6, 2, 1, -4}};
  }
  return object;
}

}  // namespace weft::test
