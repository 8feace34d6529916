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

/// The started library. Lives until the process ends. Thread-safe.
class Driver {
 public:
  /// The library of this machine: libcuda.so.1 or nvcuda.dll, or the one that WEFT_CUDA_DRIVER names, resolved by the
  /// system's loader. Null if it cannot be loaded; `why` then says why. Each name is tried once.
  static const Driver* find(std::string* why = nullptr);
  /// Errors: Error(no_device) where find() is null.
  static const Driver& get();

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Devices are in the order of CUDA's numbers, which the runtime library shares: CUDA_VISIBLE_DEVICES counts.
  int count() const { return static_cast<int>(devices_.size()); }
  abi::Device device(int number) const { return devices_[static_cast<std::size_t>(number)].handle; }
  /// The number of the device with this UUID, which is VkPhysicalDeviceIDProperties::deviceUUID of the same GPU.
  std::optional<int> find_device(const DeviceUuid& uuid) const;

  const abi::Functions& calls() const { return calls_; }
  /// Errors: any result but success throws an Error that names `call` and the result: out_of_memory; invalid_argument
  /// for a handle that is none; device_lost if a failed kernel has ended CUDA's work; unsupported for all else.
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

/// A device's primary context, held: the one that all users of CUDA's runtime library share.
class Context {
 public:
  /// Holds the primary context until the last of its holders has gone.
  /// Errors: as Driver::check().
  static std::shared_ptr<const Context> hold(const Driver& driver, int device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  int device() const { return device_; }
  bool is(abi::ContextHandle handle) const { return handle == handle_; }

  /// Waits until CUDA has run all work that anybody gave it in this context. Waiting would end a capture of streams
  /// (cuStreamBeginCapture), so it does not wait while CUDA reports one; CUDA does not report captures of streams that
  /// do not wait for the default stream.
  /// \return false if it could not wait. If the context is broken or gone, all work counts as run.
  bool finish() const noexcept;

  /// Makes this the calling thread's context while it lives. CUDA forbids some calls while a stream is captured,
  /// because they may be meant for the capture; weft's are not, so they are allowed meanwhile.
  class Scope {
   public:
    /// Errors: as Driver::check().
    explicit Scope(const Context& context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const abi::Functions& calls_;
    int capture_mode_ = abi::kCaptureRelaxed;  // the thread's mode before
  };

 private:
  Context(const Driver& driver, int device);

  const Driver& driver_;
  const int device_;
  abi::ContextHandle handle_ = nullptr;
};

}  // namespace weft::backend::cuda
