// The functions of LLVM's C API that weft calls, with types of our own, so that no header of LLVM is needed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::backend::native::abi {

using Bool = int;  ///< 0: false, or success
using Handle = void*;
using Attribute = void*;
using DiagnosticHandler = void (*)(Handle diagnostic, void* context);

// Values of the API's enumerations.
inline constexpr int kReturnStatus = 2;  ///< of a module that does not verify, rather than to end the process
inline constexpr int kDefaultLevel = 2;  ///< of code generation
inline constexpr int kPositionIndependent = 2;
inline constexpr int kSmallCode = 3;  ///< all distances fit into 32 bits
inline constexpr int kObjectFile = 1;
inline constexpr int kSeverityError = 0;
inline constexpr unsigned kOfTheFunction = ~0u;  ///< the place of a function's own attributes
inline constexpr unsigned kWindowsCalls = 79;

/// FUNCTION(field, "name", result, (arguments)): all versions from 15 on have these.
#define WEFT_LLVM_FUNCTIONS(FUNCTION)                                                                             \
  FUNCTION(context_create, "LLVMContextCreate", Handle, ())                                                       \
  FUNCTION(context_dispose, "LLVMContextDispose", void, (Handle))                                                 \
  FUNCTION(set_diagnostic_handler, "LLVMContextSetDiagnosticHandler", void, (Handle, DiagnosticHandler, void*))   \
  FUNCTION(diagnostic_severity, "LLVMGetDiagInfoSeverity", int, (Handle))                                         \
  FUNCTION(diagnostic_text, "LLVMGetDiagInfoDescription", char*, (Handle))                                        \
  FUNCTION(dispose_message, "LLVMDisposeMessage", void, (char*))                                                  \
  FUNCTION(copy_to_buffer, "LLVMCreateMemoryBufferWithMemoryRangeCopy", Handle,                                   \
           (const char*, std::size_t, const char* name))                                                          \
  FUNCTION(buffer_start, "LLVMGetBufferStart", const char*, (Handle))                                             \
  FUNCTION(buffer_size, "LLVMGetBufferSize", std::size_t, (Handle))                                               \
  FUNCTION(dispose_buffer, "LLVMDisposeMemoryBuffer", void, (Handle))                                             \
  FUNCTION(parse, "LLVMParseIRInContext", Bool, (Handle context, Handle taken_buffer, Handle * module, char**))   \
  FUNCTION(verify, "LLVMVerifyModule", Bool, (Handle module, int, char**))                                        \
  FUNCTION(dispose_module, "LLVMDisposeModule", void, (Handle))                                                   \
  FUNCTION(first_function, "LLVMGetFirstFunction", Handle, (Handle module))                                       \
  FUNCTION(next_function, "LLVMGetNextFunction", Handle, (Handle))                                                \
  FUNCTION(named_function, "LLVMGetNamedFunction", Handle, (Handle module, const char*))                          \
  FUNCTION(is_declaration, "LLVMIsDeclaration", Bool, (Handle))                                                   \
  FUNCTION(set_calling_convention, "LLVMSetFunctionCallConv", void, (Handle, unsigned))                           \
  FUNCTION(attribute_kind, "LLVMGetEnumAttributeKindForName", unsigned, (const char*, std::size_t))               \
  FUNCTION(enum_attribute, "LLVMCreateEnumAttribute", Attribute, (Handle context, unsigned kind, std::uint64_t))  \
  FUNCTION(text_attribute, "LLVMCreateStringAttribute", Attribute,                                                \
           (Handle context, const char*, unsigned, const char*, unsigned))                                        \
  FUNCTION(add_attribute, "LLVMAddAttributeAtIndex", void, (Handle, unsigned index, Attribute))                   \
  FUNCTION(pass_options, "LLVMCreatePassBuilderOptions", Handle, ())                                              \
  FUNCTION(dispose_pass_options, "LLVMDisposePassBuilderOptions", void, (Handle))                                 \
  FUNCTION(run_passes, "LLVMRunPasses", Handle, (Handle module, const char*, Handle machine, Handle options))     \
  FUNCTION(error_message, "LLVMGetErrorMessage", char*, (Handle taken_error))                                     \
  FUNCTION(dispose_error_message, "LLVMDisposeErrorMessage", void, (char*))                                       \
  FUNCTION(target_from_triple, "LLVMGetTargetFromTriple", Bool, (const char*, Handle*, char**))                   \
  FUNCTION(create_machine, "LLVMCreateTargetMachine", Handle,                                                     \
           (Handle target, const char* triple, const char* cpu, const char* features, int level, int relocations, \
            int code_model))                                                                                      \
  FUNCTION(dispose_machine, "LLVMDisposeTargetMachine", void, (Handle))                                           \
  FUNCTION(create_layout, "LLVMCreateTargetDataLayout", Handle, (Handle machine))                                 \
  FUNCTION(layout_text, "LLVMCopyStringRepOfTargetData", char*, (Handle))                                         \
  FUNCTION(dispose_layout, "LLVMDisposeTargetData", void, (Handle))                                               \
  FUNCTION(emit, "LLVMTargetMachineEmitToMemoryBuffer", Bool,                                                     \
           (Handle machine, Handle module, int file_type, char**, Handle* buffer))                                \
  FUNCTION(host_name, "LLVMGetHostCPUName", char*, ())                                                            \
  FUNCTION(host_features, "LLVMGetHostCPUFeatures", char*, ())                                                    \
  /* Versions from 15 on have this one, earlier ones do not. It is not called. */                                 \
  FUNCTION(pointer_type, "LLVMPointerTypeInContext", Handle, (Handle context, unsigned))

struct Functions {
#define WEFT_LLVM_DECLARE(field, name, result, arguments) result(*field) arguments = nullptr;
  WEFT_LLVM_FUNCTIONS(WEFT_LLVM_DECLARE)
#undef WEFT_LLVM_DECLARE
};

}  // namespace weft::backend::native::abi
