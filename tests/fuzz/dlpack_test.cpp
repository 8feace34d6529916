// Random DLPack tensors: those that describe real memory become arrays of its elements, the rest are refused.
#include <weft/runtime/dlpack.h>
#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../../runtime/exchange/dlpack_abi.h"
#include "../common/software_vulkan.h"
#include "inputs.h"

namespace weft {
namespace {

using test::below;
using test::one_in;
using test::one_of;
using test::Random;

constexpr std::size_t kBytes = 4096;

/// The memory of a tensor, and how often it was given back.
struct Given {
  alignas(256) std::array<std::byte, kBytes> memory;
  std::array<std::int64_t, 8> shape{}, strides{};
  int deleted = 0;
};

void fill(DLTensor& t, Given& given, Random& random) {
  constexpr std::int64_t kSizes[] = {0, 1, 1, 2, 3, 3, 4, 5, 16, 1 << 20, INT64_MAX, INT64_MAX / 4, -1, INT64_MIN};
  constexpr std::int64_t kStrides[] = {0,  1,        1, 1, 2, 3, 4, 6, 12, 48, 1 << 20, INT64_MAX, INT64_MAX / 8,
                                       -1, INT64_MIN};
  constexpr int kDevices[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 13, 4, 7, 0, 99, -1};
  // Most tensors are sound, because only the first of several faults would be reported.
  const bool wild = one_in(random, 3);
  t.data = given.memory.data() + (one_in(random, 2) ? 0 : below(random, 65));
  if (one_in(random, 40)) t.data = nullptr;
  const int device = wild ? one_of(random, kDevices) : 1;
  std::memcpy(&t.device.device_type, &device, sizeof device);
  t.device.device_id = wild && one_in(random, 5) ? int(random()) : 0;
  t.dtype = {2, 32, 1};
  if (wild && one_in(random, 5))
    t.dtype = {std::uint8_t(random() % 9), std::uint8_t(random()), std::uint16_t(random() % 3)};
  t.ndim = 1 + int(below(random, 3));
  if (wild && one_in(random, 8)) t.ndim = int(random());
  for (std::size_t k = 0; k < given.shape.size(); ++k) {
    given.shape[k] = one_of(random, kSizes);
    if (!wild && (given.shape[k] < 0 || given.shape[k] > 100)) given.shape[k] = 3;
    given.strides[k] = one_of(random, kStrides);
    if (!wild && (given.strides[k] < 0 || given.strides[k] > 100)) given.strides[k] = 1;
  }
  if (one_in(random, 2) && t.ndim >= 2 && t.ndim <= 3)
    given.shape[std::size_t(t.ndim - 1)] = 3, given.strides[std::size_t(t.ndim - 1)] = 1;
  t.shape = one_in(random, 60) ? nullptr : given.shape.data();
  t.strides = one_in(random, 3) ? nullptr : given.strides.data();
  t.byte_offset = one_in(random, 4) ? below(random, 80) : one_in(random, 100) && wild ? random() : 0;
}

using Wide = __int128;

/// The meaning of a tensor by docs/dlpack.md, computed without overflow and without weft.
struct Told {
  bool sound = false;  ///< it describes elements that do not overlap, or none
  bool inside = true;  ///< all of them lie in the memory
  std::vector<float> values;
};
Told told(const DLTensor& t, const Given& given, int ndim, int scalars) {
  Told r;
  const int dimensions = ndim + (scalars > 1 ? 1 : 0);
  int device = 0;
  std::memcpy(&device, &t.device.device_type, sizeof device);
  if (t.dtype.code != 2 || t.dtype.bits != 32 || t.dtype.lanes != 1 || t.ndim != dimensions || !t.shape) return r;
  const bool on_cuda = device == 2 || device == 13;
  if (device != 1 && device != 3 && !(on_cuda && t.device.device_id >= 0)) return r;
  std::vector<Wide> size(t.shape, t.shape + dimensions), stride(std::size_t(dimensions), 1);
  Wide tight = 1, count = 1, last = 0;
  for (std::size_t k = size.size(); k-- > 0;) {
    if (size[k] < 0) return r;
    stride[k] = t.strides ? t.strides[k] : tight;
    tight *= std::max<Wide>(size[k], 1);
    if (tight > Wide(INT64_MAX / 64)) return r;
    count *= size[k];
    if (size[k] > 0) last += (size[k] - 1) * stride[k];
  }
  if (scalars > 1 && (size.back() != scalars || (stride.back() != 1))) return r;
  Wide reach = Wide(scalars) * 4;
  for (std::size_t k = 0; k < std::size_t(ndim); ++k) {
    if (size[k] <= 1) continue;  // its stride leads nowhere
    if (stride[k] < 0 || stride[k] * 4 > Wide(INT64_MAX)) return r;
    reach += stride[k] * 4 * (size[k] - 1);
    if (reach > Wide(INT64_MAX)) return r;
  }
  if (count == 0) return r.sound = true, r;
  if (!t.data || on_cuda) return r;  // there is no such memory
  const Wide address = Wide(reinterpret_cast<std::uintptr_t>(t.data)) + t.byte_offset;
  if (address % 4 || address + (last + 1) * 4 > Wide(UINT64_MAX)) return r;
  const Wide begin = address - reinterpret_cast<std::uintptr_t>(given.memory.data());
  // From the smallest stride to the largest, each must lead past all elements so far.
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < size.size(); ++k)
    if (size[k] > 1) order.push_back(k);
  std::ranges::sort(order, {}, [&](std::size_t k) { return stride[k]; });
  Wide end = 1;
  for (const std::size_t k : order) {
    if (stride[k] < end) return r;
    end += (size[k] - 1) * stride[k];
  }
  r.sound = true;
  r.inside = begin >= 0 && begin + (last + 1) * 4 <= Wide(kBytes);
  if (!r.inside) return r;
  std::vector<Wide> at(size.size(), 0);
  for (Wide n = 0; n < count; ++n) {
    Wide from = 0;
    for (std::size_t k = 0; k < at.size(); ++k) from += at[k] * stride[k];
    float value;
    std::memcpy(&value, given.memory.data() + std::size_t(begin + from * 4), 4);
    r.values.push_back(value);
    for (std::size_t k = at.size(); k-- > 0 && ++at[k] == size[k];) at[k] = 0;
  }
  return r;
}

std::vector<float> scalars_of(const std::vector<float>& values) { return values; }
std::vector<float> scalars_of(const std::vector<vec3>& values) {
  std::vector<float> all;
  for (const vec3& v : values) all.insert(all.end(), {v.x, v.y, v.z});
  return all;
}

std::uint64_t g_taken = 0, g_refused = 0;

template <class T, int N, class Managed>
void import(const Device& device, Managed& managed, Given& given, DlpackOptions options) {
  const Told expected = told(managed.dl_tensor, given, N, int(sizeof(T) / 4));
  if (expected.sound && !expected.inside) return;  // nobody can tell that the memory is not there
  const auto before = given.memory;
  try {
    Array<T, N> array = from_dlpack<T, N>(device, &managed, options);
    ++g_taken;
    ASSERT_TRUE(expected.sound);
    EXPECT_EQ(scalars_of(array.to_vector()), expected.values);
    if (!options.copy && array.size() > 0) array.fill(T{});
    array.wait();
  } catch (const Error& e) {
    ++g_refused;
    EXPECT_NE(e.message(), "");
    EXPECT_TRUE(e.kind() == ErrorKind::invalid_argument || e.kind() == ErrorKind::unsupported ||
                e.kind() == ErrorKind::no_device || e.kind() == ErrorKind::out_of_memory)
        << e.what();
    EXPECT_FALSE(expected.sound && options.copy) << e.what();
    EXPECT_EQ(given.deleted, 0) << "where it is refused, the tensor is still the caller's";
    EXPECT_TRUE(given.memory == before);
    return;
  }
  device.synchronize();
  EXPECT_EQ(given.deleted, managed.deleter ? 1 : 0);
  EXPECT_TRUE(!options.copy || given.memory == before);
}

template <class Managed>
void try_one(const Device& device, Random& random) {
  const auto given = std::make_unique<Given>();
  for (std::size_t k = 0; k < kBytes; k += 4) {
    const float value = float(k) + 0.5f;
    std::memcpy(given->memory.data() + k, &value, 4);
  }
  Managed managed{};
  managed.manager_ctx = given.get();
  managed.deleter = [](Managed* self) { ++static_cast<Given*>(self->manager_ctx)->deleted; };
  if (one_in(random, 30)) managed.deleter = nullptr;
  if constexpr (requires { managed.version; }) {
    managed.version = {one_in(random, 30) ? std::uint32_t(random()) : 1, std::uint32_t(random())};
    managed.flags = one_in(random, 5) ? random() : 0;
  }
  fill(managed.dl_tensor, *given, random);
  if constexpr (requires { managed.version; })
    if (managed.version.major != 1) managed.dl_tensor.ndim = 99;  // nothing else of it is read
  DlpackOptions options{.copy = one_in(random, 2)};
  switch (below(random, 3)) {
    case 0: return import <float, 1>(device, managed, *given, options);
    case 1: return import <float, 2>(device, managed, *given, options);
    default: return import <vec3, 1>(device, managed, *given, options);
  }
}

// Exports an array, or a view, and imports it again.
void there_and_back(const Device& device, Random& random) {
  std::vector<float> values(60);
  for (float& v : values) v = float(below(random, 1000));
  Array<float, 2> array(device, {6, 10}, values);
  const std::int64_t row = std::int64_t(below(random, 6)), step = 1 + std::int64_t(below(random, 3));
  if (one_in(random, 2)) array = array.slice(row, 6, step);
  if (one_in(random, 2)) array = array.slice(0, 10, step, 1);
  if (one_in(random, 2)) array = array.transpose();
  const DlpackOptions options{.copy = one_in(random, 2), .memory = DlpackMemory::host};
  const auto there = to_dlpack(array, options);
  const Array<float, 2> back = from_dlpack<float, 2>(device, there, {.copy = one_in(random, 2)});
  EXPECT_EQ(back.to_vector(), array.to_vector());
}

void try_all(const Device& device) {
  g_taken = g_refused = 0;
  test::for_each_input(1500, [&](Random& random) {
    if (one_in(random, 20)) return there_and_back(device, random);
    if (one_in(random, 2))
      try_one<DLManagedTensor>(device, random);
    else
      try_one<DLManagedTensorVersioned>(device, random);
  });
  if (g_taken + g_refused < 1000) return;
  EXPECT_TRUE(g_taken > g_refused / 20 && g_refused > g_taken / 20) << g_taken << ", " << g_refused;
}

TEST(DlpackFuzz, tensors_are_what_they_say_or_refused_on_the_interpreter) { try_all(Device("reference")); }
TEST(DlpackFuzz, tensors_are_what_they_say_or_refused_on_vulkan) { try_all(Device(test::software_vulkan())); }

}  // namespace
}  // namespace weft
