// Memory for the commands that drivers record.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "../../../backends/vulkan/memory/host_arena.h"

namespace weft::backend::vulkan {
namespace {

void* take(HostArena& arena, std::size_t bytes, std::size_t alignment = 8) {
  return arena.callbacks()->pfnAllocation(arena.callbacks()->pUserData, bytes, alignment,
                                          VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
}
void* change(HostArena& arena, void* memory, std::size_t bytes, std::size_t alignment = 8) {
  return arena.callbacks()->pfnReallocation(arena.callbacks()->pUserData, memory, bytes, alignment,
                                            VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
}
void give(HostArena& arena, void* memory) { arena.callbacks()->pfnFree(arena.callbacks()->pUserData, memory); }

TEST(HostArena, PiecesAreApartAlignedAndKeepTheirBytes) {
  HostArena arena;
  // Pieces of no bytes, even at the very end of a block, are in their own block.
  std::vector<void*> nothings;
  for (int k = 0; k < 3 * int(HostArena::kBlockBytes) / 16; ++k) nothings.push_back(take(arena, 0));
  for (void* n : nothings) give(arena, n);
  std::mt19937 random(7);
  struct Piece {
    unsigned char* memory;
    std::size_t bytes;
    unsigned char value;
  };
  std::vector<Piece> pieces;
  for (int k = 0; k < 20000; ++k) {
    if (!pieces.empty() && random() % 100 < 48) {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      const Piece p = pieces.back();
      for (std::size_t i = 0; i < p.bytes; i += 1 + p.bytes / 7) ASSERT_EQ(p.memory[i], p.value);
      give(arena, p.memory);
      pieces.pop_back();
      continue;
    }
    const std::size_t bytes = random() % 50 == 0 ? 1 + random() % 200000 : random() % 300;  // may be no bytes
    const std::size_t alignment = std::size_t(1) << random() % 9;
    auto* const memory = static_cast<unsigned char*>(take(arena, bytes, alignment));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0u);
    std::memset(memory, k & 255, bytes);
    pieces.push_back({memory, bytes, (unsigned char)(k & 255)});
  }
  for (const Piece& p : pieces) {
    for (std::size_t i = 0; i < p.bytes; i += 1 + p.bytes / 7) ASSERT_EQ(p.memory[i], p.value);
    give(arena, p.memory);
  }
}

TEST(HostArena, WhatIsGivenBackIsUsedAgain) {
  HostArena arena;
  void* const kept = take(arena, 100);  // a command buffer, for example, which outlives its commands
  std::size_t most = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<void*> commands;
    for (int k = 0; k < 2000; ++k) commands.push_back(take(arena, 150));
    if (round == 1) most = arena.blocks();
    for (void* c : commands) give(arena, c);
    if (round > 1) {
      EXPECT_LE(arena.blocks(), most);
    }
  }
  give(arena, kept);
}

TEST(HostArena, AnswersAsVulkanWantsIt) {
  HostArena arena;
  void* const nothing = take(arena, 0);
  EXPECT_NE(nothing, nullptr) << "drivers take null for a failure";
  give(arena, nothing);
  give(arena, nullptr);
  auto* text = static_cast<char*>(change(arena, nullptr, 6));
  std::memcpy(text, "hello", 6);
  text = static_cast<char*>(change(arena, text, 50000));
  EXPECT_STREQ(text, "hello");
  text = static_cast<char*>(change(arena, text, 3));
  EXPECT_EQ(std::memcmp(text, "hel", 3), 0);
  EXPECT_EQ(change(arena, text, 0), nullptr);
  EXPECT_EQ(take(arena, ~std::size_t(0)), nullptr);
  EXPECT_EQ(take(arena, 16, std::size_t(1) << 20), nullptr);
}

}  // namespace
}  // namespace weft::backend::vulkan
