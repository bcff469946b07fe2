// SPDX-License-Identifier: Apache-2.0
#include "core/arena_memory.hpp"

#include <algorithm>
#include <cstdint>

namespace tessera {
namespace {

constexpr std::size_t alignment = 256;
/// Every chunk is twice as large as the one before it, up to the largest: little is idle in small
/// arenas, and large ones are made of few chunks.
constexpr std::size_t first_chunk = std::size_t{256} << 10;
constexpr std::size_t largest_chunk = std::size_t{16} << 20;

std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

ArenaMemory::~ArenaMemory() {
  for (const Chunk& chunk : chunks_) below_.deallocate(chunk.data, chunk.bytes, stream_);
}

void* ArenaMemory::allocate(std::size_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  if (bytes > largest_piece || stream.handle != stream_.handle) {
    return below_.allocate(bytes, stream);
  }
  const std::size_t wanted = padded(bytes);
  if (chunks_.empty() || chunks_.back().bytes - used_ < wanted) {
    const std::size_t twice = chunks_.empty() ? first_chunk : 2 * chunks_.back().bytes;
    const std::size_t size = std::max(wanted, std::min(twice, largest_chunk));
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back({static_cast<std::byte*>(below_.allocate(size, stream)), size});
    used_ = 0;
  }
  std::byte* const place = chunks_.back().data + used_;
  used_ += wanted;
  return place;
}

void ArenaMemory::deallocate(void* memory, std::size_t bytes, Stream stream) noexcept {
  if (memory != nullptr && !has(memory)) below_.deallocate(memory, bytes, stream);
}

bool ArenaMemory::has(const void* memory) const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return std::any_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) {
    return address - reinterpret_cast<std::uintptr_t>(chunk.data) < chunk.bytes;
  });
}

}  // namespace tessera
