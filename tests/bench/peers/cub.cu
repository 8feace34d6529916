// CUB's sort and scan, for comparison with the suite of algorithms on NVIDIA's devices.
//
// Usage: cub SORTED IN_A_ROW SCANNED ROUNDS FILE. Writes five medians in seconds to the file: a sort of uint32 keys,
// and of pairs of a random uint32 key and a uint32 value; one of IN_A_ROW such sorts, each of its own elements, that
// the device is given one after another; a scan of uint32 elements. The host's clock measures them, from the first call
// until the device is done. Writes no file if there is no CUDA device; exits with status 1 after a failure.
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

// Allocates memory of the device, which stays until the program ends.
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

// Calls f(scratch, bytes) in CUB's way: first for the size of the memory to work in, which is not timed.
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

// Sorts in a row, each of its own copy of the same elements. Sorts of a kind share scratch memory, because one has
// ended when the next begins.
struct Sorts {
  Sorts(const std::vector<U32>& host, const std::vector<U32>& numbers, int n, int in_a_row)
      : n(n), source(allocate<U32>(n)), values0(allocate<U32>(n)) {
    copy(source, host.data(), n);
    copy(values0, numbers.data(), n);
    for (int k = 0; k < in_a_row; ++k) {
      keys.push_back({allocate<U32>(n), allocate<U32>(n)});
      values.push_back({allocate<U32>(n), allocate<U32>(n)});
    }
    sort_pairs = with_scratch([this](void* s, std::size_t& b) {
      return cub::DeviceRadixSort::SortPairs(s, b, keys[now], values[now], this->n);
    });
    sort_keys = with_scratch(
        [this](void* s, std::size_t& b) { return cub::DeviceRadixSort::SortKeys(s, b, keys[now], this->n); });
  }

  // Seconds of one sort of `count` in a row.
  double seconds(int count, int rounds) {
    const auto prepare = [&] {
      for (int k = 0; k < count; ++k) {
        copy(keys[k].Current(), source, n);
        copy(values[k].Current(), values0, n);
      }
    };
    const auto work = [&] {
      for (now = 0; now < std::size_t(count); ++now) (pairs ? sort_pairs : sort_keys)();
      now = 0;
    };
    return median(rounds, prepare, work) / count;
  }

  const int n;
  U32 *const source, *const values0;
  std::vector<cub::DoubleBuffer<U32>> keys, values;
  bool pairs = true;
  std::size_t now = 0;
  // Each kind has scratch memory of its own, because the kind that needs more depends on the GPU.
  std::function<void()> sort_pairs, sort_keys;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 1;
  const int sorted = std::atoi(argv[1]), in_a_row = std::atoi(argv[2]), scanned = std::atoi(argv[3]),
            rounds = std::atoi(argv[4]);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 0;
  std::mt19937 random(1);
  std::vector<U32> host(std::max(sorted, scanned)), numbers(host.size()), found(host.size());
  for (U32& v : host) v = U32(random());
  std::iota(numbers.begin(), numbers.end(), 0u);

  std::vector<U32> expected(host.begin(), host.begin() + sorted);
  std::sort(expected.begin(), expected.end());
  double sort_seconds[4];
  {
    Sorts sorts(host, numbers, sorted, in_a_row);
    double* next = sort_seconds;
    for (const int count : {1, in_a_row})
      for (const bool pairs : {false, true}) {
        sorts.pairs = pairs;
        *next++ = sorts.seconds(count, rounds);
        for (int k = 0; k < count; ++k) {
          copy(found.data(), sorts.keys[k].Current(), sorted);
          require(std::equal(expected.begin(), expected.end(), found.begin()), "the keys are not sorted");
          copy(found.data(), sorts.values[k].Current(), sorted);
          for (int i = 0; pairs && i < sorted; ++i)
            require(host[found[i]] == expected[i], "a value is not that of its key");
        }
      }
  }

  U32 *const source = allocate<U32>(scanned), *const out = allocate<U32>(scanned);
  copy(source, host.data(), scanned);
  const double scan_seconds = median(
      rounds, [] {},
      with_scratch([&](void* s, std::size_t& b) { return cub::DeviceScan::ExclusiveSum(s, b, source, out, scanned); }));
  copy(found.data(), out, scanned);
  U32 sum = 0;
  for (int k = 0; k < scanned; sum += host[k], ++k) require(found[k] == sum, "a sum is wrong");

  std::FILE* const file = std::fopen(argv[5], "w");
  if (!file) return 1;
  for (const double seconds : sort_seconds) std::fprintf(file, "%.9g ", seconds);
  std::fprintf(file, "%.9g\n", scan_seconds);
  return std::fclose(file) == 0 ? 0 : 1;
}
