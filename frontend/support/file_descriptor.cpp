// Closes and duplicates file descriptors.
#include "file_descriptor.h"

#include "platform.h"

namespace weft {

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) platform::close_descriptor(number_);
}

FileDescriptor FileDescriptor::duplicate() const { return FileDescriptor(platform::duplicate_descriptor(number_)); }

}  // namespace weft
