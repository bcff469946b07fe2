// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tessera/core/memory.hpp"

namespace tessera {

/// Memory for many small things that are made on one stream and go together: it comes in chunks, so
/// that few calls reach the memory below. What is given back early lies idle until the arena goes,
/// so large pieces, and those of other streams, are the memory's below as ever. For one thread at a
/// time; whatever is made of it goes first.
class ArenaMemory final : public MemoryResource {
 public:
  explicit ArenaMemory(const Place& below) : below_(below.resource()), stream_(below.stream) {}
  ~ArenaMemory() override;
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  void* allocate(std::size_t bytes, Stream stream) override;
  void deallocate(void* memory, std::size_t bytes, Stream stream) noexcept override;
  Device device() const noexcept override { return below_.device(); }

  static constexpr std::size_t largest_piece = std::size_t{2} << 20;

 private:
  struct Chunk {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  bool has(const void* memory) const noexcept;

  MemoryResource& below_;
  Stream stream_;
  std::vector<Chunk> chunks_;  ///< the last is in use
  std::size_t used_ = 0;       ///< of the last
};

}  // namespace tessera
