// The C interface of the loader: reads exported kernels and fills their argument blocks.
#include "loader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include "../frontend/support/error.h"
#include "../runtime/reflection.h"

struct weft_kernel {
  weft::Reflection reflection;
  std::vector<std::uint32_t> words;
};

namespace {

using weft::ReflectedArgument;
using weft::Reflection;
using Role = ReflectedArgument::Role;

static_assert(WEFT_FAILURES == int(Role::failures) && WEFT_GRADIENT == int(Role::gradient), "roles are in one order");

thread_local std::string last_error;

/// A status and a message, thrown to the end of a call.
struct Failure {
  weft_loader_status status;
  std::string message;
};
[[noreturn]] void invalid(std::string message) { throw Failure{WEFT_LOADER_INVALID_ARGUMENT, std::move(message)}; }

// A function of C may return only a status and leave words, so every exception ends here.
template <class F>
weft_loader_status guarded(F f) {
  try {
    try {
      f();
      return WEFT_LOADER_OK;
    } catch (const Failure& e) {
      last_error = e.message;
      return e.status;
    } catch (const weft::Error& e) {
      last_error = e.message();
      return WEFT_LOADER_BAD_KERNEL;
    } catch (const std::filesystem::filesystem_error& e) {
      last_error = e.what();
      return WEFT_LOADER_IO;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::length_error&) {
      throw;
    } catch (const std::exception& e) {
      last_error = e.what();
      return WEFT_LOADER_BAD_KERNEL;
    }
  } catch (...) {
    last_error = "out of memory";  // short enough to need no memory
    return WEFT_LOADER_OUT_OF_MEMORY;
  }
}

template <class T>
T& given(T* pointer, const char* name) {
  if (!pointer) invalid(std::string(name) + " is null");
  return *pointer;
}

std::string read_file(const std::filesystem::path& path) {
  const auto fail = [&] { throw Failure{WEFT_LOADER_IO, path.string() + " cannot be read"}; };
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) fail();  // opening a pipe would wait for its writer
  std::ifstream file(path, std::ios::binary);
  if (!file) fail();
  std::string content;
  char part[16384];
  // Functions of the stream report failures by its state; iterators over its buffer would throw.
  do {
    file.read(part, sizeof part);
    content.append(part, std::size_t(file.gcount()));
  } while (file);
  if (file.bad()) fail();
  return content;
}

weft_kernel* make_kernel(const std::string& json, const void* spirv, std::size_t bytes) {
  auto kernel = std::make_unique<weft_kernel>();
  kernel->reflection = weft::reflection_from_json(json);
  const Reflection& r = kernel->reflection;
  kernel->words.resize(bytes / 4);
  if (!kernel->words.empty()) std::memcpy(kernel->words.data(), spirv, kernel->words.size() * 4);
  if (bytes != r.spirv_bytes || bytes % 4 || weft::detail::hash_of_words(kernel->words) != r.spirv_hash)
    throw Failure{WEFT_LOADER_BAD_KERNEL, "the SPIR-V is not the module that the JSON of kernel \"" + r.name +
                                              "\" describes: they were exported at different times, or one is damaged"};
  return kernel.release();
}

// The -1 that weft_kernel_find() returns for an unknown name, as calls that are handed it see it.
constexpr auto kNotFound = std::uint32_t(-1);

std::string names_of(const Reflection& r) {
  std::string names;
  for (const ReflectedArgument& a : r.arguments) names += (names.empty() ? "\"" : ", \"") + a.name + '"';
  return names.empty() ? "none" : names;
}

const ReflectedArgument& argument_of(const weft_kernel* kernel, std::uint32_t index) {
  const Reflection& r = given(kernel, "kernel").reflection;
  if (index == kNotFound) invalid("kernel \"" + r.name + "\" has no argument of that name; it has " + names_of(r));
  if (index >= r.arguments.size())
    invalid("kernel \"" + r.name + "\" has " + std::to_string(r.arguments.size()) + " arguments, and number " +
            std::to_string(index) + " is asked for");
  return r.arguments[index];
}

template <class T>
void put(void* block, std::uint32_t offset, T value) {
  std::memcpy(static_cast<std::byte*>(block) + offset, &value, sizeof value);
}

// Rows are as even as possible, so that the last one has few idle workgroups.
weft_groups groups_of(const Reflection& r, std::int64_t threads, std::uint32_t most) {
  if (most == 0) invalid("max_groups_x is 0");
  const std::uint64_t groups = (std::uint64_t(threads) + r.block - 1) / r.block;
  const std::uint64_t rows = (groups + most - 1) / most;
  if (rows == 0) return {0, 1, 1};
  return {std::uint32_t((groups + rows - 1) / rows), std::uint32_t(rows), 1};
}

void check_whole(const Reflection& r, std::int64_t threads) {
  if (r.whole_groups && threads % r.block != 0)
    invalid("the threads of kernel \"" + r.name + "\" work together in workgroups of " + std::to_string(r.block) +
            ", and " + std::to_string(threads) + " is no multiple of that");
}

// Kernels find coordinates by multiplication: x / d == mul_hi(2 x, multiplier) >> shift for all x below 2^31.
void put_extent(void* block, std::uint32_t offset, std::uint32_t d) {
  const int shift = std::bit_width(d - 1);
  put(block, offset, d);
  put(block, offset + 4, std::uint32_t(((1ull << (31 + shift)) + d - 1) / d));
  put(block, offset + 8, std::uint32_t(shift));
}

void set_array(const ReflectedArgument& a, void* block, std::uint64_t address, const std::int64_t* shape,
               const std::int64_t* strides) {
  const auto refuse = [&](const std::string& what) { invalid("argument \"" + a.name + "\": " + what); };
  if (!a.is_array()) refuse("it is a value");
  if (address % a.alignment) refuse("its address is no multiple of " + std::to_string(a.alignment));
  bool any = true;
  std::int64_t tight[4], expected = a.element_bytes;
  for (std::uint32_t k = a.dimensions; k-- > 0;) {
    if (shape[k] < 0) refuse("a size is negative");
    if (!a.strided && shape[k] > weft::detail::kMaxThreads)
      refuse("a size is 2^31 or more; only strided arrays can be so large");
    tight[k] = expected;
    any = any && shape[k] > 0;
    if (shape[k] > 0 && expected > INT64_MAX / shape[k]) refuse("it is larger than any memory");
    expected *= shape[k] > 0 ? shape[k] : 1;
  }
  if (any && address == 0) refuse("its address is null, and it has elements");
  for (std::uint32_t k = 0; strides && k < a.dimensions; ++k) {
    if (!a.strided && shape[k] != 1 && strides[k] != tight[k])
      refuse("it was exported for elements that lie side by side, and has strides");
    if (strides[k] < 0 || strides[k] % a.alignment)
      refuse("stride " + std::to_string(strides[k]) + " is negative or no multiple of " + std::to_string(a.alignment));
  }
  put(block, a.address_offset(), address);
  for (std::uint32_t k = 0; k < a.dimensions; ++k) {
    if (!a.strided) {
      put(block, a.shape_offset() + 4 * k, std::int32_t(shape[k]));
      continue;
    }
    put(block, a.shape_offset() + 8 * k, shape[k]);
    put(block, a.strides_offset() + 8 * k, strides ? strides[k] : tight[k]);
  }
}

}  // namespace

const char* weft_loader_error(void) { return last_error.c_str(); }

weft_loader_status weft_kernel_open(const char* json_path, weft_kernel** kernel) {
  return guarded([&] {
    const std::filesystem::path path = &given(json_path, "json_path");
    given(kernel, "kernel") = nullptr;
    const std::string json = read_file(path);
    const std::string spirv = read_file(std::filesystem::path(path).replace_extension(".spv"));
    *kernel = make_kernel(json, spirv.data(), spirv.size());
  });
}

weft_loader_status weft_kernel_read(const char* json, size_t json_bytes, const void* spirv, size_t spirv_bytes,
                                    weft_kernel** kernel) {
  return guarded([&] {
    given(json, "json");
    if (!spirv && spirv_bytes) invalid("spirv is null");
    given(kernel, "kernel") = nullptr;
    if (json_bytes > std::string().max_size()) throw std::bad_alloc();  // no memory is as large
    *kernel = make_kernel({json, json_bytes}, spirv, spirv_bytes);
  });
}

void weft_kernel_close(weft_kernel* kernel) { delete kernel; }

weft_loader_status weft_kernel_describe(const weft_kernel* kernel, weft_kernel_info* info) {
  return guarded([&] {
    const Reflection& r = given(kernel, "kernel").reflection;
    given(info, "info") = {r.name.c_str(),
                           r.entry_point.c_str(),
                           kernel->words.data(),
                           kernel->words.size(),
                           r.adjoint,
                           r.block,
                           r.args_bytes,
                           r.by_address,
                           r.push_bytes(),
                           r.dimensions,
                           r.whole_groups,
                           r.shared_bytes,
                           r.subgroup_size,
                           std::uint32_t(r.arguments.size())};
  });
}

weft_loader_status weft_kernel_argument(const weft_kernel* kernel, uint32_t index, weft_argument* out) {
  return guarded([&] {
    const ReflectedArgument& a = argument_of(kernel, index);
    given(out, "out") = {a.name.c_str(), a.type.c_str(), weft_argument_role(a.role),
                         a.of,           a.offset,       a.bytes,
                         a.dimensions,   a.strided,      a.element_bytes,
                         a.alignment,    a.reads,        a.writes,
                         a.restored,     a.unit,         a.bytes_per_thread};
  });
}

int32_t weft_kernel_find(const weft_kernel* kernel, const char* name) {
  std::int32_t found = -1;
  guarded([&] {
    const Reflection& r = given(kernel, "kernel").reflection;
    given(name, "name");
    for (std::size_t k = 0; k < r.arguments.size(); ++k)
      if (r.arguments[k].name == name) return void(found = std::int32_t(k));
    invalid("kernel \"" + r.name + "\" has no argument \"" + name + "\"; it has " + names_of(r));
  });
  return found;
}

const char* weft_kernel_requirement(const weft_kernel* kernel, weft_requirement which, uint32_t index) {
  if (!kernel) return nullptr;
  const Reflection& r = kernel->reflection;
  const std::vector<std::string>* const lists[] = {&r.features, &r.device_extensions, &r.properties, &r.capabilities,
                                                   &r.spirv_extensions};
  if (which < 0 || std::size_t(which) >= std::size(lists)) return nullptr;
  return index < lists[which]->size() ? (*lists[which])[index].c_str() : nullptr;
}

weft_loader_status weft_block_clear(const weft_kernel* kernel, void* block) {
  return guarded([&] {
    if (!block) invalid("block is null");
    std::memset(block, 0, given(kernel, "kernel").reflection.args_bytes);
  });
}

weft_loader_status weft_block_set_value(const weft_kernel* kernel, void* block, uint32_t argument, const void* value,
                                        size_t bytes) {
  return guarded([&] {
    const ReflectedArgument& a = argument_of(kernel, argument);
    if (!block || !value) invalid("block or value is null");
    if (a.is_array()) invalid("argument \"" + a.name + "\": it is an array");
    if (bytes != a.bytes)
      invalid("argument \"" + a.name + "\": " + std::to_string(bytes) + " bytes are given; " + a.type + " has " +
              std::to_string(a.bytes));
    std::memcpy(static_cast<std::byte*>(block) + a.offset, value, bytes);
  });
}

weft_loader_status weft_block_set_array(const weft_kernel* kernel, void* block, uint32_t argument, uint64_t address,
                                        const int64_t* shape, const int64_t* strides) {
  return guarded([&] {
    const ReflectedArgument& a = argument_of(kernel, argument);
    if (!block || !shape) invalid("block or shape is null");
    set_array(a, block, address, shape, strides);
  });
}

weft_loader_status weft_block_set_threads(const weft_kernel* kernel, void* block, const int64_t* extents, uint32_t rank,
                                          uint32_t max_groups_x, weft_groups* groups) {
  return guarded([&] {
    const Reflection& r = given(kernel, "kernel").reflection;
    if (!block) invalid("block is null");
    given(extents, "extents");
    if (rank < 1 || rank > 4 || (r.dimensions && rank != r.dimensions))
      invalid("kernel \"" + r.name + "\" is launched over " +
              (r.dimensions ? std::to_string(r.dimensions) : std::string("1 to 4")) + " dimensions, and " +
              std::to_string(rank) + " are given");
    std::int64_t threads = 1;
    for (std::uint32_t k = 0; k < rank; ++k) {
      if (extents[k] < 0) invalid("an extent of the launch is negative");
      if (extents[k] > weft::detail::kMaxThreads) invalid("a launch has less than 2^31 threads");
      threads *= extents[k];
      if (threads > weft::detail::kMaxThreads) invalid("a launch has less than 2^31 threads");
    }
    check_whole(r, threads);
    given(groups, "groups") = groups_of(r, threads, max_groups_x);
    put(block, 0, std::uint32_t(threads));
    for (std::uint32_t k = 1; k < r.dimensions; ++k)
      put_extent(block, r.extents_offset + 12 * (k - 1), std::max<std::uint32_t>(std::uint32_t(extents[k]), 1));
  });
}

weft_loader_status weft_block_set_part(const weft_kernel* kernel, void* block, uint32_t first, uint32_t count,
                                       uint32_t max_groups_x, weft_groups* groups) {
  return guarded([&] {
    const Reflection& r = given(kernel, "kernel").reflection;
    if (!block) invalid("block is null");
    if (std::int64_t(first) + count > weft::detail::kMaxThreads) invalid("a launch has less than 2^31 threads");
    check_whole(r, count);
    const ReflectedArgument* number = nullptr;
    for (const ReflectedArgument& a : r.arguments)
      if (a.role == Role::first_thread) number = &a;
    if (!number && first != 0)
      invalid("kernel \"" + r.name + "\" cannot be launched in parts: it has no argument for that");
    given(groups, "groups") = groups_of(r, count, max_groups_x);
    put(block, 0, count);
    if (number) put(block, number->offset, first);
  });
}
