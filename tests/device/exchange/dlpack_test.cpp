// DLPack: memory that is shared in both directions, its release by either side, and each tensor that is refused.
#include <weft/runtime/dlpack.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "../../../backends/backend.h"
#include "../../../runtime/exchange/dlpack_abi.h"
#include "../watched_test.h"
#include "dlpack_foreign.h"

using namespace weft;
using namespace weft::test;

namespace {

WATCHED_TEST(Dlpack);

bool shares_memory(const Device& device) { return device.native().info().host_visible; }

TEST_P(Dlpack, GivesTheMemoryItself) {
  if (!shares_memory(device())) GTEST_SKIP() << "memory of its own";
  Array<float> x = zeros<float>(device(), 8);
  launch(add_one(), 8, x);
  DLManagedTensorVersioned* tensor = to_dlpack(x);
  EXPECT_EQ(tensor->version.major, 1u);
  EXPECT_EQ(tensor->flags, 0u);
  const DLTensor& t = tensor->dl_tensor;
  EXPECT_EQ(t.device.device_type, kDLCPU);
  ASSERT_EQ(t.ndim, 1);
  EXPECT_EQ(t.shape[0], 8);
  EXPECT_EQ(t.strides[0], 1);
  EXPECT_EQ(t.byte_offset, 0u);
  EXPECT_TRUE(t.dtype.code == kDLFloat && t.dtype.bits == 32 && t.dtype.lanes == 1);
  float* data = static_cast<float*>(t.data);
  EXPECT_EQ(data[3], 1) << "what was launched has run";
  data[3] = 10;
  launch(add_one(), 8, x);
  x.wait();
  EXPECT_EQ(data[3], 11);
  tensor->deleter(tensor);
  EXPECT_EQ(x.at(3), 11);
}

TEST_P(Dlpack, KeepsTheMemoryForWhomItGaveIt) {
  if (!shares_memory(device())) GTEST_SKIP() << "memory of its own";
  DLManagedTensor* old = nullptr;
  DLManagedTensorVersioned* versioned = nullptr;
  {
    const Device other = Device::open(device().name());
    Array<int> x(other, {1, 2, 3});
    old = to_dlpack_unversioned(x);
    versioned = to_dlpack(x.slice(1));
  }
  // The array is gone, and so are all handles of its device.
  EXPECT_EQ(static_cast<int*>(old->dl_tensor.data)[2], 3);
  old->deleter(old);
  EXPECT_EQ(static_cast<int*>(versioned->dl_tensor.data)[1], 3);
  std::thread([&] { versioned->deleter(versioned); }).join();
}

TEST_P(Dlpack, DescribesShapesStridesAndTypes) {
  if (!shares_memory(device())) GTEST_SKIP() << "memory of its own";
  const auto described = [&](auto array, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, int code,
                             int bits) {
    DLManagedTensor* tensor = to_dlpack_unversioned(array);
    const DLTensor& t = tensor->dl_tensor;
    EXPECT_EQ(std::vector<std::int64_t>(t.shape, t.shape + t.ndim), shape);
    EXPECT_EQ(std::vector<std::int64_t>(t.strides, t.strides + t.ndim), strides);
    EXPECT_EQ(int(t.dtype.code), code);
    EXPECT_EQ(int(t.dtype.bits), bits);
    tensor->deleter(tensor);
  };
  described(zeros<std::int8_t, 2>(device(), {3, 5}), {3, 5}, {5, 1}, kDLInt, 8);
  described(zeros<std::uint16_t>(device(), 4), {4}, {1}, kDLUInt, 16);
  described(zeros<std::int64_t, 4>(device(), {1, 2, 3, 4}), {1, 2, 3, 4}, {24, 12, 4, 1}, kDLInt, 64);
  described(zeros<half>(device(), 4), {4}, {1}, kDLFloat, 16);
  described(zeros<double>(device(), 4), {4}, {1}, kDLFloat, 64);
  described(zeros<bool>(device(), 4), {4}, {1}, 6, 8);
  described(zeros<vec3>(device(), 4), {4, 3}, {3, 1}, kDLFloat, 32);
  described(zeros<mat<2, 3, float>, 2>(device(), {4, 5}), {4, 5, 2, 3}, {30, 6, 3, 1}, kDLFloat, 32);
  described(zeros<quat>(device(), 0), {0, 4}, {4, 1}, kDLFloat, 32);
  described(zeros<transform>(device(), 2), {2, 7}, {7, 1}, kDLFloat, 32);
  described(zeros<vec3, 2>(device(), {4, 6}).transpose().slice(0, 6, 2), {3, 4, 3}, {6, 18, 1}, kDLFloat, 32);
}

TEST_P(Dlpack, CopiesWhenAskedTo) {
  Array<vec3, 2> x(device(), {2, 2}, std::vector<vec3>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}});
  DLManagedTensorVersioned* tensor = to_dlpack(x.transpose(), {.copy = true});
  EXPECT_EQ(tensor->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
  x.zero();
  const float* data = static_cast<float*>(tensor->dl_tensor.data);
  EXPECT_EQ(std::vector<float>(data, data + 12), (std::vector<float>{1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12}));
  EXPECT_EQ(tensor->dl_tensor.strides[0], 6);

  auto back = from_dlpack<vec3, 2>(device(), tensor, {.copy = true});
  EXPECT_EQ(back.flatten().to_vector(), (std::vector<vec3>{{1, 2, 3}, {7, 8, 9}, {4, 5, 6}, {10, 11, 12}}));
  int deleted = 0;
  DLManagedTensor* lasting = Old::make({4}, deleted);
  auto* const deleter = std::exchange(lasting->deleter, nullptr);
  EXPECT_EQ(from_dlpack<float>(device(), lasting, {.copy = true}).at(3), 3);
  deleter(lasting);
  EXPECT_EQ(from_dlpack<float>(device(), Old::make({5}, deleted), {.copy = true}).size(), 5);
  EXPECT_EQ(deleted, 2) << "before the array is gone";
}

TEST_P(Dlpack, TakesTheMemoryItself) {
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  const auto check = [&](auto* tensor, int& deleted) {
    float* const data = static_cast<float*>(tensor->dl_tensor.data);
    auto x = from_dlpack<float>(device(), tensor);
    Array<float> part = x.slice(2, 5);
    launch(add_one(), 8, x);
    x.wait();
    EXPECT_EQ(data[3], 4);
    x = {};
    EXPECT_EQ(deleted, 0) << "a view is left";
    launch(add_one(), 3, part);
    part = {};
    EXPECT_EQ(deleted, 1);
  };
  int deleted = 0;
  check(Old::make({8}, deleted), deleted);
  deleted = 0;
  check(New::make({8}, deleted), deleted);
}

// NumPy gives arrays that begin at any element of any allocation.
TEST_P(Dlpack, TakesMemoryOfAnyAlignment) {
  if (!device().native().info().wraps_bytes) GTEST_SKIP() << "it begins at multiples of four bytes";
  int deleted = 0, made = 0;
  const auto check = [&]<class T>(T, int code, std::size_t off, std::int64_t count) {
    DLManagedTensor* const tensor = Old::make({count}, deleted);
    ++made;
    DLTensor& t = tensor->dl_tensor;
    auto* const bytes = static_cast<std::byte*>(t.data);
    std::memset(bytes, 0x11, 256);
    t.dtype = {std::uint8_t(code), std::uint8_t(8 * sizeof(T)), 1};
    t.byte_offset = off;
    const auto x = from_dlpack<T>(device(), tensor);
    launch(kernel("set", [](Arr<T> x) { x[tid()] = T(1); }), count, x);
    x.wait();
    for (std::size_t k = 0; k < 256; ++k) {
      const bool inside = k >= off && k < off + std::size_t(count) * sizeof(T);
      ASSERT_TRUE(inside || bytes[k] == std::byte(0x11)) << off << ", " << count << ": " << k;
    }
    const std::vector<T> expected(std::size_t(count), T(1));
    EXPECT_EQ(std::memcmp(bytes + off, expected.data(), expected.size() * sizeof(T)), 0);
    // What is given on has the alignment that it came with.
    DLManagedTensor* const given = to_dlpack_unversioned(x);
    EXPECT_EQ(static_cast<std::byte*>(given->dl_tensor.data) + given->dl_tensor.byte_offset, bytes + off);
    given->deleter(given);
  };
  for (const std::int64_t count : {1, 3, 17}) {
    for (const std::size_t off : {0, 1, 2, 3, 7, 33}) check(std::uint8_t{}, kDLUInt, off, count);
    for (const std::size_t off : {0, 2, 6, 34}) check(std::int16_t{}, kDLInt, off, count);
    for (const std::size_t off : {0, 4, 12, 36}) check(float{}, kDLFloat, off, count);
    for (const std::size_t off : {0, 8, 24, 40}) check(double{}, kDLFloat, off, count);
  }
  EXPECT_EQ(deleted, made);
}

TEST_P(Dlpack, TakesStridesAndOffsets) {
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  int deleted = 0;
  {
    DLManagedTensor* tensor = Old::make({3, 4}, deleted, {1, 8});  // columns first
    tensor->dl_tensor.byte_offset = 8;
    const auto x = from_dlpack<float, 2>(device(), tensor);
    EXPECT_EQ(x.stride(0), 4);
    EXPECT_EQ(x.at(2, 3), 2 + 2 + 24);
    Array<float> sum = zeros<float>(device(), 1);
    auto add = kernel("add", [](Arr<const float, 2> x, Arr<float> sum) {
      auto [i, j] = tid<2>();
      atomic_add(sum[0], x(i, j));
    });
    launch(add, {3, 4}, x, sum);
    EXPECT_EQ(sum.at(0), 12 * 3 + 4 * 3 * 12);  // rows 2, 3, 4; columns 0, 8, 16, 24
  }
  EXPECT_EQ(deleted, 1);
}

TEST_P(Dlpack, TakesVectorsAndNothing) {
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  int deleted = 0;
  EXPECT_EQ(from_dlpack<vec4>(device(), New::make({16, 4}, deleted)).at(2), (vec4{8, 9, 10, 11}));
  EXPECT_EQ((from_dlpack<mat22, 2>(device(), New::make({2, 3, 2, 2}, deleted)).at(1, 2)(1, 0)), 22);
  EXPECT_EQ((from_dlpack<float, 2>(device(), New::make({0, 7}, deleted)).shape(1)), 7);
  EXPECT_EQ(deleted, 3);
}

TEST_P(Dlpack, GivesBackTheSameMemory) {
  if (!shares_memory(device())) GTEST_SKIP() << "memory of its own";
  Array<float> x = zeros<float>(device(), 8);
  auto again = from_dlpack<float>(device(), to_dlpack(x.slice(2, 8, 2)));
  EXPECT_EQ(again.address(), x.address() + 8);
  EXPECT_EQ(again.shape(0), 3);
  EXPECT_EQ(again.stride(0), 8);
  for (int k = 0; k < 50; ++k) {
    launch(add_one(), 8, x);
    launch(add_one(), 3, again);
  }
  x = {};
  EXPECT_EQ(again.to_vector(), std::vector<float>(3, 100.f));
}

TEST_P(Dlpack, CrossesDevices) {
  const Device reference("reference");
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  Array<float> x(reference, {1, 2, 3, 4});
  {
    auto y = from_dlpack<float>(device(), to_dlpack(x));
    launch(add_one(), 4, y);
    y.wait();
  }
  EXPECT_EQ(x.to_vector(), (std::vector<float>{2, 3, 4, 5}));
}

TEST_P(Dlpack, KeepsWhatATapeNeeds) {
  if (!shares_memory(device())) GTEST_SKIP() << "memory of its own";
  auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  auto x = Array<float>(device(), {3}).requires_grad();
  auto y = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] { launch(square, 1, x, y); });
  DLManagedTensor* tensor = to_dlpack_unversioned(x);
  *static_cast<float*>(tensor->dl_tensor.data) = 100;
  tensor->deleter(tensor);
  tape.backward(y);
  EXPECT_EQ(x.grad().at(0), 6);
}

// NumPy has a mode that puts the largest number there, to catch code that uses such strides.
TEST_P(Dlpack, TakesAnyStridesThatLeadNowhere) {
  int deleted = 0;
  for (const std::int64_t stride : {INT64_MAX, INT64_MIN, std::int64_t(-1), std::int64_t(0)}) {
    DLManagedTensor* tensor = Old::make({1, 3}, deleted, {stride, 1});
    const auto array = from_dlpack<float, 2>(device(), tensor, {.copy = !device().wraps_host()});
    EXPECT_EQ(array.to_vector(), (std::vector<float>{0, 1, 2}));
  }
}

TEST_P(Dlpack, RefusesTensorsByName) {
  int deleted = 0, made = 0;
  const auto refused = [&](const std::string& text, auto change, std::vector<std::int64_t> shape = {4, 4},
                           std::vector<std::int64_t> strides = {}) {
    DLManagedTensorVersioned* tensor = New::make(std::move(shape), deleted, std::move(strides));
    ++made;
    const auto saved = *tensor;
    change(*tensor);
    expect_contains(error_of([&] { (void)from_dlpack<float, 2>(device(), tensor); }), text);
    *tensor = saved;
    EXPECT_EQ(deleted, made - 1) << "what is refused stays the caller's";
    tensor->deleter(tensor);
  };
  const auto as_it_is = [](auto&) {};
  const auto type = [](int code, int bits, int lanes) {
    return [=](auto& m) { m.dl_tensor.dtype = {std::uint8_t(code), std::uint8_t(bits), std::uint16_t(lanes)}; };
  };
  const auto on = [](int kind) { return [=](auto& m) { m.dl_tensor.device.device_type = DLDeviceType(kind); }; };
  refused("the tensor's elements are float64, and the array's scalars are float32", type(kDLFloat, 64, 1));
  refused("are bfloat16", type(kDLBfloat, 16, 1));
  refused("are complex64", type(kDLComplex, 64, 1));
  refused("are float32 in 4 lanes", type(kDLFloat, 32, 4));
  refused("are type 17 of 4", type(17, 4, 1));
  refused("the tensor is in memory of ROCm;", on(kDLROCM));
  refused("the tensor is in memory of Vulkan;", on(kDLVulkan));
  refused("the tensor is in memory of device type 77;", on(77));
  refused("the tensor has 1 dimensions, and the array 2", as_it_is, {4});
  refused("the tensor has 5 dimensions", as_it_is, {1, 1, 1, 1, 4});
  refused("the tensor has 0 dimensions", as_it_is, {});
  refused("size -4 of dimension 1 is negative", as_it_is, {4, -4});
  refused("stride -4 of dimension 0 is negative", as_it_is, {4, 4}, {-4, 1});
  refused("lie on each other", as_it_is, {4, 4}, {0, 1});
  refused("lie on each other", as_it_is, {4, 4}, {2, 1});
  refused("larger than any memory", as_it_is, {1ll << 40, 1ll << 40});
  refused("larger than any memory", as_it_is, {4, 4}, {1ll << 62, 1});
  for (const int off : {1, 2, 3})
    refused("with the byte_offset of " + std::to_string(off) + " is not aligned",
            [off](auto& m) { m.dl_tensor.byte_offset = std::uint64_t(off); });
  refused("reach beyond all memory", [](auto& m) { m.dl_tensor.byte_offset = ~0ull - 3; });
  refused("its shape is null", [](auto& m) { m.dl_tensor.shape = nullptr; });
  refused("its data is null", [](auto& m) { m.dl_tensor.data = nullptr; });
  refused("the tensor has no deleter", [](auto& m) { m.deleter = nullptr; });
  refused("the tensor is read-only", [](auto& m) { m.flags = DLPACK_FLAG_BITMASK_READ_ONLY; });
  refused("the tensor is of version 2.3; 1 is known", [](auto& m) { m.version = {2, 3}; });
  expect_contains(error_of([&] { (void)from_dlpack<float>(device(), static_cast<DLManagedTensor*>(nullptr)); }),
                  "the tensor is null");

  DLManagedTensor* rows = Old::make({4, 4}, deleted);
  expect_contains(error_of([&] { (void)from_dlpack<vec3>(device(), rows); }),
                  "dimension 1 of the tensor has 4 elements, and the array's elements have 3 there");
  rows->deleter(rows);
  DLManagedTensor* apart = Old::make({4, 3}, deleted, {8, 2});
  expect_contains(error_of([&] { (void)from_dlpack<vec3>(device(), apart); }), "do not lie in a row");
  apart->deleter(apart);
}

TEST_P(Dlpack, CopiesWhatItsOwnKernelsHaveWritten) {
  if (!shares_memory(device())) GTEST_SKIP() << "memory of its own";
  const int rounds = on_reference() ? 10'000 : 3'000'000;
  auto slow = kernel("slow", [rounds](Arr<float> x) {
    Var<float> a = x[tid()];
    for (auto k : range(rounds)) {
      (void)k;
      a = a * 0.5f + 1.f;
    }
    x[tid()] = a;
  });
  Array<float> x = zeros<float>(device(), 64);
  DLManagedTensorVersioned* given = to_dlpack(x);
  // Another library, which was given the memory, makes a tensor of every second element from the third on.
  int deleted = 0;
  DLManagedTensor* view = Old::make({31}, deleted, {2});
  view->dl_tensor.data = static_cast<float*>(given->dl_tensor.data) + 2;
  const Device reference("reference");
  launch(slow, 64, x);
  const auto there = from_dlpack<float>(reference, view, {.copy = true});
  EXPECT_EQ(there.to_vector(), std::vector<float>(31, 2.f));
  EXPECT_EQ(deleted, 1);
  x.zero();
  x.wait();
  launch(slow, 64, x);
  const auto copied = from_dlpack<float>(device(), given, {.copy = true});
  x.fill(7);
  EXPECT_EQ(copied.to_vector(), std::vector<float>(64, 2.f));
}

// One thread asks whose memory a tensor is, while another drops memory whose deleter takes a lock, as an interpreter's
// does; a third calls with that lock held.
TEST_P(Dlpack, LooksMemoryUpWithoutKeepingOthersWaiting) {
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  static std::mutex interpreter;
  struct Locked {
    DLManagedTensor managed{};
    std::int64_t shape[1] = {8};
    static DLManagedTensor* make(float* data) {
      auto* const made = new Locked;
      made->managed.dl_tensor = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, made->shape, nullptr, 0};
      made->managed.manager_ctx = made;
      made->managed.deleter = [](DLManagedTensor* self) {
        const std::lock_guard lock(interpreter);
        delete static_cast<Locked*>(self->manager_ctx);
      };
      return &made->managed;
    }
  };
  alignas(4096) static float memory[4096];
  const Array<float> own = zeros<float>(Device("reference"), 8);
  std::atomic<bool> stop = false;
  const auto until_stopped = [&](auto&& work) {
    return std::thread([&stop, work] {
      while (!stop) work();
    });
  };
  const auto take = [&](float* data, auto&& use) {
    DLManagedTensor* const tensor = Locked::make(data);
    try {
      use(from_dlpack<float>(Device("reference"), tensor));
    } catch (const Error&) {
      tensor->deleter(tensor);
    }
  };
  std::thread threads[] = {
      until_stopped([&] { take(memory + 2048, [](const Array<float>&) {}); }),
      until_stopped([&] {
        take(memory, [](const Array<float>& x) {
          DLManagedTensor* const given = to_dlpack_unversioned(x);
          given->deleter(given);
        });
      }),
      until_stopped([&] {
        const std::lock_guard lock(interpreter);
        DLManagedTensor* const given = to_dlpack_unversioned(own);
        given->deleter(given);
      }),
  };
  std::this_thread::sleep_for(std::chrono::seconds(1));
  stop = true;
  for (std::thread& t : threads) t.join();
}

TEST_P(Dlpack, RefusesMemoryThatCannotBeShared) {
  expect_contains(error_of([&] { (void)to_dlpack(Array<float>()); }), "a null array is exported");
  if (!shares_memory(device()) && !on_gpu())  // on a GPU, CUDA may have it
    expect_contains(error_of([&] { (void)to_dlpack(zeros<float>(device(), 3)); }), "is not the host's");
  if (on_reference())
    expect_contains(error_of([&] { (void)to_dlpack(zeros<float>(device(), 3), {.memory = DlpackMemory::cuda}); }),
                    "an array is asked for as CUDA's memory, and reference is not a GPU");
  int deleted = 0;
  DLManagedTensor* tensor = Old::make({4}, deleted);
  if (device().wraps_host()) {
    DLManagedTensor* same = Old::make({4}, deleted);
    void* const own = std::exchange(same->dl_tensor.data, tensor->dl_tensor.data);
    {
      const auto x = from_dlpack<float>(device(), tensor);
      expect_contains(error_of([&] { (void)from_dlpack<float>(device(), same); }), "stands on already");
    }
    same->dl_tensor.data = own;
    same->deleter(same);
  } else {
    expect_contains(error_of([&] { (void)from_dlpack<float>(device(), tensor); }),
                    "cannot use memory of the host without a copy");
    tensor->deleter(tensor);
  }
}

}  // namespace
