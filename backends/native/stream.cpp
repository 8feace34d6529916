// Launches, copies and fills of the native device, on its pool of host threads.
#include "stream.h"

#include <algorithm>
#include <cstring>

#include "../../frontend/support/invalid.h"

namespace weft::backend::native {

namespace {

// Bytes that several threads copy faster than one, and that one of them takes at a time at least.
constexpr std::int64_t kShared = 512 << 10, kChunk = 128 << 10;

// Calls f(first, bytes) for all of the bytes, in pieces that begin at multiples of 4.
template <class F>
void in_pieces(Pool& pool, std::size_t bytes, const F& f) {
  const auto all = std::int64_t(bytes);
  const int threads = all < kShared ? 1 : pool.threads();
  // A single long copy does not pass through the caches (the C library sees to it), so pieces are as long as it goes.
  const std::int64_t chunk = threads == 1 ? all : std::max(kChunk, all / (4 * threads) / 4096 * 4096);
  pool.run(all, chunk, threads, [&](int, std::int64_t begin, std::int64_t end) noexcept {
    f(std::size_t(begin), std::size_t(end - begin));
  });
}

}  // namespace

void NativeStream::run(Program& program, const Grid& grid, std::span<const std::byte> args) {
  device_.check_runs();
  const auto* const native = dynamic_cast<const DeviceProgram*>(&program);
  if (!native) invalid("a program of another device was launched on \"{}\"", device_.info().name);
  launcher_.run(*native, grid, args);
}

void NativeStream::copy_apart(std::byte* to, const std::byte* from, std::size_t bytes) {
  in_pieces(launcher_.pool(), bytes,
            [&](std::size_t first, std::size_t n) { std::memcpy(to + first, from + first, n); });
}

void NativeStream::fill_words(std::byte* to, std::size_t bytes, std::uint32_t pattern) {
  in_pieces(launcher_.pool(), bytes, [&](std::size_t first, std::size_t n) {
    for (std::size_t at = first; at < first + n; at += 4) std::memcpy(to + at, &pattern, 4);
  });
}

}  // namespace weft::backend::native
