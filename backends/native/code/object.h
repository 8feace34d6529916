// Relocatable ELF objects: checked, laid out, and relocated to the address at which they will run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "processor.h"

namespace weft::backend::native {

/// The parts of an object that are loaded, one after another as they will lie in memory. The object may be damaged:
/// everything that is read from it is checked against its bounds. What the code does is not checked.
class Object {
 public:
  /// Reads an object that writes to no data of its own, and needs no symbols but those named in `outside`. The bytes
  /// and the names must outlive this.
  /// Errors: Error(io) for an object that is damaged, of another kind, or without a function named `entry`.
  Object(std::span<const std::byte> file, std::string_view entry, Machine machine = kHostMachine,
         std::span<const std::string_view> outside = {});

  /// The memory that the object takes, at a multiple of kCodeAlignment.
  std::size_t bytes() const { return bytes_; }
  /// The distance of the entry from the first byte.
  std::size_t entry() const { return entry_; }

  /// Writes bytes() bytes, which will run at `address`. \param outside  addresses of the symbols outside
  /// Errors: Error(io) for a relocation that does not exist or does not fit.
  void place(std::byte* memory, std::uint64_t address, std::span<const std::uint64_t> outside = {}) const;

 private:
  static constexpr std::uint64_t kNowhere = ~std::uint64_t(0);
  // A section, with its place in memory if it is loaded.
  struct Section {
    std::uint32_t type = 0, link = 0, info = 0;
    std::uint64_t flags = 0, offset = 0, bytes = 0, align = 1, entry_bytes = 0;
    std::string_view name;
    std::uint64_t at = kNowhere;
  };
  struct Symbol {
    std::uint64_t at = kNowhere;  // its place in memory
    std::string_view name;
    std::size_t outside = kNowhere;  // its number among those outside
  };

  template <class T>
  T read(std::uint64_t offset) const;
  std::string_view text(const Section& table, std::uint64_t offset) const;
  void read_sections(Machine machine);
  void lay_out();
  void read_symbols(std::string_view entry, std::span<const std::string_view> outside);
  void check_relocations() const;
  void relocate(const Section& relocations, std::byte* memory, std::uint64_t address,
                std::span<const std::uint64_t> outside) const;

  std::span<const std::byte> file_;
  Machine machine_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::size_t table_ = 0;  // the section of symbols
  std::size_t bytes_ = 0, entry_ = kNowhere;
};

}  // namespace weft::backend::native
