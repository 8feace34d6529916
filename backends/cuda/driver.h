// CUDA's driver library, found at run time: its functions, its devices, their contexts.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver_abi.h"

namespace weft::backend::cuda {

using DeviceUuid = std::array<std::uint8_t, 16>;

/// The library, started. Lives until the process ends. Thread-safe.
class Driver {
 public:
  /// The library of this machine: libcuda.so.1 or nvcuda.dll, or the one that WEFT_CUDA_DRIVER names, as the system's
  /// loader takes names. Null where it cannot be had, and why in `why` if that is given. Asked once for each name.
  static const Driver* find(std::string* why = nullptr);
  /// Errors: Error(no_device) where find() is null.
  static const Driver& get();

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// In the order of CUDA's numbers, which are those of the runtime library, too: CUDA_VISIBLE_DEVICES counts.
  int count() const { return static_cast<int>(devices_.size()); }
  abi::Device device(int number) const { return devices_[static_cast<std::size_t>(number)].handle; }
  /// The number of the device with this UUID, which is VkPhysicalDeviceIDProperties::deviceUUID of the same GPU.
  std::optional<int> find_device(const DeviceUuid& uuid) const;

  const abi::Functions& calls() const { return calls_; }
  /// Errors: unless it is a success, Error that names `call` and the result: out_of_memory; invalid_argument for a
  /// handle that is none; device_lost where CUDA runs nothing any more since a kernel failed; unsupported for all else.
  void check(abi::Result result, const char* call) const;
  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string describe(abi::Result result) const;

 private:
  friend class Context;
  Driver() = default;
  std::string start(const std::string& library);

  abi::Functions calls_;
  struct Known {
    abi::Device handle = 0;
    DeviceUuid uuid{};
  };
  std::vector<Known> devices_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<const class Context>> contexts_;  ///< by device
};

/// A device's primary context, which is the one of all that use CUDA's runtime library, held.
class Context {
 public:
  /// The one that is held already, or one that is from now on, until the last who asked for it has gone.
  /// Errors: as Driver::check().
  static std::shared_ptr<const Context> hold(const Driver& driver, int device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  int device() const { return device_; }
  bool is(abi::ContextHandle handle) const { return handle == handle_; }

  /// Waits until CUDA has run all that it was given in this context, by whomever. A wait would end a capture of streams
  /// (cuStreamBeginCapture) that is under way, so that there is none then, as far as CUDA tells: it does not tell of
  /// streams that do not wait for the default stream.
  /// \return false where that could not be waited for. Where the context is broken or gone, all has run.
  bool finish() const noexcept;

  /// Makes it the calling thread's context, and the one before again at its end. Calls that CUDA forbids while a stream
  /// is captured, as they might have been meant for the capture, are allowed meanwhile: these are not.
  class Scope {
   public:
    /// Errors: as Driver::check().
    explicit Scope(const Context& context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const abi::Functions& calls_;
    int capture_mode_ = abi::kCaptureRelaxed;  // of the thread, before
  };

 private:
  Context(const Driver& driver, int device);

  const Driver& driver_;
  const int device_;
  abi::ContextHandle handle_ = nullptr;
};

}  // namespace weft::backend::cuda
