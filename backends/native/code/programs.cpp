// Programs through the cache of code: keys, entries, and when LLVM is loaded.
#include "programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../frontend/support/platform.h"
#include "object.h"

namespace weft::backend::native {

namespace {

// Changes whenever emitter and compiler may produce other code for the same module and processor.
#ifndef WEFT_EMITTER_STAMP
#error "the build defines WEFT_EMITTER_STAMP: a hash of the emitter's sources, part of the key of cached code"
#endif
constexpr const char* kEmitterStamp = WEFT_EMITTER_STAMP;

struct EntryHeader {
  std::uint64_t arena_bytes = 0, object_bytes = 0, split = 0, functions = 0;
};
static_assert(sizeof(EntryHeader) == 32, "the header is written as it lies in memory");
// Before each function's name and object, which follow the kernel's object.
struct FunctionHeader {
  std::uint64_t name_bytes = 0, object_bytes = 0;
};

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
  // A relative path would mean whatever the current folder holds.
  if (!std::filesystem::path(noted.path).is_absolute()) return false;
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
  result.code = LoadedCode::load(stored.object, llvm::kEntryName, stored.functions);
  result.entry = reinterpret_cast<llvm::Entry>(result.code->entry());
  result.split = stored.split;
  result.arena_bytes = stored.arena_bytes;
  return result;
}

}  // namespace

std::vector<std::byte> pack(const StoredProgram& program) {
  std::vector<std::byte> bytes;
  const auto append = [&bytes](std::span<const std::byte> part) {
    bytes.resize(bytes.size() + part.size());
    std::ranges::copy(part, bytes.end() - std::ptrdiff_t(part.size()));
  };
  const EntryHeader header{program.arena_bytes, program.object.size(), static_cast<std::uint64_t>(program.split),
                           program.functions.size()};
  append(std::as_bytes(std::span(&header, 1)));
  append(program.object);
  for (const CalledFunction& each : program.functions) {
    const FunctionHeader of_function{each.name.size(), each.object.size()};
    append(std::as_bytes(std::span(&of_function, 1)));
    append(std::as_bytes(std::span(each.name)));
    append(each.object);
  }
  return bytes;
}

std::optional<StoredProgram> unpack(std::span<const std::byte> bytes) {
  const auto take = [&bytes](std::uint64_t count) -> std::optional<std::span<const std::byte>> {
    if (count > bytes.size()) return std::nullopt;
    const auto part = bytes.first(static_cast<std::size_t>(count));
    bytes = bytes.subspan(part.size());
    return part;
  };
  EntryHeader header;
  const auto first = take(sizeof header);
  if (!first) return std::nullopt;
  std::memcpy(&header, first->data(), sizeof header);
  const auto object = take(header.object_bytes);
  if (!object || header.split > static_cast<std::uint64_t>(llvm::Split::groups)) return std::nullopt;
  StoredProgram result{static_cast<llvm::Split>(header.split), header.arena_bytes, *object, {}};
  for (std::uint64_t k = 0; k < header.functions; ++k) {
    FunctionHeader of_function;
    const auto sizes = take(sizeof of_function);
    if (!sizes) return std::nullopt;
    std::memcpy(&of_function, sizes->data(), sizeof of_function);
    const auto name = take(of_function.name_bytes), code = take(of_function.object_bytes);
    if (!name || !code) return std::nullopt;
    result.functions.push_back({{reinterpret_cast<const char*>(name->data()), name->size()}, *code});
  }
  if (!bytes.empty()) return std::nullopt;
  return result;
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
      noted_path_(toolchain.path),
      processor_(choose_processor(toolchain.host, request_)),
      key_(key_of(toolchain, processor_)),
      compiler_(compiler) {}

std::unique_ptr<Programs> Programs::open(std::string* why) {
  return open(DiskCache::from_environment(DiskCache::Holds::code), why);
}

std::unique_ptr<Programs> Programs::open(DiskCache cache, std::string* why) {
  if (!platform::allows_code(why)) return nullptr;
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
  Compiler* found = nullptr;
  // The library of the note, although there may be a newer one by now: the device has said that it is this one.
  if (request_.library.empty()) try {
      Request noted = request_;
      noted.library = noted_path_;
      found = Compiler::find(noted, &why);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::invalid_argument) throw;
    }
  if (!found) found = Compiler::find(request_, &why);
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
    const std::vector<std::byte> object = compiler.compile(code.own);
    StoredProgram stored{code.split, code.arena_bytes, object, {}};
    std::vector<std::shared_ptr<const std::vector<std::byte>>> functions;
    for (const llvm::FunctionModule& each : code.functions) {
      functions.push_back(function(compiler, each, key_of(compiler.toolchain(), processor_)));
      stored.functions.push_back({each.name, *functions.back()});
    }
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

// The sine takes as long to compile as a hundred other operations.
std::shared_ptr<const std::vector<std::byte>> Programs::function(const Compiler& compiler,
                                                                 const llvm::FunctionModule& function,
                                                                 const std::string& key) {
  const std::string cache_key = fmt::format("native-function:{}:{}", function.name, key);
  const std::lock_guard lock(functions_mutex_);
  auto& known = functions_[cache_key];
  if (known) return known;
  if (auto bytes = cache_.get(cache_key)) try {
      (void)Object(*bytes, function.name);
      return known = std::make_shared<const std::vector<std::byte>>(*std::move(bytes));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::io) throw;
      rejected_.fetch_add(1);
    }
  std::vector<std::byte> object = compiler.compile(function.text);
  cache_.put(cache_key, object);
  return known = std::make_shared<const std::vector<std::byte>>(std::move(object));
}

CompileStats Programs::stats() const {
  CompileStats result;
  result.emitted = emitted_.load();
  result.loaded = loaded_.load();
  result.rejected = rejected_.load() + cache_.rejected();
  return result;
}

}  // namespace weft::backend::native
