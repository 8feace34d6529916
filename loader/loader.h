// Exported kernels in C99 and C++ programs without weft: reads the .json that describes a .spv, fills argument blocks.
//
// The caller makes the pipeline, has the memory, and records the dispatch: nothing here calls Vulkan. docs/exporting.md
// has a complete launch. Functions that can fail return WEFT_LOADER_OK or another status, and leave a message for the
// thread in weft_loader_error(). Several threads may read a kernel at once.
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

/** The message of the last failed call of this thread; "" before any. */
WEFT_LOADER_API const char* weft_loader_error(void);

/** Reads NAME.json, and NAME.spv beside it. */
WEFT_LOADER_API weft_loader_status weft_kernel_open(const char* json_path, weft_kernel** kernel);
/** Reads a kernel from memory, which is copied. spirv need not be aligned. */
WEFT_LOADER_API weft_loader_status weft_kernel_read(const char* json, size_t json_bytes, const void* spirv,
                                                    size_t spirv_bytes, weft_kernel** kernel);
/** Frees a kernel; null is allowed. */
WEFT_LOADER_API void weft_kernel_close(weft_kernel* kernel);

/** The description of a kernel. Strings and words live as long as the kernel. */
typedef struct weft_kernel_info {
  const char* name;
  const char* entry_point; /**< of the module */
  const uint32_t* words;   /**< the module */
  size_t word_count;       /**< VkShaderModuleCreateInfo::codeSize is 4 times this */
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

/** The purpose of an argument; see docs/exporting.md. */
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
  uint32_t of;         /**< gradient, after, owners: the index of the argument that it belongs to */
  uint32_t offset;     /**< in the argument block, bytes */
  uint32_t bytes;      /**< there */
  uint32_t dimensions; /**< of an array; 0: a value */
  int strided;         /**< 1: the array has strides */
  uint32_t element_bytes, alignment;
  int reads, writes, restored;
  uint32_t unit;             /**< owners */
  uint32_t bytes_per_thread; /**< scratch, log */
} weft_argument;
WEFT_LOADER_API weft_loader_status weft_kernel_argument(const weft_kernel* kernel, uint32_t index, weft_argument* out);
/** The index of an argument, or -1. weft_loader_error() then lists the names of the arguments, and so do calls that are
    handed the -1. The names are those of the export: see docs/exporting.md. */
WEFT_LOADER_API int32_t weft_kernel_find(const weft_kernel* kernel, const char* name);

/** The requirements of a kernel to the device, by kind. */
typedef enum weft_requirement {
  WEFT_FEATURES = 0,          /**< of feature structures, turned on: "bufferDeviceAddress", "shaderFloat64" */
  WEFT_DEVICE_EXTENSIONS = 1, /**< turned on, unless the device's version of Vulkan has them in its core */
  WEFT_PROPERTIES = 2,        /**< true: "VK_SUBGROUP_FEATURE_VOTE_BIT", "shaderRoundingModeRTEFloat32" */
  WEFT_CAPABILITIES = 3,      /**< of the module: "Int64" */
  WEFT_SPIRV_EXTENSIONS = 4
} weft_requirement;
/** Requirement number `index` of a kind; null after the last one. */
WEFT_LOADER_API const char* weft_kernel_requirement(const weft_kernel* kernel, weft_requirement which, uint32_t index);

/** Sets all weft_kernel_info.block_bytes of the block to zero. */
WEFT_LOADER_API weft_loader_status weft_block_clear(const weft_kernel* kernel, void* block);
/** Sets an argument to a value: `bytes` of the C or C++ type, whose layout is tight. */
WEFT_LOADER_API weft_loader_status weft_block_set_value(const weft_kernel* kernel, void* block, uint32_t argument,
                                                        const void* value, size_t bytes);
/** Sets an argument to an array at a device address. `shape` has weft_argument.dimensions sizes, in elements. `strides`
    has as many, in bytes and not negative; null stands for contiguous elements in row-major order, which an argument
    without strides requires. */
WEFT_LOADER_API weft_loader_status weft_block_set_array(const weft_kernel* kernel, void* block, uint32_t argument,
                                                        uint64_t address, const int64_t* shape, const int64_t* strides);

/** The number of workgroups to dispatch. */
typedef struct weft_groups {
  uint32_t x, y, z;
} weft_groups;
/** Sets the threads of the launch: `extents` of `rank` dimensions (weft_kernel_info.dimensions; 1 to 4 if that is 0),
    the last of which varies fastest. max_groups_x is the device's maxComputeWorkGroupCount[0]. */
WEFT_LOADER_API weft_loader_status weft_block_set_threads(const weft_kernel* kernel, void* block,
                                                          const int64_t* extents, uint32_t rank, uint32_t max_groups_x,
                                                          weft_groups* groups);
/** Sets a part of the launch, for an adjoint with `lanes`: `count` threads from `first` on (a multiple of
    workgroup_size if whole_workgroups is 1). Also sets the argument of role WEFT_FIRST_THREAD, if there is one. Call
    it after weft_block_set_threads(). */
WEFT_LOADER_API weft_loader_status weft_block_set_part(const weft_kernel* kernel, void* block, uint32_t first,
                                                       uint32_t count, uint32_t max_groups_x, weft_groups* groups);

#ifdef __cplusplus
}
#endif
