// The codecs of .nvdb files: bytes as they are, one blob of zlib's, or blobs of Blosc's for each 2^30 bytes.
#include "codec.h"

#include <zlib.h>
#ifdef WEFT_BLOSC
#include <blosc.h>
#endif

#include <algorithm>
#include <limits>
#include <new>

#include "../../../frontend/support/invalid.h"
#include "../grid/check.h"

namespace weft::grids {

namespace {

constexpr std::uint64_t kPrefix = sizeof(std::uint64_t), kChunk = std::uint64_t(1) << 30;

/// The number of blobs of a grid.
std::uint64_t blobs(VolumeCodec codec, std::uint64_t grid_bytes) {
  return codec == VolumeCodec::zip ? 1 : std::max<std::uint64_t>(1, (grid_bytes + kChunk - 1) / kChunk);
}

/// Calls f with each blob and the part of the grid that it packs.
template <class F>
void each_blob(VolumeCodec codec, std::span<const std::byte> packed, std::uint64_t grid_bytes, F f) {
  const std::uint64_t count = blobs(codec, grid_bytes);
  for (std::uint64_t k = 0, at = 0; k < count; ++k) {
    const auto bytes = get<std::uint64_t>(packed, at);
    const std::uint64_t first = k * kChunk,
                        part = codec == VolumeCodec::zip ? grid_bytes : std::min(kChunk, grid_bytes - first);
    f(packed.subspan(at + kPrefix, bytes), first, part);
    at += kPrefix + bytes;
  }
}

void inflate_blob(std::span<const std::byte> blob, std::span<std::byte> to) {
  uLongf size = uLongf(to.size());
  if (blob.size() > std::numeric_limits<uLong>::max() ||
      uncompress(reinterpret_cast<Bytef*>(to.data()), &size, reinterpret_cast<const Bytef*>(blob.data()),
                 uLong(blob.size())) != Z_OK)
    no_grid("the file is damaged: zlib cannot unpack the grid");
  if (size != to.size()) no_grid("the file is damaged: a grid of {} bytes unpacks to {}", to.size(), size);
}

#ifdef WEFT_BLOSC
/// Checks the header of a blob before there is memory for what it packs.
void check_blosc(std::span<const std::byte> blob, std::uint64_t part) {
  std::size_t size = 0;
  if (blob.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(blob.data(), blob.size(), &size) != 0)
    no_grid("the file is damaged: Blosc cannot unpack the grid");
  if (size != part) no_grid("the file is damaged: a part of {} bytes unpacks to {}", part, size);
}

void unpack_blosc(std::span<const std::byte> blob, std::span<std::byte> to) {
  const int count = blosc_decompress_ctx(blob.data(), to.data(), to.size(), 1);
  if (count < 0 || std::size_t(count) != to.size()) no_grid("the file is damaged: Blosc cannot unpack the grid");
}

std::size_t pack_blosc(std::span<const std::byte> part, std::span<std::byte> to) {
  constexpr int level = 9, shuffle = 1, block = 1 << 18, threads = 1;
  const int count = blosc_compress_ctx(level, shuffle, sizeof(float), part.size(), part.data(), to.data(), to.size(),
                                       BLOSC_LZ4_COMPNAME, block, threads);
  if (count <= 0) internal_error("Blosc packs nothing");
  return std::size_t(count);
}
#endif

}  // namespace

bool has_codec(VolumeCodec codec) {
#ifdef WEFT_BLOSC
  if (codec == VolumeCodec::blosc) return true;
#endif
  return codec == VolumeCodec::none || codec == VolumeCodec::zip;
}

std::uint64_t packed_bytes(VolumeCodec codec, std::span<const std::byte> rest, std::uint64_t grid_bytes) {
  const auto truncated = [&]() { no_grid("the file is truncated: it ends in a grid of {} bytes", grid_bytes); };
  if (codec == VolumeCodec::none) {
    if (rest.size() < grid_bytes) truncated();
    return grid_bytes;
  }
  std::uint64_t at = 0;
  for (std::uint64_t k = blobs(codec, grid_bytes); k > 0; --k) {
    if (rest.size() - at < kPrefix) truncated();
    const auto bytes = get<std::uint64_t>(rest, at);
    at += kPrefix;
    if (bytes > rest.size() - at) truncated();
    at += bytes;
  }
  return at;
}

Unpacked unpack(VolumeCodec codec, std::span<const std::byte> packed, std::uint64_t grid_bytes) {
  // Deflate packs at most 1032 bytes into one, so memory is not allocated for what cannot be.
  if (codec == VolumeCodec::zip && grid_bytes / 1032 > packed.size())
    no_grid("the file is damaged: {} packed bytes cannot hold a grid of {}", packed.size(), grid_bytes);
#ifdef WEFT_BLOSC
  if (codec == VolumeCodec::blosc)
    each_blob(codec, packed, grid_bytes,
              [](std::span<const std::byte> blob, std::uint64_t, std::uint64_t part) { check_blosc(blob, part); });
#endif
  Unpacked grid = std::make_unique_for_overwrite<std::byte[]>(grid_bytes);
  each_blob(codec, packed, grid_bytes, [&](std::span<const std::byte> blob, std::uint64_t first, std::uint64_t part) {
    const std::span<std::byte> to(grid.get() + first, part);
    if (codec == VolumeCodec::zip) return inflate_blob(blob, to);
#ifdef WEFT_BLOSC
    unpack_blosc(blob, to);
#endif
  });
  return grid;
}

std::vector<std::byte> pack(VolumeCodec codec, std::span<const std::byte> grid) {
  if (codec == VolumeCodec::none) return {grid.begin(), grid.end()};
  std::vector<std::byte> packed;
  const auto append = [&](std::uint64_t room, auto f) {
    const std::size_t before = packed.size();
    packed.resize(before + kPrefix + room);
    const std::uint64_t size = f(std::span(packed).subspan(before + kPrefix));
    put(std::span(packed), before, size);
    packed.resize(before + kPrefix + size);
  };
  if (codec == VolumeCodec::zip) {
    append(compressBound(uLong(grid.size())), [&](std::span<std::byte> to) {
      uLongf size = uLongf(to.size());
      if (compress(reinterpret_cast<Bytef*>(to.data()), &size, reinterpret_cast<const Bytef*>(grid.data()),
                   uLong(grid.size())) != Z_OK)
        throw std::bad_alloc();
      return std::uint64_t(size);
    });
  }
#ifdef WEFT_BLOSC
  if (codec == VolumeCodec::blosc)
    for (std::uint64_t first = 0; first < grid.size(); first += kChunk) {
      const std::span<const std::byte> part = grid.subspan(first, std::min(kChunk, grid.size() - first));
      append(part.size() + BLOSC_MAX_OVERHEAD, [&](std::span<std::byte> to) { return pack_blosc(part, to); });
    }
#endif
  return packed;
}

}  // namespace weft::grids
