// Decodes calls of XLA's.
#include "calls.h"

#include <fmt/format.h>

#include "../../../frontend/support/error.h"
#include "../module.h"

namespace weft::python::xla {

namespace {

const void* attribute(const Frame& frame, std::string_view name, AttributeKind kind) {
  const Attributes& all = frame.attributes;
  for (std::int64_t k = 0; k < all.size; ++k)
    if (all.kinds[k] == kind && std::string_view(all.names[k]->data, all.names[k]->size) == name) return all.items[k];
  throw weft::Error(ErrorKind::invalid_argument, fmt::format("the call lacks the attribute \"{}\"", name));
}

Error* error(const Frame& frame, const std::string& message, Code code) {
  ErrorArgs args{sizeof(ErrorArgs), nullptr, message.c_str(), code};
  return frame.api->create_error(&args);
}

bool answer(const Frame& frame) {
  bool asked = false;
  for (Extension* e = frame.extension; e; e = e->next) {
    if (e->kind != kMetadata) continue;
    Metadata& m = *reinterpret_cast<MetadataExtension*>(e)->metadata;
    m.version.major = kMajor;
    m.version.minor = kMinor;
    m.traits = 0;
    asked = true;
  }
  return asked;
}

}  // namespace

ir::Type type_of(Type type) {
  switch (type) {
    case Type::pred: return ir::Type::b1;
    case Type::s8: return ir::Type::i8;
    case Type::s16: return ir::Type::i16;
    case Type::s32: return ir::Type::i32;
    case Type::s64: return ir::Type::i64;
    case Type::u8: return ir::Type::u8;
    case Type::u16: return ir::Type::u16;
    case Type::u32: return ir::Type::u32;
    case Type::u64: return ir::Type::u64;
    case Type::f16: return ir::Type::f16;
    case Type::f32: return ir::Type::f32;
    case Type::f64: return ir::Type::f64;
  }
  return ir::Type::none;
}

const Values& values_of(const Frame& frame, std::string_view name) {
  return *static_cast<const Values*>(attribute(frame, name, AttributeKind::array));
}
std::string_view text_of(const Frame& frame, std::string_view name) {
  const auto& text = *static_cast<const Text*>(attribute(frame, name, AttributeKind::string));
  return {text.data, text.size};
}

Error* run(Frame* frame, void (*body)(const Frame&, nb::handle), nb::handle state) {
  if (answer(*frame) || frame->stage != Stage::execute) return nullptr;
  try {
    const OwnContext own;
    body(*frame, state);
    return nullptr;
  } catch (const weft::Error& e) {
    const bool asked = e.kind() == ErrorKind::invalid_argument || e.kind() == ErrorKind::unsupported;
    return error(*frame, e.what(), asked ? Code::invalid_argument : Code::internal);
  } catch (const nb::python_error& e) {
    Acquired gil;
    return error(*frame, e.what(), Code::internal);
  } catch (const std::exception& e) {
    return error(*frame, e.what(), Code::internal);
  }
}

}  // namespace weft::python::xla
