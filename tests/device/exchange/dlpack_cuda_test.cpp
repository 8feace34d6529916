// DLPack with CUDA: memory that both see, and tensors that are refused.
#include "dlpack_cuda.h"

#include <cstring>
#include <fstream>
#include <span>
#include <thread>

#include "../embedding/embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

CUDA_TEST(DlpackCuda);

TEST_P(DlpackCuda, GivesTheMemoryItself) {
  Array<float> before = zeros<float>(gpu(), 1000), x = zeros<float>(gpu(), 8);
  launch(add_one(), 8, x);
  DLManagedTensorVersioned* tensor = to_dlpack(x.slice(2), kCuda);
  const DLTensor& t = tensor->dl_tensor;
  EXPECT_EQ(t.device.device_type, kDLCUDA);
  EXPECT_EQ(t.device.device_id, number());
  EXPECT_EQ(t.shape[0], 6);
  EXPECT_EQ(tensor->flags, 0u);
  EXPECT_EQ(read(t, 3), 1) << "what was launched has run";
  write(t, 3, 10);
  launch(add_one(), 8, x);
  x.wait();
  EXPECT_EQ(read(t, 3), 11);
  EXPECT_EQ(read(t, 4), 2);
  tensor->deleter(tensor);
  EXPECT_EQ(x.at(5), 11);
  EXPECT_EQ(before.at(999), 0);
}

TEST_P(DlpackCuda, MapsAPageOnce) {
  if (!stands_in()) GTEST_SKIP() << "counted by the stand-in";
  const std::size_t descriptors = open_descriptors();
  {
    Array<float> x = zeros<float>(gpu(), 100), y = zeros<float>(gpu(), 100), large = zeros<float>(gpu(), 1 << 19);
    DLManagedTensor* first = to_dlpack_unversioned(x);
    DLManagedTensor* second = to_dlpack_unversioned(y);
    EXPECT_EQ(counts().mappings, 1);
    EXPECT_EQ(static_cast<std::byte*>(second->dl_tensor.data) - static_cast<std::byte*>(first->dl_tensor.data),
              std::ptrdiff_t(y.address() - x.address()));
    DLManagedTensor* third = to_dlpack_unversioned(large);
    EXPECT_EQ(counts().mappings, 2);
    for (DLManagedTensor* t : {first, second, third}) t->deleter(t);
    EXPECT_EQ(counts().mappings, 2) << "as long as the pages";
    for (int k = 0; k < 3; ++k) {
      DLManagedTensor* again = to_dlpack_unversioned(x);
      again->deleter(again);
    }
    EXPECT_EQ(counts().mappings, 2);
  }
  subject_.reset();
  EXPECT_EQ(counts().mappings, 0);
  EXPECT_LE(open_descriptors(), descriptors);
}

TEST_P(DlpackCuda, ChoosesWhatTheMemoryIs) {
  const auto kind_of = [](DLManagedTensor* tensor) {
    const DLDevice device = tensor->dl_tensor.device;
    tensor->deleter(tensor);
    return device.device_type;
  };
  const bool mapped =
      gpu().native().info().host_visible && backend::VulkanAccess(gpu().native(), "test").host_reads_fast(0);
  const Array<float> x = zeros<float>(gpu(), 3), none = zeros<float>(gpu(), 0);
  EXPECT_EQ(kind_of(to_dlpack_unversioned(x)), mapped ? kDLCPU : kDLCUDA);
  EXPECT_EQ(kind_of(to_dlpack_unversioned(none)), mapped ? kDLCPU : kDLCUDA);
  EXPECT_EQ(kind_of(to_dlpack_unversioned(none, kCuda)), kDLCUDA);
  EXPECT_EQ(kind_of(to_dlpack_unversioned(x, {.copy = true})), kDLCPU);
  if (!gpu().native().info().host_visible)
    expect_contains(error_of([&] { (void)to_dlpack(x, {.memory = DlpackMemory::host}); }), "is not the host's");
  expect_contains(error_of([&] { (void)export_memory(x); }), "not made to be");
  // The software device without tuning shows CUDA only memory that was made to be shared.
  if (on_gpu()) return;
  EXPECT_EQ(kind_of(to_dlpack_unversioned(zeros<float>(device(), 3))), kDLCPU);
  expect_contains(error_of([&] { (void)to_dlpack(zeros<float>(device(), 3), kCuda); }), "not made to be shared");
  Array<float> shared = shareable<float>(device(), 3);
  shared.fill(4);
  DLManagedTensor* tensor = to_dlpack_unversioned(shared, kCuda);
  EXPECT_EQ(read(tensor->dl_tensor, 2), 4);
  EXPECT_EQ(kind_of(tensor), kDLCUDA);
}

TEST_P(DlpackCuda, MemoryThatTheHostReachesOverTheBusIsCudas) {
  if (!stands_in()) GTEST_SKIP() << "with memory of several kinds";
  const auto kind_of = [&](const Device& on, DlpackMemory memory = DlpackMemory::automatic, std::int64_t size = 3) {
    DLManagedTensor* tensor = to_dlpack_unversioned(zeros<float>(on, size), {.memory = memory});
    const auto kind = tensor->dl_tensor.device.device_type;
    tensor->deleter(tensor);
    return kind;
  };
  // One device is like a GPU whose whole memory the host sees, the other like one that shares the host's.
  const Device over_bus = open({.cache_device_memory = false, .share_pages = true}),
               shared = open({.share_pages = true});
  EXPECT_EQ(kind_of(over_bus), kDLCUDA);
  EXPECT_EQ(kind_of(over_bus, DlpackMemory::automatic, 0), kDLCUDA);
  EXPECT_EQ(kind_of(over_bus, DlpackMemory::host), kDLCPU);
  EXPECT_EQ(kind_of(shared), kDLCPU);
  EXPECT_EQ(kind_of(shared, DlpackMemory::cuda), kDLCUDA);
  if (over_bus.wraps_host()) {
    alignas(8) float host[4] = {};
    DLManagedTensor* tensor = to_dlpack_unversioned(wrap(over_bus, std::span(host)));
    EXPECT_EQ(tensor->dl_tensor.data, host);
    EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCPU);
    tensor->deleter(tensor);
  }
  // Without CUDA, or if CUDA cannot have this memory, it is the host's.
  EXPECT_EQ(kind_of(open({.cache_device_memory = false})), kDLCPU);
  platform::set_environment(kDriver, "/nowhere/libcuda.so");
  EXPECT_EQ(kind_of(over_bus), kDLCPU);
  EXPECT_EQ(kind_of(over_bus, DlpackMemory::automatic, 0), kDLCPU);
  platform::set_environment(kDriver, WEFT_CUDA_STAND_IN);
}

TEST_P(DlpackCuda, CopiesToMemoryOfItsOwn) {
  Array<vec3, 2> x(gpu(), {2, 2}, std::vector<vec3>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}});
  DLManagedTensorVersioned* tensor = to_dlpack(x.transpose(), {.copy = true, .memory = DlpackMemory::cuda});
  EXPECT_EQ(tensor->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
  EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(tensor->dl_tensor.strides[0], 6);
  x.zero();
  x.wait();
  EXPECT_EQ(read(tensor->dl_tensor, 3), 7);
  tensor->deleter(tensor);
}

TEST_P(DlpackCuda, KeepsTheMemoryForWhomItGaveIt) {
  DLManagedTensor* old = nullptr;
  DLManagedTensorVersioned* versioned = nullptr;
  {
    Array<float> x(gpu(), {1, 2, 3});
    old = to_dlpack_unversioned(x, kCuda);
    versioned = to_dlpack(x.slice(1), kCuda);
  }
  if (!on_gpu()) subject_.reset();
  // The array is gone; on the software device, all handles of the device are, too.
  EXPECT_EQ(read(old->dl_tensor, 2), 3);
  old->deleter(old);
  EXPECT_EQ(read(versioned->dl_tensor, 1), 3);
  const int waits = counts().context_waits;
  std::thread([&] { versioned->deleter(versioned); }).join();
  if (stands_in()) {
    EXPECT_EQ(counts().context_waits, waits + 1) << "CUDA may be reading still";
  }
}

TEST_P(DlpackCuda, GivesBackTheSameMemory) {
  Array<float> x = zeros<float>(gpu(), 8);
  auto again = from_dlpack<float>(gpu(), to_dlpack(x.slice(2, 8, 2), kCuda));
  EXPECT_EQ(again.address(), x.address() + 8);
  EXPECT_EQ(again.stride(0), 8);
  for (int k = 0; k < 50; ++k) {
    launch(add_one(), 8, x);
    launch(add_one(), 3, again);
  }
  EXPECT_EQ(again.to_vector(), std::vector<float>(3, 100.f));
  // The memory comes back from another library, which made a tensor of its own of it.
  int deleted = 0;
  DLManagedTensor* given = to_dlpack_unversioned(x, kCuda);
  std::shared_ptr<void> held(given, [](DLManagedTensor* t) { t->deleter(t); });
  float* const data = static_cast<float*>(given->dl_tensor.data);
  auto part = from_dlpack<float>(gpu(), New::make(number(), data + 4, {3}, deleted, {}, std::move(held)));
  EXPECT_EQ(deleted, 1) << "the array keeps the memory itself";
  EXPECT_EQ(part.address(), x.address() + 16);
  x = again = {};
  EXPECT_EQ(part.to_vector(), (std::vector<float>{100, 50, 100}));
}

TEST_P(DlpackCuda, TakesTheMemoryItself) {
  const auto check = [&](auto* tensor, float* data, int& deleted) {
    auto x = from_dlpack<float>(gpu(), tensor);
    EXPECT_EQ(x.at(3), 3 + 8);
    Array<float> part = x.slice(2, 5);
    launch(add_one(), 8, x);
    x.wait();
    EXPECT_EQ(cuda_read(number(), data, 3), 4 + 8);
    EXPECT_EQ(cuda_read(number(), data, 8), 16);
    cuda_write(number(), data, 3, 3 + 8);
    EXPECT_EQ(part.at(1), 3 + 8);
    x = {};
    EXPECT_EQ(deleted, 0) << "a view is left";
    launch(add_one(), 3, part);
    part = {};
    EXPECT_EQ(deleted, 1);
  };
  const std::size_t descriptors = open_descriptors();
  int deleted = 0;
  auto memory = counting(CudaMemory::exportable);
  float* const data = memory->data() + 8;
  check(Old::make(number(), data, {8}, deleted, {}, std::move(memory)), data, deleted);
  if (stands_in()) {
    EXPECT_EQ(counts().handles, 0);
    EXPECT_EQ(open_descriptors(), descriptors);
  }
  deleted = 0;
  memory = counting(CudaMemory::exportable);
  float* const second = memory->data() + 8;
  auto* versioned = New::make(number(), second - 2, {8}, deleted, {}, std::move(memory));
  versioned->dl_tensor.byte_offset = 8;
  check(versioned, second, deleted);
}

TEST_P(DlpackCuda, CopiesWhatItsOwnKernelsHaveWritten) {
  auto slow = kernel("slow", [](Arr<float> x) {
    Var<float> a = x[tid()];
    for (auto k : range(3'000'000)) {
      (void)k;
      a = a * 0.5f + 1.f;
    }
    x[tid()] = a;
  });
  Array<float> x = zeros<float>(gpu(), 64);
  DLManagedTensor* tensor = to_dlpack_unversioned(x.slice(2, 64, 2), kCuda);
  launch(slow, 64, x);
  const auto copied = from_dlpack<float>(gpu(), tensor, {.copy = true});
  x.fill(7);
  EXPECT_EQ(copied.to_vector(), std::vector<float>(31, 2.f));
}

TEST_P(DlpackCuda, TakesStridesAndVectors) {
  auto memory = counting(CudaMemory::exportable);
  int deleted = 0;
  {
    const auto x = from_dlpack<float, 2>(gpu(), Old::make(number(), memory->data() + 2, {3, 4}, deleted, {1, 8}));
    EXPECT_EQ(x.at(2, 3), 2 + 2 + 24);
    // This tensor lies beside the other one, in the same allocation.
    const auto v = from_dlpack<vec4>(gpu(), Old::make(number(), memory->data() + 64, {16, 4}, deleted));
    EXPECT_EQ(v.at(2), (vec4{72, 73, 74, 75}));
    EXPECT_EQ(v.address() - x.address(), 62u * 4) << "imported once";
    const auto none = from_dlpack<float, 2>(gpu(), Old::make(number(), nullptr, {0, 7}, deleted));
    EXPECT_EQ(none.shape(1), 7);
    EXPECT_EQ(deleted, 1);
    DLManagedTensor* over = Old::make(number(), memory->data() + 66, {1}, deleted);
    expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), over); }), "stands on already");
    over->deleter(over);
  }
  EXPECT_EQ(deleted, 4);
}

TEST_P(DlpackCuda, GivesTheMemoryUpBeforeTheTensor) {
  if (!stands_in()) GTEST_SKIP() << "seen by the stand-in";
  const auto mapped = [] {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);)
      if (line.find("stand-in for CUDA memory") != std::string::npos) ++count;
    return count;
  };
  auto memory = counting(CudaMemory::exportable);
  int deleted = 0, mapped_then = 0;
  std::shared_ptr<void> last(&deleted, [&](void*) { mapped_then = mapped(); });
  auto x = from_dlpack<float>(gpu(), New::make(number(), memory->data(), {8}, deleted, {}, std::move(last)));
  EXPECT_EQ(mapped(), 2) << "CUDA's, and Vulkan's";
  x = {};
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(mapped_then, 1);
}

TEST_P(DlpackCuda, WhatWasTakenGoesBackAsItCame) {
  auto memory = counting(CudaMemory::exportable);
  int deleted = 0;
  auto x = from_dlpack<float>(gpu(), New::make(number(), memory->data() + 8, {8}, deleted));
  DLManagedTensor* back = to_dlpack_unversioned(x.slice(1));
  EXPECT_EQ(back->dl_tensor.data, memory->data() + 9);
  EXPECT_EQ(back->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(back->dl_tensor.device.device_id, number());
  x = from_dlpack<float>(gpu(), back);
  EXPECT_EQ(x.at(0), 9);
  EXPECT_EQ(deleted, 0);
  x = {};
  EXPECT_EQ(deleted, 1);
}

TEST_P(DlpackCuda, WaitsForTheStreamThatIsNamed) {
  if (!stands_in()) GTEST_SKIP() << "counted by the stand-in";
  auto memory = counting(CudaMemory::exportable);
  int deleted = 0;
  auto* const stream = reinterpret_cast<CUstream_st*>(std::uintptr_t(2));
  const auto waits_for = [&](const DlpackOptions& options, CUstream_st* expected) {
    const int before = counts().stream_waits;
    counts().last_stream = reinterpret_cast<CUstream_st*>(std::uintptr_t(99));
    EXPECT_EQ(from_dlpack<float>(gpu(), Old::make(number(), memory->data(), {8}, deleted), options).at(1), 1);
    EXPECT_EQ(counts().stream_waits, before + 1);
    EXPECT_EQ(counts().last_stream, expected);
  };
  waits_for({}, nullptr);
  waits_for({.stream = stream}, stream);
  waits_for({.copy = true, .stream = stream}, stream);
  EXPECT_EQ(counts().last_copied_in, stream);
  // A caller that has waited already says so.
  const int before = counts().stream_waits;
  EXPECT_EQ(from_dlpack<float>(gpu(), Old::make(number(), memory->data(), {8}, deleted), {.wait = false}).at(1), 1);
  auto x = zeros<float>(gpu(), 8);
  (void)from_dlpack<float>(gpu(), to_dlpack(x), {.wait = false});
  (void)from_dlpack<float>(gpu(), to_dlpack(x), {.copy = true, .wait = false});
  EXPECT_EQ(counts().stream_waits, before);
  auto* const none = reinterpret_cast<CUstream_st*>(std::uintptr_t(-1));
  DLManagedTensor* tensor = to_dlpack_unversioned(x);
  for (const bool copy : {false, true})
    expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), tensor, {.copy = copy, .stream = none}); }),
                    "the stream is -1");
  EXPECT_EQ(counts().stream_waits, before);
  tensor->deleter(tensor);
}

TEST_P(DlpackCuda, CopiesAColumnAlone) {
  auto memory = counting(CudaMemory::plain);
  for (int k = 0; k < 16; ++k) cuda_write(number(), memory->data(), k << 15, float(k));
  int deleted = 0;
  const Device reference("reference");
  for (const Device& to : {gpu(), reference}) {
    const std::size_t before = counts().copied;
    const auto column = from_dlpack<float, 2>(
        to, Old::make(number(), memory->data(), {4, 4}, deleted, {1 << 15, 1 << 17}), {.copy = true});
    EXPECT_EQ(column.at(3, 0), 3);
    EXPECT_EQ(column.at(1, 2), 9);
    EXPECT_TRUE(column.is_contiguous());
    if (stands_in()) {
      EXPECT_EQ(counts().copied - before, 64u) << "of 2 MiB";
    }
    // Rows that lie close together are copied with the bytes between them.
    const auto rows =
        from_dlpack<vec2>(to, Old::make(number(), memory->data(), {8, 2}, deleted, {16, 1}), {.copy = true});
    EXPECT_EQ(rows.at(2), (vec2{32, 33}));
    if (stands_in()) {
      EXPECT_EQ(counts().copied - before, 64u + 7 * 64 + 8);
    }
  }
  EXPECT_EQ(deleted, 4);
}

TEST_P(DlpackCuda, CopiesOnTheGpuOrByTheHost) {
  // Plain memory of CUDA's goes to a device that is the same GPU, to one whose memory CUDA cannot see, and to another.
  auto memory = counting(CudaMemory::plain);
  int deleted = 0;
  const auto tensor = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {}) {
    return New::make(number(), memory->data() + 2, std::move(shape), deleted, std::move(strides));
  };
  const Device reference("reference");
  for (const Device& to : {gpu(), device(), reference}) {
    deleted = 0;
    const int copies = counts().copies;
    EXPECT_EQ(from_dlpack<float>(to, tensor({5}), {.copy = true}).to_vector(), (std::vector<float>{2, 3, 4, 5, 6}));
    if (stands_in()) {
      EXPECT_EQ(counts().copies, copies + 1);
    }
    const auto turned = from_dlpack<float, 2>(to, tensor({2, 3}, {1, 8}), {.copy = true});
    EXPECT_TRUE(turned.is_contiguous());
    EXPECT_EQ(turned.flatten().to_vector(), (std::vector<float>{2, 10, 18, 3, 11, 19}));
    EXPECT_EQ(from_dlpack<vec3>(to, tensor({2, 3}), {.copy = true}).at(1), (vec3{5, 6, 7}));
    EXPECT_EQ((from_dlpack<float, 2>(to, tensor({4, 0}), {.copy = true}).shape(0)), 4);
    EXPECT_EQ(deleted, 4) << "before the array is gone";
  }
  gpu().synchronize();
  EXPECT_EQ(counts().context_waits, 0) << "what CUDA has not been given is freed as ever";
  DLManagedTensorVersioned* read_only = tensor({5});
  read_only->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), read_only); }), "the tensor is read-only");
  EXPECT_EQ(from_dlpack<float>(gpu(), read_only, {.copy = true}).at(0), 2);
}

TEST_P(DlpackCuda, PinnedMemoryIsTheHosts) {
  if (!device().wraps_host()) GTEST_SKIP() << "cannot use memory of the host";
  alignas(64) float pinned[16] = {1, 2, 3};
  int deleted = 0;
  DLManagedTensor* tensor = Old::make(0, pinned, {16}, deleted);
  tensor->dl_tensor.device.device_type = kDLCUDAHost;
  {
    auto x = from_dlpack<float>(device(), tensor);
    launch(add_one(), 16, x);
    x.wait();
    EXPECT_EQ(pinned[2], 4);
  }
  EXPECT_EQ(deleted, 1);
}

TEST_P(DlpackCuda, KeepsWhatATapeNeeds) {
  auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  auto x = Array<float>(gpu(), {3}).requires_grad();
  auto y = zeros<float>(gpu(), 1);
  Tape tape;
  tape.record([&] { launch(square, 1, x, y); });
  DLManagedTensor* tensor = to_dlpack_unversioned(x, kCuda);
  write(tensor->dl_tensor, 0, 100);
  tensor->deleter(tensor);
  tape.backward(y);
  EXPECT_EQ(x.grad().at(0), 6);
}

// ---- Refusals

TEST_P(DlpackCuda, RefusesTensorsByName) {
  auto open = counting(CudaMemory::exportable), kept = counting(CudaMemory::kept), plain = counting(CudaMemory::plain);
  int deleted = 0, made = 0;
  const auto refused = [&](const Device& to, DLManagedTensorVersioned* tensor, const std::string& text,
                           DlpackOptions options = {}) {
    ++made;
    expect_contains(error_of([&] { (void)from_dlpack<float>(to, tensor, options); }), text);
    EXPECT_EQ(deleted, made - 1) << "what is refused stays the caller's";
    tensor->deleter(tensor);
  };
  const auto tensor = [&](int on, float* data, std::int64_t n = 4) { return New::make(on, data, {n}, deleted); };
  const std::size_t descriptors = open_descriptors();
  const std::string advice = "import a copy (DlpackOptions::copy), or allocate it with cuMemCreate";
  refused(gpu(), tensor(number(), plain->data()), "was not allocated by cuMemCreate");
  refused(gpu(), tensor(number(), plain->data()), advice);
  refused(gpu(), tensor(number(), kept->data()), "without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
  refused(gpu(), tensor(number(), kept->data()), advice);
  refused(gpu(), tensor(number(), open->data() + 100, CudaMemory::kBytes / 4),
          "reaches beyond the allocation of 2097152");
  refused(gpu(), tensor(77, open->data()), "the tensor is on CUDA device 77, and there are");
  refused(gpu(), tensor(77, open->data()), "the tensor is on CUDA device 77, and there are", {.copy = true});
  refused(gpu(), tensor(-1, open->data()), "the tensor is on CUDA device -1");
  alignas(8) float host[4] = {};
  if (stands_in()) refused(gpu(), tensor(number(), host), "is not memory that CUDA knows");
  const Device reference("reference");
  refused(reference, tensor(number(), open->data()), "reference is not a GPU: import a copy");
  if (stands_in()) {
    refused(gpu(), tensor(0, open->data()), "is CUDA device 1: import a copy");
    auto elsewhere = std::make_unique<CudaMemory>(0, CudaMemory::exportable);
    refused(gpu(), tensor(1, elsewhere->data()), "the tensor is on CUDA device 1, and its memory on 0");
  }
  DLManagedTensorVersioned* lasting = tensor(number(), open->data());
  auto* const deleter = std::exchange(lasting->deleter, nullptr);
  expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), lasting); }), "the tensor has no deleter");
  deleter(lasting);
  DLManagedTensorVersioned* bytes = tensor(number(), open->data(), 3);
  bytes->dl_tensor.dtype = {kDLInt, 8, 1};
  expect_contains(error_of([&] { (void)from_dlpack<std::int8_t>(gpu(), bytes); }), "must be multiples of 4");
  bytes->deleter(bytes);
  if (stands_in()) {
    EXPECT_EQ(open_descriptors(), descriptors);
  }
}

TEST_P(DlpackCuda, SaysWhatIsMissing) {
  if (!stands_in()) GTEST_SKIP() << "by what stands in the driver's place";
  const Array<float> x = zeros<float>(gpu(), 3);
  int deleted = 0;
  float host[4] = {};
  DLManagedTensor* tensor = Old::make(0, host, {4}, deleted);
  const auto says = [&](const std::string& name, const std::string& text) {
    platform::set_environment(kDriver, name.c_str());
    expect_contains(error_of([&] { (void)to_dlpack(x, kCuda); }), text);
    const std::string chosen = error_of([&] { (void)to_dlpack(x); });
    expect_contains(chosen, "is not the host's, and CUDA does not have it");
    expect_contains(chosen, text);
    platform::set_environment(kDriver, WEFT_CUDA_STAND_IN);
  };
  says("/nowhere/libcuda.so", "the CUDA driver that WEFT_CUDA_DRIVER names, /nowhere/libcuda.so, cannot be loaded");
  says("libm.so.6", "too old: it lacks cuInit");
  // The same library under other names is started again.
  const std::filesystem::path path(WEFT_CUDA_STAND_IN);
  const auto renamed = [&](const std::string& way) { return (path.parent_path() / way / path.filename()).string(); };
  counts().failing = "cuInit";
  says(renamed("."), "does not start: CUDA_ERROR_UNKNOWN (unknown error)");
  counts().failing = nullptr;
  counts().devices = 1;
  says(renamed("./."), "none of CUDA's 1 devices is");
  counts().devices = 2;
  platform::set_environment(kDriver, "/nowhere/libcuda.so");
  expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), tensor); }),
                  "the tensor is on CUDA, and the CUDA driver");
  EXPECT_THROW((void)from_dlpack<float>(gpu(), tensor, {.copy = true}), Error);
  platform::set_environment(kDriver, WEFT_CUDA_STAND_IN);
  tensor->deleter(tensor);
}

TEST_P(DlpackCuda, FailuresLeaveNothingBehind) {
  if (!stands_in()) GTEST_SKIP() << "failures are the stand-in's";
  const std::size_t before = open_descriptors();
  for (const char* call :
       {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer"}) {
    Array<float> x = shareable<float>(gpu(), 64);
    x.fill(3);
    counts().failing = call;
    expect_contains(error_of([&] { (void)to_dlpack(x); }), std::string(call) + " gave CUDA_ERROR_UNKNOWN");
    EXPECT_EQ(counts().externals, 0) << call;
    EXPECT_EQ(x.at(63), 3) << "the array is as it was";
    x = {};
    counts().failing = nullptr;
    EXPECT_EQ(counts().contexts, 0) << call;
    EXPECT_EQ(open_descriptors(), before) << call;
  }
  auto memory = counting(CudaMemory::exportable);
  const std::size_t descriptors = open_descriptors();
  int deleted = 0, made = 0;
  for (const char* call : {"cuCtxPushCurrent", "cuStreamIsCapturing", "cuStreamSynchronize", "cuPointerGetAttribute",
                           "cuMemRetainAllocationHandle", "cuMemGetAddressRange", "cuMemExportToShareableHandle"}) {
    DLManagedTensor* tensor = Old::make(number(), memory->data(), {8}, deleted);
    ++made;
    counts().failing = call;
    expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), tensor); }),
                    std::string(call) + " gave CUDA_ERROR_UNKNOWN (unknown error)");
    counts().failing = nullptr;
    EXPECT_EQ(counts().handles, 0) << call;
    EXPECT_EQ(open_descriptors(), descriptors) << call;
    EXPECT_EQ(deleted, made - 1) << call;
    tensor->deleter(tensor);
    // Nothing prevents another try.
    DLManagedTensor* again = Old::make(number(), memory->data(), {8}, deleted);
    ++made;
    EXPECT_EQ(from_dlpack<float>(gpu(), again).at(1), 1) << call;
  }
  DLManagedTensor* copied = Old::make(number(), memory->data(), {8}, deleted);
  counts().failing = "cuMemcpyAsync";
  expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), copied, {.copy = true}); }), "cuMemcpyAsync gave");
  counts().failing = nullptr;
  // Faults of the caller's own work with CUDA keep their kind.
  const auto fails_as = [&](int failure, ErrorKind kind, const std::string& text) {
    counts().failing = "cuStreamSynchronize";
    counts().failure = failure;
    try {
      (void)from_dlpack<float>(gpu(), copied);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      expect_contains(e.what(), text);
    }
    counts().failing = nullptr;
  };
  fails_as(cuda::abi::kIllegalAddress, ErrorKind::device_lost,
           "cuStreamSynchronize gave CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered): what CUDA "
           "was given before has failed");
  fails_as(cuda::abi::kInvalidHandle, ErrorKind::invalid_argument,
           "cuStreamSynchronize gave CUDA_ERROR_INVALID_HANDLE");
  fails_as(cuda::abi::kOutOfMemory, ErrorKind::out_of_memory, "cuStreamSynchronize gave");
  copied->deleter(copied);
}

TEST_P(DlpackCuda, RefusesMemoryOfOtherContexts) {
  if (!stands_in()) GTEST_SKIP() << "another context is the stand-in's";
  counts().in_other_context = true;
  auto memory = std::make_shared<CudaMemory>(number(), CudaMemory::plain);
  counts().in_other_context = false;
  int deleted = 0;
  DLManagedTensor* tensor = Old::make(number(), memory->data(), {8}, deleted);
  for (const bool copy : {false, true})
    expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), tensor, {.copy = copy}); }),
                    "belongs to another context on CUDA device 1 than the primary one");
  EXPECT_EQ(deleted, 0);
  tensor->deleter(tensor);
}

TEST_P(DlpackCuda, AnotherFileIsNoMemory) {
  if (!stands_in()) GTEST_SKIP() << "a damaged handle is the stand-in's";
  // The Vulkan driver refuses the memory of this handle, because it recognises its own.
  auto memory = counting(CudaMemory::exportable);
  std::memset(reinterpret_cast<std::byte*>(memory->data()) - counts().before_memory, 0xab, 32);
  int deleted = 0;
  DLManagedTensor* tensor = Old::make(number(), memory->data(), {8}, deleted);
  const std::size_t descriptors = open_descriptors();
  expect_contains(error_of([&] { (void)from_dlpack<float>(gpu(), tensor); }), "are not memory for");
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(deleted, 0);
  tensor->deleter(tensor);
}

TEST_P(DlpackCuda, ADeviceThatIsTakenAwayTakesItsMemoryFromCuda) {
  Embedded e(on_gpu());
  Array<float> x = shareable<float>(e.device, 8);
  DLManagedTensor* tensor = to_dlpack_unversioned(x, kCuda);
  EXPECT_EQ(counts().mappings, stands_in() ? 1 : 0);
  e.device.detach();
  EXPECT_EQ(counts().mappings, 0);
  expect_contains(error_of([&] { (void)to_dlpack(x, kCuda); }), "was detached");
  x = {};
  tensor->deleter(tensor);
}

TEST_P(DlpackCuda, ThreadsShareOneMapping) {
  const Array<float> x = full<float>(gpu(), 64, 2);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        DLManagedTensor* tensor = to_dlpack_unversioned(x, kCuda);
        EXPECT_EQ(read(tensor->dl_tensor, 63), 2);
        tensor->deleter(tensor);
      }
    });
  for (std::thread& t : threads) t.join();
  if (stands_in()) {
    EXPECT_EQ(counts().mappings, 1);
  }
}

}  // namespace
