// SPDX-License-Identifier: Apache-2.0
#include "core/arena_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

namespace tessera {
namespace {

/// Memory of this process that knows what was asked for and not given back.
class WatchedMemory final : public MemoryResource {
 public:
  void* allocate(std::size_t bytes, Stream stream) override {
    void* const memory = host_memory().allocate(bytes, stream);
    taken[memory] = bytes;
    ++calls;
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes, Stream stream) noexcept override {
    EXPECT_EQ(taken.at(memory), bytes);
    taken.erase(memory);
    host_memory().deallocate(memory, bytes, stream);
  }
  Device device() const noexcept override { return {}; }

  std::map<void*, std::size_t> taken;
  int calls = 0;
};

TEST(ArenaMemory, TakesFewChunksForManyPieces) {
  WatchedMemory below;
  {
    ArenaMemory arena(Place(Device{}, &below));
    std::vector<Buffer<char>> pieces;
    for (std::int64_t size = 1; size < 2000; ++size) {
      pieces.emplace_back(size, Place(Device{}, &arena));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(pieces.back().data()) % 64, 0u);
      std::fill(pieces.back().begin(), pieces.back().end(), static_cast<char>(size));
    }
    for (const Buffer<char>& piece : pieces) {
      ASSERT_EQ(piece[0], static_cast<char>(piece.size())) << "pieces overlap";
      ASSERT_EQ(piece[piece.size() - 1], static_cast<char>(piece.size()));
    }
    EXPECT_LE(below.calls, 6);
    pieces.clear();
    EXPECT_FALSE(below.taken.empty()) << "chunks stay until the arena goes";
  }
  EXPECT_TRUE(below.taken.empty());
}

TEST(ArenaMemory, LeavesLargePiecesAndOtherStreamsToTheMemoryBelow) {
  WatchedMemory below;
  ArenaMemory arena(Place(Device{}, &below));
  {
    const auto large = static_cast<std::int64_t>(ArenaMemory::largest_piece) + 1;
    const Buffer<char> piece(large, Place(Device{}, &arena));
    EXPECT_EQ(below.taken.size(), 1u);
  }
  EXPECT_TRUE(below.taken.empty()) << "given back at once";
  int other = 0;
  void* const piece = arena.allocate(8, {&other});
  EXPECT_EQ(below.taken.at(piece), 8u);
  arena.deallocate(piece, 8, {&other});
  EXPECT_TRUE(below.taken.empty());
  EXPECT_EQ(arena.allocate(0, {}), nullptr);
  arena.deallocate(nullptr, 0, {});
}

}  // namespace
}  // namespace tessera
