// Reads relocatable ELF objects. The names of ELF's fields and values are those of its specification (System V ABI).
#include "object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/platform.h"
#include "relocate.h"

namespace weft::backend::native {

namespace {

struct FileHeader {
  std::array<std::uint8_t, 16> ident;
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, phoff, shoff;
  std::uint32_t flags;
  std::uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
static_assert(sizeof(FileHeader) == 64);

struct SectionHeader {
  std::uint32_t name, type;
  std::uint64_t flags, addr, offset, size;
  std::uint32_t link, info;
  std::uint64_t addralign, entsize;
};
static_assert(sizeof(SectionHeader) == 64);

struct SymbolRow {
  std::uint32_t name;
  std::uint8_t info, other;
  std::uint16_t shndx;
  std::uint64_t value, size;
};
static_assert(sizeof(SymbolRow) == 24);

struct RelocationRow {
  std::uint64_t offset, info;
  std::int64_t addend;
};
static_assert(sizeof(RelocationRow) == 24);

constexpr std::array<std::uint8_t, 7> kIdent = {0x7f, 'E', 'L', 'F', 2, 1, 1};  // 64 bits, low byte first, version 1
constexpr std::uint16_t kRelocatable = 1;
// Types of sections, and flags: is loaded, is written to, has instructions, is compressed, is one for each thread.
constexpr std::uint32_t kSymbols = 2, kStrings = 3, kRelocations = 4, kZeros = 8, kShortRelocations = 9;
constexpr std::uint64_t kWritten = 1, kLoaded = 2, kInstructions = 4, kCompressed = 0x800, kThreadLocal = 0x400;
// Numbers of sections that are none, and the type of symbols that are functions.
constexpr std::uint16_t kUndefined = 0, kReserved = 0xff00;
constexpr std::uint8_t kFunction = 2;
// No kernel comes near. All distances fit into 32 bits, and no sum of sizes overflows.
constexpr std::uint64_t kMostBytes = std::uint64_t(1) << 30;

template <class... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> why, Args&&... args) {
  throw Error(ErrorKind::io, "object code: " + fmt::format(why, std::forward<Args>(args)...));
}

}  // namespace

template <class T>
T Object::read(std::uint64_t offset) const {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > file_.size() || file_.size() - offset < sizeof(T)) damaged("it is cut short");
  T result;
  std::memcpy(&result, file_.data() + offset, sizeof result);
  return result;
}

// The text at a place of a table of strings.
std::string_view Object::text(const Section& table, std::uint64_t offset) const {
  if (table.type != kStrings || offset >= table.bytes) damaged("a name is outside its table");
  const char* const first = reinterpret_cast<const char*>(file_.data() + table.offset + offset);
  const void* const end = std::memchr(first, 0, table.bytes - offset);
  if (!end) damaged("a name has no end");
  return {first, static_cast<const char*>(end)};
}

Object::Object(std::span<const std::byte> file, std::string_view entry, Machine machine,
               std::span<const std::string_view> outside)
    : file_(file), machine_(machine) {
  read_sections(machine);
  lay_out();
  read_symbols(entry, outside);
  check_relocations();
}

void Object::read_sections(Machine machine) {
  if (file_.size() > kMostBytes) damaged("it has {} bytes", file_.size());
  const auto header = read<FileHeader>(0);
  if (!std::equal(kIdent.begin(), kIdent.end(), header.ident.begin())) damaged("it is no ELF object of 64 bits");
  if (header.type != kRelocatable) damaged("it is not relocatable");
  if (header.machine != static_cast<std::uint16_t>(machine))
    damaged("it is for another kind of processor ({})", header.machine);
  if (header.shentsize != sizeof(SectionHeader) || header.shstrndx >= header.shnum)
    damaged("its table of sections is damaged");
  if (header.shoff > file_.size()) damaged("it is cut short");
  std::vector<std::uint32_t> names;
  for (std::uint32_t k = 0; k < header.shnum; ++k) {
    const auto row = read<SectionHeader>(header.shoff + k * sizeof(SectionHeader));
    Section& section = sections_.emplace_back();
    section.type = row.type;
    section.link = row.link;
    section.info = row.info;
    section.flags = row.flags;
    section.offset = row.offset;
    section.bytes = row.size;
    section.align = std::max<std::uint64_t>(row.addralign, 1);
    section.entry_bytes = row.entsize;
    names.push_back(row.name);
    const bool in_file = row.type != 0 && row.type != kZeros;
    if (in_file && (row.offset > file_.size() || row.size > file_.size() - row.offset)) damaged("it is cut short");
  }
  for (std::size_t k = 1; k < sections_.size(); ++k)
    if (sections_[k].type != 0) sections_[k].name = text(sections_[header.shstrndx], names[k]);
}

// Gives each section that is loaded its place. All pages are made executable and unwritable.
void Object::lay_out() {
  std::uint64_t end = 0;
  for (Section& section : sections_) {
    if (section.type == 0 || !(section.flags & kLoaded) || section.bytes == 0) continue;
    if (section.flags & (kCompressed | kThreadLocal)) damaged("section {} is compressed or thread-local", section.name);
    // Constants that hold addresses are written only by relocations.
    const bool relocated_constants = section.name.starts_with(".data.rel.ro");
    if (section.type == kZeros || ((section.flags & kWritten) && !relocated_constants))
      damaged("section {} holds variables", section.name);
    if (!std::has_single_bit(section.align) || section.align > platform::kCodeAlignment)
      damaged("section {} is aligned to {} bytes", section.name, section.align);
    section.at = (end + section.align - 1) / section.align * section.align;
    end = section.at + section.bytes;
    if (end > kMostBytes) damaged("its sections are too large");
  }
  bytes_ = static_cast<std::size_t>(end);
}

void Object::read_symbols(std::string_view entry, std::span<const std::string_view> outside) {
  for (std::size_t k = 0; k < sections_.size(); ++k) {
    if (sections_[k].type != kSymbols) continue;
    if (table_) damaged("it has two tables of symbols");
    table_ = k;
  }
  if (!table_) damaged("it has no symbols");
  const Section& table = sections_[table_];
  if (table.link >= sections_.size() || table.entry_bytes != sizeof(SymbolRow)) damaged("its symbols are damaged");
  for (std::uint64_t k = 0; k < table.bytes / sizeof(SymbolRow); ++k) {
    const auto row = read<SymbolRow>(table.offset + k * sizeof(SymbolRow));
    Symbol& symbol = symbols_.emplace_back();
    if (k == 0) continue;  // stands for no symbol
    symbol.name = text(sections_[table.link], row.name);
    if (row.shndx == kUndefined) {
      const auto found = std::ranges::find(outside, symbol.name);
      if (found == outside.end()) damaged("it needs '{}', which it does not have", symbol.name);
      symbol.outside = static_cast<std::size_t>(found - outside.begin());
      continue;
    }
    if (row.shndx >= kReserved) continue;  // names of files, among others
    if (row.shndx >= sections_.size()) damaged("symbol '{}' is in no section", symbol.name);
    const Section& section = sections_[row.shndx];
    if (section.at == kNowhere) continue;
    if (row.value > section.bytes) damaged("symbol '{}' is outside its section", symbol.name);
    symbol.at = section.at + row.value;
    if (symbol.name != entry) continue;
    if ((row.info & 15) != kFunction || !(section.flags & kInstructions) || row.value == section.bytes)
      damaged("'{}' is no function", entry);
    if (entry_ != kNowhere) damaged("it has two functions '{}'", entry);
    entry_ = static_cast<std::size_t>(symbol.at);
  }
  if (entry_ == kNowhere) damaged("it has no function '{}'", entry);
}

void Object::check_relocations() const {
  for (const Section& section : sections_) {
    if (section.type != kRelocations && section.type != kShortRelocations) continue;
    if (section.info >= sections_.size()) damaged("relocations are for no section");
    if (sections_[section.info].at == kNowhere) continue;
    if (section.type == kShortRelocations || section.link != table_ || section.entry_bytes != sizeof(RelocationRow))
      damaged("the relocations of {} are damaged", sections_[section.info].name);
  }
}

void Object::place(std::byte* memory, std::uint64_t address, std::span<const std::uint64_t> outside) const {
  std::memset(memory, 0, bytes_);
  for (const Section& section : sections_)
    if (section.at != kNowhere) std::memcpy(memory + section.at, file_.data() + section.offset, section.bytes);
  for (const Section& section : sections_)
    if (section.type == kRelocations && sections_[section.info].at != kNowhere)
      relocate(section, memory, address, outside);
}

void Object::relocate(const Section& relocations, std::byte* memory, std::uint64_t address,
                      std::span<const std::uint64_t> outside) const {
  const Section& section = sections_[relocations.info];
  for (std::uint64_t k = 0; k < relocations.bytes / sizeof(RelocationRow); ++k) {
    const auto row = read<RelocationRow>(relocations.offset + k * sizeof(RelocationRow));
    const auto type = static_cast<std::uint32_t>(row.info);
    const std::uint64_t number = row.info >> 32;
    const std::size_t bytes = relocated_bytes(machine_, type);
    if (bytes == 0) damaged("there is no relocation of type {}", type);
    if (row.offset > section.bytes || section.bytes - row.offset < bytes)
      damaged("a relocation is outside section {}", section.name);
    if (number >= symbols_.size()) damaged("a relocation of section {} leads nowhere", section.name);
    const Symbol& symbol = symbols_[number];
    const bool is_outside = symbol.outside < outside.size();
    if (symbol.at == kNowhere && !is_outside) damaged("a relocation of section {} leads nowhere", section.name);
    const std::uint64_t at = section.at + row.offset;
    const std::uint64_t symbol_at = is_outside ? outside[symbol.outside] : address + symbol.at;
    const std::uint64_t value = symbol_at + static_cast<std::uint64_t>(row.addend);
    if (!apply_relocation(machine_, type, memory + at, address + at, value))
      damaged("a relocation of section {} does not fit", section.name);
  }
}

}  // namespace weft::backend::native
