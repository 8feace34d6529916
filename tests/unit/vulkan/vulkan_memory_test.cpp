// Decisions of the Vulkan backend without a device: places in pages, barriers, and when memory may be used again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "../../../backends/vulkan/commands/hazards.h"
#include "../../../backends/vulkan/memory/suballocator.h"
#include "../../../backends/vulkan/queue/retirement.h"
#include "../../../frontend/support/platform.h"

namespace weft::backend::vulkan {
namespace {

using ir::Access;

TEST(VulkanSuballocator, PiecesNeverOverlapAndJoinAgain) {
  constexpr std::uint64_t kPage = 1 << 16;
  Suballocator pieces;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pieces.add_region(kPage), std::uint32_t(i));
  struct Live {
    std::uint32_t id, region;
    std::uint64_t offset, bytes;
  };
  std::vector<Live> live;
  std::mt19937 random(7);
  std::uint64_t used = 0;
  for (int round = 0; round < 20000; ++round) {
    if (random() % 100 < 55) {
      const std::uint64_t bytes = random() % 8 == 0 ? 1 + random() % kPage : 1 + random() % 2000;
      const std::uint64_t rounded = (bytes + 255) / 256 * 256;
      if (const auto piece = pieces.allocate(bytes)) {
        EXPECT_EQ(piece->offset % Suballocator::kAlignment, 0u);
        ASSERT_LE(piece->offset + rounded, kPage);
        for (const Live& other : live)
          ASSERT_FALSE(other.region == piece->region && other.offset < piece->offset + rounded &&
                       piece->offset < other.offset + other.bytes);
        live.push_back({piece->id, piece->region, piece->offset, rounded});
        used += rounded;
      } else {
        // Then no gap between the live pieces may be large enough either.
        for (std::uint32_t region = 0; region < 3; ++region) {
          std::map<std::uint64_t, std::uint64_t> order;
          for (const Live& l : live)
            if (l.region == region) order[l.offset] = l.bytes;
          order[kPage] = 0;
          std::uint64_t end = 0;
          for (const auto& [offset, size] : order) {
            ASSERT_LT(offset - end, rounded);
            end = offset + size;
          }
        }
      }
    } else if (!live.empty()) {
      const std::size_t at = random() % live.size();
      EXPECT_EQ(pieces.free(live[at].id), live[at].region);
      used -= live[at].bytes;
      live[at] = live.back();
      live.pop_back();
    }
    ASSERT_EQ(pieces.used(), used);
  }
  for (const Live& l : live) pieces.free(l.id);
  for (std::uint32_t region = 0; region < 3; ++region) {
    EXPECT_TRUE(pieces.empty(region));
    ASSERT_TRUE(pieces.allocate(kPage)) << "all of a page must be one piece again";
  }
  EXPECT_FALSE(pieces.allocate(1));
}

TEST(VulkanSuballocator, TakesTheSmallestThatFits) {
  Suballocator pieces;
  pieces.add_region(1 << 14);
  std::vector<Suballocator::Piece> all;
  for (const int kilobytes : {4, 1, 2, 1, 3, 1}) all.push_back(*pieces.allocate(kilobytes << 10));
  for (const int hole : {0, 2, 4}) pieces.free(all[hole].id);
  EXPECT_EQ(pieces.allocate(2000)->offset, all[2].offset);
  EXPECT_EQ(pieces.allocate(3 << 10)->offset, all[4].offset);
  EXPECT_EQ(pieces.allocate(256)->offset, 0u) << "of the two of 4 KiB, the lower";
}

TEST(VulkanSuballocator, RegionsComeAndGo) {
  Suballocator pieces;
  EXPECT_FALSE(pieces.allocate(1));
  EXPECT_FALSE(pieces.allocate(~0ull));
  pieces.add_region(1024);
  pieces.add_region(2048);
  const auto piece = *pieces.allocate(2000);
  EXPECT_EQ(piece.region, 1u);
  pieces.remove_region(0);
  EXPECT_FALSE(pieces.allocate(1024));
  EXPECT_EQ(pieces.add_region(4096), 0u);
  EXPECT_EQ(pieces.allocate(1024)->region, 0u);
  EXPECT_EQ(pieces.free(piece.id), 1u);
  EXPECT_TRUE(pieces.empty(1));
  EXPECT_FALSE(pieces.empty(0));
}

MemoryRange range(std::uint64_t at, std::uint64_t bytes, Access access) { return {at, bytes, access}; }

MemoryRange appended(std::uint64_t at, std::uint64_t bytes) { return {at, bytes, Access::atomic, true}; }

Barrier add(Hazards& hazards, std::initializer_list<MemoryRange> ranges) {
  return hazards.add(std::span(ranges.begin(), ranges.size()));
}

TEST(LargePages, AreAlignedZeroAndOfAnySize) {
  for (std::uint64_t bytes : {std::uint64_t(1), platform::kLargePageBytes - 1, platform::kLargePageBytes,
                              3 * platform::kLargePageBytes + 5}) {
    std::byte* const memory = platform::map_large_pages(bytes);
    if (!memory) GTEST_SKIP() << "the system has none";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % platform::kLargePageBytes, 0u);
    for (std::uint64_t at = 0; at < bytes; at += 4099) EXPECT_EQ(memory[at], std::byte(0));
    memory[0] = memory[bytes - 1] = std::byte(7);
    EXPECT_EQ(memory[bytes - 1], std::byte(7));
    platform::unmap_large_pages(memory, bytes);
  }
  EXPECT_EQ(platform::map_large_pages(0), nullptr);
  EXPECT_EQ(platform::map_large_pages(~std::uint64_t(0)), nullptr);
}

TEST(VulkanHazards, WaitsExactlyWhereItMust) {
  const struct {
    Access before, after;
    Barrier needed;
  } cases[] = {
      {Access::read, Access::read, Barrier::none},
      {Access::read, Access::write, Barrier::execution},
      {Access::read, Access::atomic, Barrier::execution},
      {Access::write, Access::read, Barrier::memory},
      {Access::write, Access::write, Barrier::memory},
      {Access::write, Access::atomic, Barrier::memory},
      {Access::atomic, Access::atomic, Barrier::memory},
      {Access::atomic, Access::read, Barrier::memory},
      {Access::atomic, Access::write, Barrier::memory},
      {Access::atomic | Access::read, Access::atomic | Access::read, Barrier::memory},
      {Access::atomic | Access::read, Access::atomic, Barrier::memory},
      {Access::none, Access::write, Barrier::none},
      {Access::write, Access::none, Barrier::none},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << int(c.before) << " then " << int(c.after));
    Hazards hazards;
    EXPECT_EQ(add(hazards, {range(1000, 100, c.before)}), Barrier::none);
    EXPECT_EQ(add(hazards, {range(1100, 100, c.after), range(900, 100, c.after)}), Barrier::none) << "beside it";
    Hazards overlap;
    add(overlap, {range(1000, 100, c.before)});
    EXPECT_EQ(add(overlap, {range(1099, 1, c.after)}), c.needed);
    Hazards everything;
    add(everything, {range(0, ~0ull, c.before)});
    EXPECT_EQ(add(everything, {range(5000, 4, c.after)}), c.needed) << "unknown memory may be any";
    Hazards reverse;
    add(reverse, {range(5000, 4, c.before)});
    EXPECT_EQ(add(reverse, {range(0, ~0ull, c.after)}), c.needed);
  }
}

TEST(VulkanHazards, OnlyAppendedMemoryTakesAtomicOperationsInAnyOrder) {
  Hazards hazards;
  EXPECT_EQ(add(hazards, {appended(0, 64)}), Barrier::none);
  EXPECT_EQ(add(hazards, {appended(32, 64)}), Barrier::none);
  EXPECT_EQ(add(hazards, {range(0, 64, Access::atomic)}), Barrier::memory) << "one of both appends";
  EXPECT_EQ(add(hazards, {appended(0, 64)}), Barrier::memory) << "the other one does";
  EXPECT_EQ(add(hazards, {range(0, 64, Access::read)}), Barrier::memory) << "what was appended is read";
  EXPECT_EQ(add(hazards, {appended(0, 64)}), Barrier::execution);
  Hazards both;
  EXPECT_EQ(add(both, {appended(0, 64), range(0, 64, Access::atomic)}), Barrier::none);
  EXPECT_EQ(add(both, {appended(0, 64)}), Barrier::memory);
}

TEST(VulkanHazards, AnOrderingAloneDoesNotMakeWritesVisible) {
  Hazards hazards;
  EXPECT_EQ(add(hazards, {range(0, 64, Access::write), range(64, 64, Access::read)}), Barrier::none);
  EXPECT_EQ(add(hazards, {range(64, 64, Access::write)}), Barrier::execution);
  EXPECT_EQ(add(hazards, {range(0, 64, Access::read)}), Barrier::memory) << "the first write is not visible yet";
  EXPECT_EQ(add(hazards, {range(64, 64, Access::read)}), Barrier::none) << "and that barrier covered all";
}

TEST(VulkanHazards, OneLaunchMayTouchAPlaceTwice) {
  Hazards hazards;
  EXPECT_EQ(add(hazards, {range(0, 64, Access::read), range(32, 64, Access::write)}), Barrier::none);
  EXPECT_EQ(add(hazards, {range(0, 32, Access::write)}), Barrier::execution);
  for (Access after : {Access::read, Access::write}) {
    Hazards both;
    EXPECT_EQ(add(both, {range(0, 64, Access::read), range(0, 64, Access::write)}), Barrier::none);
    EXPECT_EQ(add(both, {range(0, 64, after)}), Barrier::memory) << "it was changed, whatever else was done there";
  }
}

TEST(VulkanHazards, WhatCannotBeRememberedIsABarrier) {
  Hazards hazards;
  int barriers = 0;
  for (int i = 0; i < 1000; ++i) {
    barriers += add(hazards, {range(i * 64, 64, Access::write)}) == Barrier::memory;
    ASSERT_LE(hazards.count(), Hazards::kMost);
  }
  EXPECT_EQ(barriers, 1000 / Hazards::kMost);
  EXPECT_EQ(add(hazards, {range(999 * 64, 64, Access::read)}), Barrier::memory);

  std::vector<MemoryRange> many(200, range(0, 64, Access::write));
  for (int i = 0; i < 200; ++i) many[i].address = 100000 + i * 64;
  EXPECT_EQ(hazards.add(many), Barrier::memory);
  EXPECT_EQ(add(hazards, {range(100000 + 150 * 64, 4, Access::read)}), Barrier::memory);
}

TEST(VulkanHazards, RepeatedRangesTakeNoRoom) {
  Hazards hazards;
  for (int i = 0; i < 500; ++i) EXPECT_EQ(add(hazards, {range(0, 64, Access::read), appended(64, 64)}), Barrier::none);
  EXPECT_EQ(hazards.count(), 2);
}

class VulkanRetirement : public testing::Test {
 protected:
  std::vector<std::uint64_t> released_;
  std::map<VkSemaphore, Ticket> device_;  // the values of the semaphores
  Retirement retirement_{[this](const Retired& thing) { released_.push_back(thing.handle); },
                         [this](VkSemaphore semaphore) { return device_[semaphore]; }};

  std::shared_ptr<Timeline> stream(std::uintptr_t number) {
    auto timeline = std::make_shared<Timeline>();
    timeline->semaphore = (VkSemaphore)number;
    retirement_.add(timeline);
    return timeline;
  }
  static void record(Timeline& t, Ticket ticket) { t.recorded = ticket; }
  static void submit(Timeline& t) { t.submitted = t.recorded.load(); }
  void drop(std::uint64_t handle) { retirement_.drop({Retired::Kind::memory, handle}); }
};

TEST_F(VulkanRetirement, IsImmediateWhenNothingRuns) {
  drop(1);
  const auto a = stream(1);
  drop(2);
  record(*a, 5);
  submit(*a);
  a->reach(5);
  drop(3);
  EXPECT_EQ(released_, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(VulkanRetirement, WaitsForAllStreams) {
  const auto a = stream(1), b = stream(2);
  record(*a, 3);
  record(*b, 4);
  drop(1);
  record(*a, 7);
  drop(2);
  EXPECT_FALSE(retirement_.comes_free()) << "nothing is submitted";
  retirement_.hurry();
  EXPECT_TRUE(a->submit_soon && b->submit_soon);
  submit(*a);
  submit(*b);
  EXPECT_TRUE(retirement_.comes_free());
  device_[a->semaphore] = 7;
  EXPECT_FALSE(retirement_.collect());
  device_[b->semaphore] = 4;
  EXPECT_TRUE(retirement_.collect());
  EXPECT_EQ(released_, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_FALSE(retirement_.comes_free());
}

TEST_F(VulkanRetirement, AStreamThatEndsHoldsNothing) {
  const auto a = stream(1);
  record(*a, 3);
  drop(1);
  retirement_.remove(a);
  drop(2);
  EXPECT_EQ(released_, (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(VulkanRetirement, ManyDropsAskTheDevice) {
  const auto a = stream(1);
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    record(*a, i);
    submit(*a);
    device_[a->semaphore] = i > 100 ? i - 100 : 0;
    drop(i);
  }
  EXPECT_GE(released_.size(), 700u) << "without any allocation, memory must still come back";
  EXPECT_LE(released_.size(), 900u);
  EXPECT_TRUE(std::is_sorted(released_.begin(), released_.end()));
}

}  // namespace
}  // namespace weft::backend::vulkan
