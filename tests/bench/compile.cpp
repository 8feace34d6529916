// Suite compile: what it costs until a kernel can run, first without and then with the driver's compiler.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "../../backends/disk_cache.h"
#include "../../backends/vulkan/program.h"
#include "../../spirv/emit.h"
#include "harness.h"
#include "large_kernel.h"

namespace weft::bench {

namespace {

constexpr std::size_t kOperations = 1000;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A folder that is removed at the end of the object.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("weft_bench_{:08x}", std::random_device()())) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

constexpr KernelSize kSize;
ir::Module traced() { return traced_large_kernel(kSize, kOperations); }

void trace_and_emit(Run& run) {
  const std::vector<std::uint32_t> words = spirv::emit(traced(), spirv::Target::everything());
  if (const std::string wrong = spirv::validate(words); !wrong.empty()) throw std::runtime_error(wrong);
  const Timing t = cost(
      "trace and emit",
      [] {
        const auto start = Clock::now();
        const ir::Module module = large_kernel(kSize).trace();
        benchmark::DoNotOptimize(ir::hash(module).lo);
        benchmark::DoNotOptimize(spirv::emit(module, spirv::Target::everything()).size());
        return since(start);
      },
      run.rounds());
  run.budget(t, 5e-3, "ms");
}

// Times what Device::compile() does when the cache has the kernel, except the creation of the pipeline: making the key,
// reading and checking the entry, copying the words. After the first time the system holds the file in memory.
void load_from_cache(Run& run) {
  const TemporaryFolder folder;
  backend::DiskCache cache(folder.path());
  const ir::Module module = traced();
  const detail::Hash128 hash = ir::hash(module);
  const spirv::Target target = spirv::Target::everything();
  const std::string device_key = run.device().native().info().cache_key;
  const std::vector<std::uint32_t> words = spirv::emit(module, target);
  cache.put(backend::vulkan::spirv_key(hash, device_key, target, false), std::as_bytes(std::span(words)));
  auto load = [&] {
    std::vector<std::uint32_t> loaded;
    if (const auto stored = cache.get(backend::vulkan::spirv_key(hash, device_key, target, false))) {
      loaded.resize(stored->size() / 4);
      std::memcpy(loaded.data(), stored->data(), loaded.size() * 4);
    }
    return loaded;
  };
  if (load() != words) throw std::runtime_error("the cache does not give back what was put into it");
  const Timing t = cost(
      "load from cache",
      [&] {
        const auto start = Clock::now();
        benchmark::DoNotOptimize(load().size());
        return since(start);
      },
      run.rounds());
  run.budget(t, 1e-3, "ms");
}

// Times a first use from trace to result: trace, clean up, emit, the driver's compiler, one launch. A constant makes
// the kernel another one each time, so that no cache has it.
void first_use(Run& run) {
  constexpr std::int64_t n = 1000;
  const Device& device = run.device();
  Array<mat33> a = full<mat33>(device, n, mat33(1, 2, 3, 4, 5, 6, 7, 8, 10));
  Array<mat33> u = zeros<mat33>(device, n), v = zeros<mat33>(device, n);
  Array<vec3> sigma = zeros<vec3>(device, n);
  std::mt19937 random{std::random_device()()};
  auto once = [&] {
    const float scale = std::uniform_real_distribution<float>(1, 2)(random);
    u.fill(mat33()), v.fill(mat33()), sigma.fill(vec3());
    (void)sigma.to_vector();
    const auto start = Clock::now();
    auto k = kernel("svd3", [=](Arr<const mat33> a, Arr<mat33> u, Arr<vec3> sigma, Arr<mat33> v) {
      Int i = tid();
      svd3(a[i] * scale, u[i], sigma[i], v[i]);
    });
    launch(k, n, a, u, sigma, v);
    const vec3 got = sigma.to_vector()[std::size_t(n - 1)];
    const double seconds = since(start);
    if (!(std::abs(got.x - 17.412506f * scale) < 1e-3f)) throw std::runtime_error("svd3 gives wrong values");
    return seconds;
  };
  std::vector<double> samples;
  for (int i = 0; i < 5; ++i) samples.push_back(once());
  run.budget(summarise(std::move(samples)), 1, "s", true);
}

void compile_file(Run& run) {
  const TemporaryFolder folder;
  const std::filesystem::path source = folder.path() / "one_kernel.cpp", object = folder.path() / "one_kernel.o";
  std::ofstream(source) << R"(#include <weft/weft.h>
using namespace weft;
int main() {
  auto scale = kernel("scale", [](Arr<float> x, Float factor) {
    Int i = tid();
    x[i] *= factor;
  });
  Array<float> x = full<float>(Device::best(), 1000, 1);
  launch(scale, 1000, x, 2);
  return x.at(0) == 2 ? 0 : 1;
}
)";
  const std::string command = fmt::format("\"{}\" -std=c++20 -O0 -I\"{}\" -c \"{}\" -o \"{}\"", WEFT_CXX_COMPILER,
                                          WEFT_INCLUDE_DIR, source.string(), object.string());
  auto once = [&] {
    const auto start = Clock::now();
    if (std::system(command.c_str()) != 0) throw std::runtime_error("the compiler fails: " + command);
    return since(start);
  };
  once();  // brings the headers into the system's memory
  std::vector<double> samples;
  for (int i = 0; i < 3; ++i) samples.push_back(once());
  run.budget(summarise(std::move(samples)), 2, "s");
}

}  // namespace

void add_compile(Harness& harness) {
  harness.add("compile", "trace and emit 1000 operations", trace_and_emit);
  harness.add("compile", "load 1000 operations from disk", load_from_cache);
  harness.add("compile", "first use of svd3", first_use);
  harness.add("compile", "compile a file at -O0", compile_file);
}

}  // namespace weft::bench
