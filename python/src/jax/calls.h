// What a call of XLA's holds, and how it ends.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "../../../frontend/ir/module.h"
#include "../../../runtime/core/context.h"
#include "xla_abi.h"

namespace weft::python::xla {

/// The scalar type of a buffer's numbers; none for those that weft lacks.
ir::Type type_of(Type type);

inline std::span<const std::int64_t> shape_of(const Buffer& buffer) { return {buffer.dims, std::size_t(buffer.rank)}; }

/// The attribute of a name that is an array of numbers. Errors: Error(invalid_argument) if there is none.
const Values& values_of(const Frame& frame, std::string_view name);
/// The attribute of a name that is a string. Errors: likewise.
std::string_view text_of(const Frame& frame, std::string_view name);

/// Answers what XLA asks before it calls, and calls `body` to execute. XLA's threads do not have the GIL.
/// \return the error that `body` threw, as XLA takes it, or null
Error* run(Frame* frame, void (*body)(const Frame& frame, nanobind::handle state), nanobind::handle state = {});

/// A scope in which this thread's work runs whatever the thread does else: XLA may call from a thread that records a
/// tape or captures a graph.
class OwnContext {
 public:
  OwnContext() : before_(std::exchange(detail::Context::here(), detail::Context{})) {}
  OwnContext(const OwnContext&) = delete;
  ~OwnContext() { detail::Context::here() = before_; }

 private:
  const detail::Context before_;
};

}  // namespace weft::python::xla
