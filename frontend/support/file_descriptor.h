// Descriptors of the operating system that belong to an object.
#pragma once
#include <utility>

namespace weft {

/// A file descriptor, closed at the end. Empty where it is negative.
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
  /// Another one of the same; empty where the process may open no more.
  FileDescriptor duplicate() const;
  /// For who takes it over: it is not closed here any more.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace weft
