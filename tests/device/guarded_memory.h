// Memory between pages that the process may not touch: what reads or writes beyond either end of it is caught.
#pragma once
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>

namespace weft::test {

class GuardedMemory {
 public:
  /// \param bytes  rounded up to whole pages
  explicit GuardedMemory(std::size_t bytes)
      : page_(std::size_t(sysconf(_SC_PAGESIZE))), bytes_((bytes + page_ - 1) / page_ * page_) {
    void* const all = mmap(nullptr, bytes_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin_ = static_cast<std::byte*>(all) + page_;
    mprotect(begin_, bytes_, PROT_READ | PROT_WRITE);
  }
  ~GuardedMemory() { munmap(begin_ - page_, bytes_ + 2 * page_); }
  GuardedMemory(const GuardedMemory&) = delete;

  /// `count` numbers at the begin, or at the end.
  template <class T>
  std::span<T> first(std::size_t count) const {
    return {reinterpret_cast<T*>(begin_), count};
  }
  template <class T>
  std::span<T> last(std::size_t count) const {
    return {reinterpret_cast<T*>(begin_ + bytes_) - count, count};
  }

 private:
  std::size_t page_, bytes_;
  std::byte* begin_;
};

}  // namespace weft::test
#endif
