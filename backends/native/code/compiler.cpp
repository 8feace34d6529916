// Drives LLVM's C API from text to object code.
#include "compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../frontend/support/platform.h"

namespace weft::backend::native {

namespace {

using abi::Functions;
using abi::Handle;

// Owns an object of LLVM's.
using Owned = std::unique_ptr<void, void (*)(Handle)>;

// The passes that pay: after the emitter and normal form, LLVM's own levels take longer for code that is no faster.
// Named in text, instcombine ends the process from version 18 on if one round of it leaves work for another.
std::string passes(unsigned major) {
  return fmt::format("function(early-cse,loop-mssa(licm),instcombine{},simplifycfg)",
                     major >= 18 ? "<no-verify-fixpoint>" : "");
}

// The most lines of a text that LLVM improves. Where thousands of values are without a register, as in adjoints of
// large kernels, its passes take more than the square of their number: 72,000 lines took more than 5 minutes with them
// and take half a minute without, 41,000 lines 5 s and 1.5.
constexpr std::ptrdiff_t kMostLines = 30'000;

// The most bytes of a host thread's stack that a kernel's code may take, of 8 MiB that threads mostly have.
constexpr const char* kMostStack = "4194304";

// One compilation.
class Session {
 public:
  Session(const Library& library, const Processor& processor)
      : library_(library),
        calls_(library.calls),
        context_(calls_.context_create(), calls_.context_dispose),
        machine_(library.create_machine(processor.name, processor.features), calls_.dispose_machine),
        module_(nullptr, calls_.dispose_module) {
    if (!machine_) unsupported("{} makes no code for {}", library.toolchain.version, processor.name);
    // Without a handler, LLVM ends the process at an error.
    calls_.set_diagnostic_handler(context_.get(), &Session::note, this);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read(const std::string& text) {
    // In one line with the first of the text, so that messages name the lines of the text.
    const std::string whole =
        fmt::format("target triple = \"{}\" target datalayout = \"{}\" {}", triple(), library_.layout, text);
    const Handle buffer = calls_.copy_to_buffer(whole.data(), whole.size(), "kernel");
    Handle module = nullptr;
    char* message = nullptr;
    const bool refused = calls_.parse(context_.get(), buffer, &module, &message);
    module_.reset(module);
    if (refused) refuse(message);
    message = nullptr;
    const bool invalid = calls_.verify(module_.get(), abi::kReturnStatus, &message);
    if (invalid) refuse(message);
    if (message) calls_.dispose_message(message);
  }

  // Functions never throw, and use no memory below the stack's end, which Windows may change at any time. On Windows
  // the entry follows its calling convention, and large frames touch their pages in order.
  void set_attributes() {
    const bool windows = platform::call_rules().windows && kHostMachine == Machine::x86_64;
    const abi::Attribute attributes[] = {enum_attribute("nounwind"), enum_attribute("noredzone"),
                                         text_attribute("warn-stack-size", kMostStack),
                                         text_attribute("probe-stack", "inline-asm")};
    const auto used = std::span(attributes).first(windows ? 4 : 3);
    for (Handle f = calls_.first_function(module_.get()); f; f = calls_.next_function(f)) {
      if (calls_.is_declaration(f)) continue;
      for (const abi::Attribute a : used) calls_.add_attribute(f, abi::kOfTheFunction, a);
    }
    const Handle entry = calls_.named_function(module_.get(), llvm::kEntryName);
    if (windows && entry) calls_.set_calling_convention(entry, abi::kWindowsCalls);
  }

  void optimise() {
    const Owned options(calls_.pass_options(), calls_.dispose_pass_options);
    const Handle error =
        calls_.run_passes(module_.get(), passes(library_.major).c_str(), machine_.get(), options.get());
    if (error) {
      char* const message = calls_.error_message(error);
      const std::string text = message ? message : "";
      calls_.dispose_error_message(message);
      fail(text);
    }
    if (!diagnostics_.empty()) fail(diagnostics_);
  }

  // Has LLVM only translate, and find registers.
  void hurry() {
    for (Handle f = calls_.first_function(module_.get()); f; f = calls_.next_function(f))
      if (!calls_.is_declaration(f))
        for (const char* name : {"noinline", "optnone"})
          calls_.add_attribute(f, abi::kOfTheFunction, enum_attribute(name));
  }

  std::vector<std::byte> emit() {
    char* message = nullptr;
    Handle made = nullptr;
    const bool failed = calls_.emit(machine_.get(), module_.get(), abi::kObjectFile, &message, &made);
    const Owned buffer(made, calls_.dispose_buffer);
    if (failed) fail(taken(message));
    if (!diagnostics_.empty()) fail(diagnostics_);
    if (!stack_.empty())
      unsupported(
          "the kernel keeps more values at a time than fit on the stack of a host thread ({} bytes): {}. Split the "
          "kernel; an adjoint keeps fewer where loops are not unrolled",
          kMostStack, stack_);
    const auto bytes = std::as_bytes(std::span(calls_.buffer_start(made), calls_.buffer_size(made)));
    return {bytes.begin(), bytes.end()};
  }

 private:
  static void note(Handle diagnostic, void* session) {
    auto& self = *static_cast<Session*>(session);
    const std::string text = self.taken(self.calls_.diagnostic_text(diagnostic));
    if (text.starts_with("stack frame size")) self.stack_ = text;
    if (self.calls_.diagnostic_severity(diagnostic) != abi::kSeverityError) return;
    self.diagnostics_ += self.diagnostics_.empty() ? text : "; " + text;
  }

  abi::Attribute enum_attribute(std::string_view name) const {
    return calls_.enum_attribute(context_.get(), calls_.attribute_kind(name.data(), name.size()), 0);
  }
  abi::Attribute text_attribute(std::string_view name, std::string_view value) const {
    return calls_.text_attribute(context_.get(), name.data(), unsigned(name.size()), value.data(),
                                 unsigned(value.size()));
  }

  std::string taken(char* message) const {
    std::string result = message ? message : "";
    if (message) calls_.dispose_message(message);
    return result;
  }

  // Text that is no module is the emitter's fault, unless LLVM is so new that it may have changed its language.
  [[noreturn]] void refuse(char* message) const {
    const std::string text =
        fmt::format("{} refuses the code of a kernel: {}{}", library_.toolchain.version, taken(message), diagnostics_);
    if (library_.major <= kNewestLlvm) internal_error(text.c_str());
    unsupported("{} (weft was tested with versions {} to {}; WEFT_LLVM names another)", text, kOldestLlvm, kNewestLlvm);
  }
  [[noreturn]] void fail(const std::string& why) const {
    unsupported("{} cannot compile the kernel: {}", library_.toolchain.version, why);
  }

  const Library& library_;
  const Functions& calls_;
  std::string diagnostics_, stack_;
  const Owned context_, machine_;
  Owned module_;  // ends before its context
};

}  // namespace

Compiler::Compiler(const Library& library, Processor processor) : library_(library), processor_(std::move(processor)) {}

Compiler* Compiler::find(const Request& request, std::string* why) {
  struct Tried {
    std::unique_ptr<Compiler> compiler;
    std::string why;
  };
  struct All {
    std::mutex mutex;
    std::map<Request, Tried> tried;
  };
  static All* const all = new All;
  std::lock_guard lock(all->mutex);
  const auto [at, first] = all->tried.try_emplace(request);
  Tried& t = at->second;
  if (first) try {
      if (const Library* const library = Library::find(request.library, &t.why))
        t.compiler.reset(new Compiler(*library, choose_processor(library->toolchain.host, request)));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unsupported) {
        all->tried.erase(at);
        throw;
      }
      t.why = e.message();
    }
  if (!t.compiler && !request.library.empty() && request.library != kNoLibrary)
    invalid(
        "WEFT_LLVM is '{}', and that library cannot be taken: {}. The path or name of a library of LLVM from "
        "version {} on is needed, or {}",
        request.library, t.why, kOldestLlvm, kNoLibrary);
  if (why) *why = t.why;
  return t.compiler.get();
}

Compiler* Compiler::find(std::string* why) { return find(Request::from_environment(), why); }

std::vector<std::byte> Compiler::compile(const std::string& text) const {
  Session session(library_, processor_);
  session.read(text);
  session.set_attributes();
  if (std::ranges::count(text, '\n') > kMostLines) session.hurry();
  session.optimise();
  return session.emit();
}

}  // namespace weft::backend::native
