// CUB's sort and scan: what the suite of algorithms is compared with on NVIDIA's devices.
//
// Usage: cub SORTED SCANNED ROUNDS FILE. Writes "keys pairs scan" to the file: medians in seconds, of uint32 keys, of
// pairs of a random uint32 key and a uint32 value, and of uint32 elements, by the host's clock from the call until the
// device is done. Writes no file where there is no CUDA device; exits with status 1 where something fails or is wrong.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace {

using U32 = std::uint32_t;

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

// Memory of the device, until the program ends.
template <class T>
T* allocate(std::size_t n) {
  T* p = nullptr;
  check(cudaMalloc(&p, n * sizeof(T)), "cudaMalloc");
  return p;
}
void copy(void* to, const void* from, std::size_t n) {
  check(cudaMemcpy(to, from, n * sizeof(U32), cudaMemcpyDefault), "cudaMemcpy");
}

double median(int rounds, const std::function<void()>& prepare, const std::function<void()>& work) {
  std::vector<double> samples;
  for (int round = -1; round < rounds; ++round) {
    prepare();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto start = std::chrono::steady_clock::now();
    work();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (round >= 0) samples.push_back(took.count());
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

// Calls f(scratch, bytes) as CUB wants it: for the size of the memory to work in first, which is not timed afterwards.
template <class F>
std::function<void()> with_scratch(F f) {
  std::size_t bytes = 0;
  check(f(nullptr, bytes), "the size of scratch memory");
  void* const scratch = allocate<char>(bytes);
  return [=]() mutable { check(f(scratch, bytes), "the algorithm"); };
}

void require(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 1;
  const int sorted = std::atoi(argv[1]), scanned = std::atoi(argv[2]), rounds = std::atoi(argv[3]);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 0;
  std::mt19937 random(1);
  std::vector<U32> host(std::max(sorted, scanned)), numbers(host.size()), found(host.size());
  for (U32& v : host) v = U32(random());
  std::iota(numbers.begin(), numbers.end(), 0u);

  const std::size_t n = host.size();
  U32 *source = allocate<U32>(n), *values0 = allocate<U32>(n), *out = allocate<U32>(n);
  cub::DoubleBuffer<U32> keys(allocate<U32>(n), allocate<U32>(n)), values(allocate<U32>(n), allocate<U32>(n));
  copy(source, host.data(), n);
  copy(values0, numbers.data(), n);
  const auto prepare = [&] {
    copy(keys.Current(), source, sorted);
    copy(values.Current(), values0, sorted);
  };

  std::vector<U32> expected(host.begin(), host.begin() + sorted);
  std::sort(expected.begin(), expected.end());
  const auto sorts = [&](double& seconds, const std::function<void()>& sort, const char* what) {
    seconds = median(rounds, prepare, sort);
    copy(found.data(), keys.Current(), sorted);
    require(std::equal(expected.begin(), expected.end(), found.begin()), what);
  };
  double key_seconds = 0, pair_seconds = 0;
  sorts(key_seconds,
        with_scratch([&](void* s, std::size_t& b) { return cub::DeviceRadixSort::SortKeys(s, b, keys, sorted); }),
        "the keys are not sorted");
  sorts(pair_seconds, with_scratch([&](void* s, std::size_t& b) {
          return cub::DeviceRadixSort::SortPairs(s, b, keys, values, sorted);
        }),
        "the keys of pairs are not sorted");
  copy(found.data(), values.Current(), sorted);
  for (int k = 0; k < sorted; ++k) require(host[found[k]] == expected[k], "a value is not that of its key");

  const double scan_seconds = median(
      rounds, [] {},
      with_scratch([&](void* s, std::size_t& b) { return cub::DeviceScan::ExclusiveSum(s, b, source, out, scanned); }));
  copy(found.data(), out, scanned);
  U32 sum = 0;
  for (int k = 0; k < scanned; sum += host[k], ++k) require(found[k] == sum, "a sum is wrong");

  std::FILE* const file = std::fopen(argv[4], "w");
  if (!file) return 1;
  std::fprintf(file, "%.9g %.9g %.9g\n", key_seconds, pair_seconds, scan_seconds);
  return std::fclose(file) == 0 ? 0 : 1;
}
