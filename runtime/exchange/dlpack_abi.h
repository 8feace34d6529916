// DLPack's structs, including those of version 1 if the installed header is older. Internal: users include a header of
// their own.
#pragma once
#include <dlpack/dlpack.h>

#include <cstdint>

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

namespace weft::detail {

/// The table of functions by which a type of Python's gives its tensors without a call of Python's
/// (`DLPackExchangeAPI` of version 1.2, which installed headers may lack): a capsule named kDlpackExchange in the
/// type's attribute `__dlpack_c_exchange_api__`. The functions return 0, or another number with Python's error set.
struct DlpackExchange {
  DLPackVersion version;
  DlpackExchange* older;  ///< of an earlier major version; null: none
  void* allocate;
  int (*export_tensor)(void* object, DLManagedTensorVersioned** out);
  int (*import_tensor)(DLManagedTensorVersioned* tensor, void** out);
  int (*describe)(void* object, DLTensor* out);  ///< null, or keeps nothing: valid as long as the object is
  int (*work_stream)(DLDeviceType type, std::int32_t id, void** out);
};
inline constexpr const char* kDlpackExchange = "dlpack_exchange_api";

}  // namespace weft::detail

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80,
              "the layout that libraries agree on");
