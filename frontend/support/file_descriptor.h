// File descriptors of the operating system, each owned by an object.
#pragma once
#include <utility>

namespace weft {

/// A file descriptor, closed at the end. Empty if negative.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();

  int get() const { return number_; }
  bool is_empty() const { return number_ < 0; }
  /// Another descriptor of the same file; empty if the process may open no more.
  FileDescriptor duplicate() const;
  /// Gives the descriptor to a new owner: this object no longer closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace weft
