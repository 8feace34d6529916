// Programs through the cache of code: keys, entries, and when LLVM is loaded.
#include "programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../frontend/support/platform.h"

namespace weft::backend::native {

namespace {

// Changes whenever emitter and compiler may produce other code for the same module and processor.
#ifndef WEFT_EMITTER_STAMP
#error "the build defines WEFT_EMITTER_STAMP: a hash of the emitter's sources, part of the key of cached code"
#endif
constexpr const char* kEmitterStamp = WEFT_EMITTER_STAMP;

struct EntryHeader {
  std::uint64_t arena_bytes = 0, object_bytes = 0, split = 0;
};
static_assert(sizeof(EntryHeader) == 24, "the header is written as it lies in memory");

// The lines of a note about a toolchain.
constexpr std::string Toolchain::*kLines[] = {&Toolchain::version, &Toolchain::identity, &Toolchain::path};
constexpr std::string Host::*kHostLines[] = {&Host::name, &Host::features};

std::string key_of(const Toolchain& toolchain, const Processor& processor) {
  const llvm::Target& t = processor.target;
  std::string flags;
  for (const bool flag : {t.masked_memory, t.mask_registers, t.fused, t.half_conversions}) flags += flag ? '1' : '0';
  return fmt::format("{}:{}:{}:{}:{}:{}:{}", toolchain.version, toolchain.identity, processor.name, processor.features,
                     t.lanes, flags, kEmitterStamp);
}

std::string entry_key(detail::Hash128 hash, bool by_rows, const std::string& key) {
  return fmt::format("native:{}:{}:{}", to_hex(hash), by_rows ? "rows" : "across", key);
}

// The key of the note about the toolchain; empty if the host's processor cannot be told from others without LLVM.
std::string note_key() {
  const std::string id = platform::processor_id();
  return id.empty() ? id : "native-toolchain:" + id;
}

// Whether the library that was noted is still there. Without one, a kernel that is not cached could not be compiled,
// and another device has to stand in from the beginning.
bool is_current(const Toolchain& noted) {
  const std::string identity = file_identity(noted.path);
  return !identity.empty() && identity == noted.identity;
}

std::optional<Toolchain> noted_toolchain(DiskCache& cache) {
  const std::string key = note_key();
  if (key.empty()) return std::nullopt;
  const auto bytes = cache.get(key);
  if (!bytes) return std::nullopt;
  return unpack_toolchain(*bytes);
}

void note(DiskCache& cache, const Toolchain& toolchain) {
  const std::string key = note_key();
  if (!key.empty() && noted_toolchain(cache) != toolchain) cache.put(key, pack(toolchain));
}

NativeProgram load(const StoredProgram& stored) {
  NativeProgram result;
  result.code = LoadedCode::load(stored.object, llvm::kEntryName);
  result.entry = reinterpret_cast<llvm::Entry>(result.code->entry());
  result.split = stored.split;
  result.arena_bytes = stored.arena_bytes;
  return result;
}

}  // namespace

std::vector<std::byte> pack(const StoredProgram& program) {
  const EntryHeader header{program.arena_bytes, program.object.size(), static_cast<std::uint64_t>(program.split)};
  std::vector<std::byte> bytes(sizeof header + program.object.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(program.object, bytes.begin() + sizeof header);
  return bytes;
}

std::optional<StoredProgram> unpack(std::span<const std::byte> bytes) {
  EntryHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.object_bytes != bytes.size() - sizeof header) return std::nullopt;
  if (header.split > static_cast<std::uint64_t>(llvm::Split::groups)) return std::nullopt;
  return StoredProgram{static_cast<llvm::Split>(header.split), header.arena_bytes, bytes.subspan(sizeof header)};
}

std::vector<std::byte> pack(const Toolchain& toolchain) {
  std::string text;
  for (const auto line : kLines) text += toolchain.*line + '\n';
  for (const auto line : kHostLines) text += toolchain.host.*line + '\n';
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::optional<Toolchain> unpack_toolchain(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Toolchain result;
  const auto next = [&text](std::string& into) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return false;
    into = text.substr(0, end);
    text.remove_prefix(end + 1);
    return true;
  };
  for (const auto line : kLines)
    if (!next(result.*line)) return std::nullopt;
  for (const auto line : kHostLines)
    if (!next(result.host.*line)) return std::nullopt;
  if (!text.empty() || result.version.empty()) return std::nullopt;
  return result;
}

Programs::Programs(DiskCache cache, Request request, const Toolchain& toolchain, Compiler* compiler)
    : cache_(std::move(cache)),
      request_(std::move(request)),
      version_(toolchain.version),
      processor_(choose_processor(toolchain.host, request_)),
      key_(key_of(toolchain, processor_)),
      compiler_(compiler) {}

std::unique_ptr<Programs> Programs::open(std::string* why) {
  return open(DiskCache::from_environment(DiskCache::Holds::code), why);
}

std::unique_ptr<Programs> Programs::open(DiskCache cache, std::string* why) {
  try {
    Request request = Request::from_environment();
    if (request.library.empty()) {
      const auto noted = noted_toolchain(cache);
      if (noted && is_current(*noted))
        return std::unique_ptr<Programs>(new Programs(std::move(cache), std::move(request), *noted, nullptr));
    }
    Compiler* const compiler = Compiler::find(request, why);
    if (!compiler) return nullptr;
    if (request.library.empty()) note(cache, compiler->toolchain());
    const Toolchain& toolchain = compiler->toolchain();
    return std::unique_ptr<Programs>(new Programs(std::move(cache), std::move(request), toolchain, compiler));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported) throw;
    if (why) *why = e.message();
    return nullptr;
  }
}

Compiler& Programs::load_compiler() {
  std::string why;
  Compiler* const found = Compiler::find(request_, &why);
  if (!found) throw Error(ErrorKind::no_device, "a kernel that is not in the cache needs a compiler: " + why);
  if (!compiler_.exchange(found) && request_.library.empty()) note(cache_, found->toolchain());
  return *found;
}

std::optional<NativeProgram> Programs::find(const std::string& key) {
  const auto bytes = cache_.get(key);
  if (!bytes) return std::nullopt;
  const auto stored = unpack(*bytes);
  if (stored) try {
      NativeProgram program = load(*stored);
      loaded_.fetch_add(1);
      return program;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::io) throw;  // no memory
    }
  rejected_.fetch_add(1);
  return std::nullopt;
}

NativeProgram Programs::compile(const ir::Module& kernel, detail::Hash128 hash, bool by_rows) {
  const platform::FloatMode mode;  // constants are computed by the emitter and by LLVM
  Compiler* compiler = compiler_.load();
  if (!compiler) {
    if (auto program = find(entry_key(hash, by_rows, key_))) return *std::move(program);
    compiler = &load_compiler();
  }
  // The library may be another one than was noted. The kernel is emitted for the processor as it was opened: its lanes
  // are the device's subgroups.
  Processor processor = compiler->processor();
  processor.target = processor_.target;
  const std::string key = entry_key(hash, by_rows, key_of(compiler->toolchain(), processor));
  if (auto program = find(key)) return *std::move(program);
  return make(*compiler, kernel, by_rows, key);
}

NativeProgram Programs::make(const Compiler& compiler, const ir::Module& kernel, bool by_rows, const std::string& key) {
  const llvm::Code code = llvm::emit(kernel, processor_.target, by_rows);
  emitted_.fetch_add(1);
  try {
    const std::vector<std::byte> object = compiler.compile(code.text);
    const StoredProgram stored{code.split, code.arena_bytes, object};
    NativeProgram program = load(stored);
    cache_.put(key, pack(stored));
    return program;
  } catch (const Error& e) {
    // An object that is not what the loader takes is LLVM's doing: it calls a function that there is not.
    if (e.kind() == ErrorKind::io)
      throw Error(ErrorKind::unsupported,
                  fmt::format("the code of {} cannot be loaded: {}", compiler.version(), e.message()), kernel.name,
                  kernel.loc);
    throw Error(e.kind(), e.message(), kernel.name, kernel.loc);
  }
}

CompileStats Programs::stats() const {
  CompileStats result;
  result.emitted = emitted_.load();
  result.loaded = loaded_.load();
  result.rejected = rejected_.load() + cache_.rejected();
  return result;
}

}  // namespace weft::backend::native
