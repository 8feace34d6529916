// DLPack's structs, including those of version 1 if the installed header is older. Internal: users include a header of
// their own.
#pragma once
#include <dlpack/dlpack.h>

#ifndef DLPACK_MAJOR_VERSION
// The additions of version 1, as its binary interface fixes them: https://dmlc.github.io/dlpack/latest/c_api.html
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
#endif

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80,
              "the layout that libraries agree on");
