// Exported kernels in programs without weft: what a .json says of its .spv, and argument blocks. C99, and C++.
//
// The caller makes the pipeline, has the memory, and records the dispatch: no Vulkan is called here. docs/exporting.md
// has a launch from beginning to end. Functions that can fail return WEFT_LOADER_OK or another status and leave a
// message for the thread, weft_loader_error(). A kernel may be read by several threads at once.
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_LOADER_API __attribute__((visibility("default")))
#else
#define WEFT_LOADER_API /* Windows: everything is exported, by CMake */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** An exported kernel: a module and how it is launched. */
typedef struct weft_kernel weft_kernel;

typedef enum weft_loader_status {
  WEFT_LOADER_OK = 0,
  WEFT_LOADER_IO = 1,               /**< a file cannot be read */
  WEFT_LOADER_BAD_KERNEL = 2,       /**< no such JSON, another version of it, or another module than it describes */
  WEFT_LOADER_INVALID_ARGUMENT = 3, /**< a null pointer, no such argument, a size or alignment that it cannot have */
  WEFT_LOADER_OUT_OF_MEMORY = 4
} weft_loader_status;

/** What the last function of this thread that failed found; "" before. */
WEFT_LOADER_API const char* weft_loader_error(void);

/** Reads NAME.json, and NAME.spv beside it. */
WEFT_LOADER_API weft_loader_status weft_kernel_open(const char* json_path, weft_kernel** kernel);
/** The same from memory, which is copied. spirv need not be aligned. */
WEFT_LOADER_API weft_loader_status weft_kernel_read(const char* json, size_t json_bytes, const void* spirv,
                                                    size_t spirv_bytes, weft_kernel** kernel);
/** Null is fine. */
WEFT_LOADER_API void weft_kernel_close(weft_kernel* kernel);

/** The whole of a kernel. Strings and words live as long as the kernel. */
typedef struct weft_kernel_info {
  const char* name;
  const char* entry_point; /**< of the module */
  const uint32_t* words;   /**< the module */
  size_t word_count;       /**< for VkShaderModuleCreateInfo::codeSize: times 4 */
  int is_adjoint;          /**< 0 or 1 */
  uint32_t workgroup_size; /**< threads, along x */
  uint32_t block_bytes;    /**< of the argument block */
  int by_address;          /**< 1: the block lies in memory, aligned to 8, and its u64 address is pushed */
  uint32_t push_bytes;     /**< of the push constants, from offset 0, for compute shaders: the block, or 8 */
  uint32_t dimensions;     /**< extents that a launch has; 0: one, for a kernel that asks for no coordinates */
  int whole_workgroups;    /**< 1: the number of threads must be a multiple of workgroup_size */
  uint32_t shared_bytes;   /**< memory that a workgroup shares */
  uint32_t subgroup_size;  /**< not 0: VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT, this size */
  uint32_t argument_count;
} weft_kernel_info;
WEFT_LOADER_API weft_loader_status weft_kernel_describe(const weft_kernel* kernel, weft_kernel_info* info);

/** What an argument is for; see docs/exporting.md. */
typedef enum weft_argument_role {
  WEFT_ARGUMENT = 0,
  WEFT_GRADIENT = 1,
  WEFT_AFTER = 2,
  WEFT_OWNERS = 3,
  WEFT_SCRATCH = 4,
  WEFT_LOG = 5,
  WEFT_FIRST_THREAD = 6,
  WEFT_LANES = 7,
  WEFT_FAILURES = 8
} weft_argument_role;

typedef struct weft_argument {
  const char* name;
  const char* type; /**< "float32", "vec3", "Array<vec3, 2>" */
  weft_argument_role role;
  uint32_t of;         /**< gradient, after, owners: index of the argument that it is about */
  uint32_t offset;     /**< in the argument block */
  uint32_t bytes;      /**< there */
  uint32_t dimensions; /**< of an array; 0: a value */
  int strided;         /**< 1: the array has strides */
  uint32_t element_bytes, alignment;
  int reads, writes, restored;
  uint32_t unit;             /**< owners */
  uint32_t bytes_per_thread; /**< scratch, log */
} weft_argument;
WEFT_LOADER_API weft_loader_status weft_kernel_argument(const weft_kernel* kernel, uint32_t index, weft_argument* out);
/** Its index, or -1; weft_loader_error() then says which names there are, as do calls that are handed the -1. They are
    those that the kernel was exported with: see docs/exporting.md. */
WEFT_LOADER_API int32_t weft_kernel_find(const weft_kernel* kernel, const char* name);

/** What the device must have. */
typedef enum weft_requirement {
  WEFT_FEATURES = 0,          /**< of feature structures, turned on: "bufferDeviceAddress", "shaderFloat64" */
  WEFT_DEVICE_EXTENSIONS = 1, /**< turned on, unless the device's version of Vulkan has them in its core */
  WEFT_PROPERTIES = 2,        /**< true: "VK_SUBGROUP_FEATURE_VOTE_BIT", "shaderRoundingModeRTEFloat32" */
  WEFT_CAPABILITIES = 3,      /**< of the module: "Int64" */
  WEFT_SPIRV_EXTENSIONS = 4
} weft_requirement;
/** Number `index` of them; null behind the last. */
WEFT_LOADER_API const char* weft_kernel_requirement(const weft_kernel* kernel, weft_requirement which, uint32_t index);

/** Zeros the block, of weft_kernel_info.block_bytes. */
WEFT_LOADER_API weft_loader_status weft_block_clear(const weft_kernel* kernel, void* block);
/** A value: `bytes` of the C or C++ type, whose layout is tight. */
WEFT_LOADER_API weft_loader_status weft_block_set_value(const weft_kernel* kernel, void* block, uint32_t argument,
                                                        const void* value, size_t bytes);
/** An array at a device address. `shape` has weft_argument.dimensions sizes, in elements; `strides` as many, in bytes
    and not negative, or is null for elements that lie side by side in row-major order, as an argument without strides
    wants them. */
WEFT_LOADER_API weft_loader_status weft_block_set_array(const weft_kernel* kernel, void* block, uint32_t argument,
                                                        uint64_t address, const int64_t* shape, const int64_t* strides);

/** How many workgroups to dispatch. */
typedef struct weft_groups {
  uint32_t x, y, z;
} weft_groups;
/** The threads of the launch, `extents` of `rank` dimensions (weft_kernel_info.dimensions; 1 to 4 where that is 0), the
    last of which varies fastest. max_groups_x is the device's maxComputeWorkGroupCount[0]. */
WEFT_LOADER_API weft_loader_status weft_block_set_threads(const weft_kernel* kernel, void* block,
                                                          const int64_t* extents, uint32_t rank, uint32_t max_groups_x,
                                                          weft_groups* groups);
/** A part of it, for an adjoint with `lanes`: threads first, first + 1, ..., of which there are `count` (a multiple of
    workgroup_size where whole_workgroups is 1). Sets the argument of role WEFT_FIRST_THREAD, where there is one.
    To be called after weft_block_set_threads. */
WEFT_LOADER_API weft_loader_status weft_block_set_part(const weft_kernel* kernel, void* block, uint32_t first,
                                                       uint32_t count, uint32_t max_groups_x, weft_groups* groups);

#ifdef __cplusplus
}
#endif
