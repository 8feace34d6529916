// Libraries that stand in for those of LLVM which weft cannot take: version 14, which lacks what came with 15, and one
// that was cut down (WEFT_STAND_IN_PART). Nothing in them is called.
extern "C" {

__attribute__((visibility("default"))) void* LLVMContextCreate() { return nullptr; }

#ifdef WEFT_STAND_IN_PART
__attribute__((visibility("default"))) void* LLVMPointerTypeInContext(void*, unsigned) { return nullptr; }
#endif

}  // extern "C"
