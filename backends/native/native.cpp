// Opens the native device: what the processor and LLVM are, how many threads it has, where its programs come from.
#include "native.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../../frontend/support/platform.h"
#include "code/programs.h"
#include "device.h"
#include "faults.h"
#include "program.h"

namespace weft::backend {

namespace native {

namespace {

// Code that stays as long as it may be called.
struct CompiledBody {
  explicit CompiledBody(NativeProgram made)
      : code(std::move(made.code)), body(made.entry, made.split, made.arena_bytes) {}
  const std::shared_ptr<const LoadedCode> code;
  const Body body;
};

class CompiledProgram final : public DeviceProgram {
 public:
  CompiledProgram(const ir::Module& kernel, detail::Hash128 hash, Programs& programs)
      : DeviceProgram(kernel), programs_(programs), hash_(hash), body_(programs.compile(kernel, hash, true)) {
    if (body_.body.split == llvm::Split::rows) kernel_ = std::make_unique<const ir::Module>(kernel);
  }
  const Body& body() const override { return body_.body; }
  const Body& by_threads() const override {
    if (!kernel_) return body();
    const std::lock_guard lock(mutex_);
    if (!by_threads_ && !lacks_by_threads_) try {
        by_threads_ = std::make_unique<const CompiledBody>(programs_.compile(*kernel_, hash_, false));
      } catch (const Error&) {
        lacks_by_threads_ = true;  // no LLVM any more, or no memory: the launch is right by rows too
      }
    return by_threads_ ? by_threads_->body : body();
  }

 private:
  Programs& programs_;
  const detail::Hash128 hash_;
  const CompiledBody body_;
  std::unique_ptr<const ir::Module> kernel_;  // of a program by rows, which may be compiled again
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const CompiledBody> by_threads_;
  mutable bool lacks_by_threads_ = false;
};

class CompiledPrograms final : public ProgramSource {
 public:
  explicit CompiledPrograms(std::unique_ptr<Programs> programs) : programs_(std::move(programs)) {}
  std::shared_ptr<DeviceProgram> program(const ir::Module& module, detail::Hash128 hash) override {
    return std::make_shared<CompiledProgram>(module, hash, *programs_);
  }
  CompileStats stats() const override { return programs_->stats(); }

 private:
  const std::unique_ptr<Programs> programs_;
};

int threads_from_environment() {
  constexpr std::uint64_t kMost = 1024;
  const std::uint64_t usual = std::min(std::uint64_t(platform::processors()), kMost);
  const std::uint64_t threads = platform::environment_number("WEFT_THREADS", usual);
  if (threads == 0 || threads > kMost)
    invalid("WEFT_THREADS is {}; a launch runs on 1 to {} threads of the host", threads, kMost);
  return int(threads);
}

// Threads of the parent may hold locks of the compiler for ever.
void refuse_in_child() {
  if (left_behind_by_fork())
    throw Error(ErrorKind::device_lost,
                "\"cpu\" was opened before this process was forked, and has stayed with its parent: fork before the "
                "first device is opened, or start another program in the child");
}

}  // namespace

}  // namespace native

std::unique_ptr<Device> open_native() {
  using namespace native;
  refuse_in_child();
  std::string why;
  std::unique_ptr<Programs> programs = Programs::open(&why);
  if (!programs) throw Error(ErrorKind::no_device, fmt::format("\"cpu\" has no compiler: {}", why));
  NativeDevice::Options options;
  options.threads = threads_from_environment();
  options.info.name = "cpu";
  options.info.adapter = platform::processor_name();
  if (options.info.adapter.empty()) options.info.adapter = programs->processor().name;
  options.info.driver = "weft, " + programs->llvm();
  options.info.cache_key = programs->key();
  options.fused = programs->processor().target.fused;
  options.info.host_threads = std::uint32_t(options.threads);
  options.info.subgroup_size = programs->processor().target.lanes;
  if (platform::environment_flag("WEFT_CATCH_FAULTS", false)) name_faults();
  return std::make_unique<NativeDevice>(std::move(options), std::make_unique<CompiledPrograms>(std::move(programs)));
}

bool has_native(std::string* why) {
  native::refuse_in_child();
  return native::Programs::open(why) != nullptr;
}

}  // namespace weft::backend
