// Loads CUDA's driver library.
#include "driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"

namespace weft::backend::cuda {

using namespace abi;

const Driver* Driver::find(std::string* why) {
  struct Tried {
    std::unique_ptr<Driver> driver;
    std::string why;
  };
  // The table lives as long as the process, because objects of CUDA's are released until its very end.
  struct All {
    std::mutex mutex;
    std::map<std::string, Tried> tried;
  };
  static All* const all = new All;
  const std::string name = platform::environment("WEFT_CUDA_DRIVER").value_or("");
  std::lock_guard lock(all->mutex);
  const auto [at, first] = all->tried.try_emplace(name);
  Tried& t = at->second;
  if (first) {
    t.driver.reset(new Driver);
    t.why = t.driver->start(name);
    if (!t.why.empty()) t.driver.reset();
  }
  if (why) *why = t.why;
  return t.driver.get();
}

const Driver& Driver::get() {
  std::string why;
  const Driver* const driver = find(&why);
  if (!driver) throw Error(ErrorKind::no_device, why);
  return *driver;
}

// Returns what went wrong, or an empty text.
std::string Driver::start(const std::string& name) {
  void* library = nullptr;
  if (!name.empty()) {
    library = platform::find_library(name);
    if (!library) return fmt::format("the CUDA driver that WEFT_CUDA_DRIVER names, {}, cannot be loaded", name);
  } else {
    for (const char* usual : {"libcuda.so.1", "nvcuda.dll"})
      if (!library) library = platform::find_library(usual);
    if (!library) return "there is no CUDA driver (libcuda.so.1, nvcuda.dll) on this machine";
  }
  const char* missing = nullptr;
  const auto load = [&](auto& function, const char* symbol) {
    void* const found = platform::find_function(library, symbol);
    if (!found && !missing) missing = symbol;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
#define WEFT_CUDA_LOAD(name, symbol, arguments) load(calls_.name, symbol);
  WEFT_CUDA_FUNCTIONS(WEFT_CUDA_LOAD)
#undef WEFT_CUDA_LOAD
  if (missing) return fmt::format("the CUDA driver on this machine is too old: it lacks {}", missing);
  int count = 0;
  Result result = calls_.init(0);
  if (result == kSuccess) result = calls_.device_get_count(&count);
  for (int k = 0; k < count && result == kSuccess; ++k) {
    Known& known = devices_.emplace_back();
    Uuid uuid{};
    result = calls_.device_get(&known.handle, k);
    if (result == kSuccess) result = calls_.device_get_uuid(&uuid, known.handle);
    std::ranges::copy(uuid.bytes, known.uuid.begin());
  }
  if (result != kSuccess) return fmt::format("the CUDA driver on this machine does not start: {}", describe(result));
  return {};
}

std::optional<int> Driver::find_device(const DeviceUuid& uuid) const {
  const auto found = std::ranges::find(devices_, uuid, &Known::uuid);
  if (found == devices_.end()) return {};
  return static_cast<int>(found - devices_.begin());
}

std::string Driver::describe(Result result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (calls_.get_error_name(result, &name) != kSuccess || !name) return fmt::format("CUDA error {}", result);
  if (calls_.get_error_string(result, &text) != kSuccess || !text) return name;
  return fmt::format("{} ({})", name, text);
}

void Driver::check(Result result, const char* call) const {
  if (result == kSuccess) return;
  const std::string message = fmt::format("{} gave {}", call, describe(result));
  if (result == kOutOfMemory) throw Error(ErrorKind::out_of_memory, message);
  if (result == kInvalidHandle) invalid(message);
  if (std::ranges::find(kBroken, result) != std::end(kBroken))
    throw Error(ErrorKind::device_lost,
                message + ": what CUDA was given before has failed, and it runs nothing more in this process");
  unsupported(message);
}

std::shared_ptr<const Context> Context::hold(const Driver& driver, int device) {
  const auto at = static_cast<std::size_t>(device);
  const auto known = [&]() -> std::weak_ptr<const Context>& {
    if (driver.contexts_.size() <= at) driver.contexts_.resize(at + 1);
    return driver.contexts_[at];
  };
  {
    std::lock_guard lock(driver.mutex_);
    if (auto held = known().lock()) return held;
  }
  // CUDA counts the holders of a primary context, so two threads that arrive here at once do no harm.
  const std::shared_ptr<const Context> made(new Context(driver, device));
  std::lock_guard lock(driver.mutex_);
  known() = made;
  return made;
}

Context::Context(const Driver& driver, int device) : driver_(driver), device_(device) {
  driver_.check(driver_.calls().primary_ctx_retain(&handle_, driver_.device(device_)), "cuDevicePrimaryCtxRetain");
}

Context::~Context() { driver_.calls().primary_ctx_release(driver_.device(device_)); }

bool Context::finish() const noexcept {
  const auto runs_nothing = [](Result result) {
    return result == kDeinitialized || result == kContextIsDestroyed ||
           std::ranges::find(kBroken, result) != std::end(kBroken);
  };
  const Functions& calls = driver_.calls();
  if (const Result result = calls.ctx_push(handle_); result != kSuccess) return runs_nothing(result);
  int status = kNotCapturing;
  Result result =
      calls.stream_is_capturing(nullptr, &status);  // asks whether any capture is under way, and leaves it as it is
  if (result == kSuccess) result = calls.ctx_synchronize();
  ContextHandle popped = nullptr;
  calls.ctx_pop(&popped);
  return result == kSuccess || runs_nothing(result);
}

Context::Scope::Scope(const Context& context) : calls_(context.driver_.calls()) {
  context.driver_.check(calls_.ctx_push(context.handle_), "cuCtxPushCurrent");
  if (calls_.exchange_capture_mode(&capture_mode_) != kSuccess) capture_mode_ = -1;
}

Context::Scope::~Scope() {
  if (capture_mode_ >= 0) calls_.exchange_capture_mode(&capture_mode_);
  ContextHandle popped = nullptr;
  calls_.ctx_pop(&popped);
}

}  // namespace weft::backend::cuda
