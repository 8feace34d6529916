// Tensors of another library, for the tests of DLPack.
#pragma once
#include <weft/weft.h>

#include <memory>
#include <numeric>
#include <vector>

#include "../../../runtime/exchange/dlpack_abi.h"

namespace weft::test {

inline auto add_one() {
  return kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
}

/// A tensor with all that its deleter frees. `Managed` is one of DLPack's two structs.
template <class Managed>
struct Foreign {
  Managed managed{};
  std::shared_ptr<void> owner;
  std::vector<std::int64_t> shape, strides;
  int* deleted;

  /// A tensor of 64 floats 0, 1, 2, ... of the host.
  static Managed* make(std::vector<std::int64_t> shape, int& deleted, std::vector<std::int64_t> strides = {}) {
    const auto memory = std::make_shared<std::vector<float>>(64);
    std::iota(memory->begin(), memory->end(), 0.f);
    return make(DLDevice{kDLCPU, 0}, memory->data(), std::move(shape), deleted, std::move(strides), memory);
  }
  /// A tensor on one of CUDA's devices.
  static Managed* make(int device, float* data, std::vector<std::int64_t> shape, int& deleted,
                       std::vector<std::int64_t> strides = {}, std::shared_ptr<void> owner = {}) {
    return make(DLDevice{kDLCUDA, device}, data, std::move(shape), deleted, std::move(strides), std::move(owner));
  }
  static float& at(Managed* m, int k) { return static_cast<float*>(m->dl_tensor.data)[k]; }

 private:
  static Managed* make(DLDevice device, float* data, std::vector<std::int64_t> shape, int& deleted,
                       std::vector<std::int64_t> strides, std::shared_ptr<void> owner) {
    auto made = std::make_unique<Foreign>();
    made->owner = std::move(owner);
    made->shape = std::move(shape);
    made->strides = std::move(strides);
    made->deleted = &deleted;
    DLTensor& t = made->managed.dl_tensor;
    t.data = data;
    t.device = device;
    t.ndim = int(made->shape.size());
    t.dtype = {kDLFloat, 32, 1};
    t.shape = made->shape.data();
    t.strides = made->strides.empty() ? nullptr : made->strides.data();
    made->managed.manager_ctx = made.get();
    made->managed.deleter = remove;
    if constexpr (requires { made->managed.version; }) made->managed.version = {1, 0};
    return &made.release()->managed;
  }
  static void remove(Managed* self) {
    const std::unique_ptr<Foreign> owned(static_cast<Foreign*>(self->manager_ctx));
    ++*owned->deleted;
  }
};
using Old = Foreign<DLManagedTensor>;
using New = Foreign<DLManagedTensorVersioned>;

}  // namespace weft::test
