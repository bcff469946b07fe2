// SPDX-License-Identifier: Apache-2.0
#include "cuda/pinned.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

#include "core/cuda_check.hpp"

namespace tessera::cuda {
namespace {

constexpr std::size_t smallest_block = 1 << 20;
constexpr std::size_t largest_block = 64 << 20;
constexpr std::size_t alignment = 64;

struct Block {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// Blocks that nobody uses. As many as were ever in use at once, so few.
class Pool {
 public:
  Block take(std::size_t bytes) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = std::find_if(blocks_.begin(), blocks_.end(),
                                      [&](const Block& block) { return block.bytes >= bytes; });
      if (found != blocks_.end()) {
        const Block block = *found;
        blocks_.erase(found);
        return block;
      }
      blocks_.reserve(blocks_.size() + ++given_);
    }
    const Block block{nullptr, std::bit_ceil(std::max(bytes, smallest_block))};
    void* memory = nullptr;
    // Any GPU may copy to it.
    cuda_check(cudaHostAlloc(&memory, block.bytes, cudaHostAllocPortable), "pinning memory");
    return {static_cast<std::byte*>(memory), block.bytes};
  }

  void give_back(Block block) noexcept {
    const std::scoped_lock lock(mutex_);
    blocks_.push_back(block);  // there is room for all that were ever given
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t given_ = 0;
};

Pool& pool() {
  // Never destroyed: the driver may be gone when static storage is.
  static auto* const blocks = new Pool;
  return *blocks;
}

}  // namespace

PinnedMemory::PinnedMemory(std::size_t bytes, const Place& place)
    : place_(place), pinned_(bytes <= largest_block) {
  // Every part may begin up to a boundary later.
  const std::size_t wanted = bytes + 16 * alignment;
  if (pinned_) {
    const Block block = pool().take(wanted);
    data_ = block.data;
    capacity_ = block.bytes;
  } else {
    data_ = static_cast<std::byte*>(::operator new(wanted));
    capacity_ = wanted;
  }
}

PinnedMemory::~PinnedMemory() {
  if (waits_) cudaStreamSynchronize(static_cast<cudaStream_t>(place_.stream.handle));
  if (pinned_) {
    pool().give_back({data_, capacity_});
  } else {
    ::operator delete(data_);
  }
}

void* PinnedMemory::bring(const void* there, std::size_t bytes) {
  if (used_ + bytes > capacity_) {
    throw Error(ErrorCode::internal, "more is brought than was asked for", "pinned memory");
  }
  std::byte* const here = data_ + used_;
  used_ += (bytes + alignment - 1) / alignment * alignment;
  waits_ = true;
  copy_bytes(here, there, bytes, place_.device, place_.stream);
  return here;
}

void PinnedMemory::wait() {
  if (!waits_) return;
  synchronise(place_.device, place_.stream);
  waits_ = false;
}

}  // namespace tessera::cuda
