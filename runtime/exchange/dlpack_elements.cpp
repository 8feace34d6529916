// Checks a tensor's description of its elements.
#include "dlpack_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../detail/host_vector.h"

namespace weft::detail {

namespace {

std::string type_name(const DLDataType& type) {
  constexpr const char* kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  std::string name = type.code < std::size(kNames) ? kNames[type.code] : fmt::format("type {} of ", type.code);
  if (!(type.code == 6 && type.bits == 8)) name += std::to_string(type.bits);
  return type.lanes == 1 ? name : fmt::format("{} in {} lanes", name, type.lanes);
}

// The type as a number: a tensor from elsewhere may have one outside the enumeration.
int type_of(const DLDevice& device) {
  static_assert(sizeof device.device_type == sizeof(int));
  int type = 0;
  std::memcpy(&type, &device.device_type, sizeof type);
  return type;
}

std::string device_name(const DLDevice& device) {
  switch (type_of(device)) {
    case 1: return "the CPU";
    case 2: return "CUDA";
    case 3: return "CUDA (pinned memory of the host)";
    case 4: return "OpenCL";
    case 7: return "Vulkan";
    case 8: return "Metal";
    case 10: return "ROCm";
    case 11: return "ROCm (pinned memory of the host)";
    case 13: return "CUDA (managed memory)";
    case 14: return "oneAPI";
    default: return fmt::format("device type {}", type_of(device));
  }
}

// No elements overlap if, from the smallest stride to the largest, each stride exceeds everything before it.
bool overlap(const Elements& e, int ndim, std::uint32_t element_bytes) {
  std::vector<std::size_t> order(static_cast<std::size_t>(ndim));
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::sort(order, {}, [&](std::size_t d) { return e.stride[d]; });
  std::int64_t end = element_bytes;
  for (const std::size_t d : order) {
    if (e.shape[d] == 1) continue;
    if (e.stride[d] < end) return true;
    end += (e.shape[d] - 1) * e.stride[d];
  }
  return false;
}

// Strides of the tensor, in scalars; missing ones are row-major.
std::vector<std::int64_t> strides_of(const DLTensor& t) {
  std::vector<std::int64_t> strides(std::size_t(t.ndim));
  if (t.strides) std::copy_n(t.strides, t.ndim, strides.begin());
  std::int64_t tight = 1;
  for (int k = t.ndim; k-- > 0;) {
    if (t.shape[k] < 0) invalid("DLPack: size {} of dimension {} is negative", t.shape[k], k);
    if (!t.strides) strides[std::size_t(k)] = tight;
    if (__builtin_mul_overflow(tight, std::max<std::int64_t>(t.shape[k], 1), &tight) || tight > INT64_MAX / 64)
      invalid("DLPack: its sizes are larger than any memory");
  }
  return strides;
}

}  // namespace

Runs runs_of(const Elements& e, int ndim, std::uint32_t element_bytes) {
  // The cost of a separate copy, in bytes that might be copied meanwhile.
  constexpr std::uint64_t kPerRun = 16 << 10;
  const std::uint64_t bytes = std::uint64_t(e.count) * element_bytes;
  Runs runs{element_bytes, {}, true};
  int outer = ndim;
  for (; outer > 0; runs.bytes *= std::uint64_t(e.shape[std::size_t(outer)])) {
    const auto k = std::size_t(outer - 1);
    if (e.shape[k] != 1 && std::uint64_t(e.stride[k]) != runs.bytes) break;
    --outer;
  }
  const std::uint64_t count = bytes / runs.bytes;
  if ((e.extent - bytes) / kPerRun < count) return {e.extent, {0}, false};
  runs.offsets = host_vector<std::uint64_t>(count);
  std::array<std::int64_t, 4> at{};
  for (std::uint64_t& offset : runs.offsets) {
    offset = std::uint64_t(std::inner_product(at.begin(), at.begin() + outer, e.stride.begin(), std::int64_t(0)));
    for (int k = outer; k-- > 0 && ++at[std::size_t(k)] == e.shape[std::size_t(k)];) at[std::size_t(k)] = 0;
  }
  return runs;
}

namespace {

// Notes the CUDA device that owns the memory, if it is not the host's.
void take_device(Elements& e, const DLTensor& t) {
  switch (type_of(t.device)) {
    case kDLCPU:
    case kDLCUDAHost: break;
    case kDLCUDA:
    case kDLCUDAManaged:
      if (t.device.device_id < 0) invalid("DLPack: the tensor is on CUDA device {}", t.device.device_id);
      e.cuda_device = t.device.device_id;
      break;
    default:
      unsupported("DLPack: the tensor is in memory of {}; arrays are made of tensors on the CPU (kDLCPU) and on CUDA",
                  device_name(t.device));
  }
}

void take_shape(Elements& e, const DLTensor& t, const DlpackElement& element, int ndim,
                const std::vector<std::int64_t>& strides) {
  for (std::size_t k = 0; k < std::size_t(ndim); ++k) {
    e.shape[k] = t.shape[k];
    e.count *= t.shape[k];
    if (t.shape[k] <= 1) {  // the stride leads nowhere, and some libraries put there what must not be used
      if (__builtin_mul_overflow(strides[k], std::int64_t(element.bytes), &e.stride[k]) || e.stride[k] < 0)
        e.stride[k] = 0;
      continue;
    }
    if (strides[k] < 0) invalid("DLPack: stride {} of dimension {} is negative", strides[k], k);
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(strides[k], std::int64_t(element.bytes), &e.stride[k]) ||
        __builtin_mul_overflow(e.stride[k], t.shape[k] - 1, &reach) ||
        __builtin_add_overflow(e.extent, std::uint64_t(reach), &e.extent) || e.extent > std::uint64_t(INT64_MAX))
      invalid("DLPack: its strides are larger than any memory");
  }
}

void take_data(Elements& e, const DLTensor& t, const DlpackElement& element) {
  if (!t.data) invalid("DLPack: its data is null");
  auto begin = reinterpret_cast<std::uintptr_t>(t.data);
  if (__builtin_add_overflow(begin, t.byte_offset, &begin) || e.extent > UINTPTR_MAX - begin)
    invalid("DLPack: its data with the byte_offset of {} reach beyond all memory", t.byte_offset);
  e.data = reinterpret_cast<std::byte*>(begin);
  if (begin % element.bytes)
    invalid("DLPack: its data with the byte_offset of {} is not aligned to scalars of {} bytes", t.byte_offset,
            element.bytes);
}

}  // namespace

Elements elements_of(const DLTensor& t, const DlpackElement& element, int ndim, std::uint32_t element_bytes) {
  Elements e;
  take_device(e, t);
  const DLDataType wanted{element.code, element.bits, 1};
  if (t.dtype.code != wanted.code || t.dtype.bits != wanted.bits || t.dtype.lanes != 1)
    invalid("DLPack: the tensor's elements are {}, and the array's scalars are {}", type_name(t.dtype),
            type_name(wanted));
  if (t.ndim != ndim + element.dimensions)
    invalid("DLPack: the tensor has {} dimensions, and the array {}{}", t.ndim, ndim,
            element.dimensions ? fmt::format(" and {} of its elements", element.dimensions) : "");
  if (!t.shape) invalid("DLPack: its shape is null");
  const std::vector<std::int64_t> strides = strides_of(t);
  std::int64_t tight = 1;
  for (int k = element.dimensions; k-- > 0;) {
    const int d = ndim + k;
    if (t.shape[d] != element.sizes[k])
      invalid("DLPack: dimension {} of the tensor has {} elements, and the array's elements have {} there", d,
              t.shape[d], element.sizes[k]);
    if (t.shape[d] != 1 && strides[std::size_t(d)] != tight)
      invalid("DLPack: the scalars of an element do not lie in a row: dimension {} has a stride of {}", d,
              strides[std::size_t(d)]);
    tight *= element.sizes[k];
  }
  e.extent = element_bytes;
  take_shape(e, t, element, ndim, strides);
  if (e.count == 0) {
    e.extent = 0;
    return e;
  }
  take_data(e, t, element);
  if (overlap(e, ndim, element_bytes)) invalid("DLPack: its strides let elements lie on each other");
  return e;
}

}  // namespace weft::detail
