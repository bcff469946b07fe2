// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tessera/core/memory.hpp"

namespace tessera::cuda {

/// Memory of this process that a GPU copies to by itself, so that several copies take one wait. It
/// comes from a pool of this process, which keeps it: pinning takes longer than planning.
class PinnedMemory {
 public:
  /// For copies on the place's stream. What is too large to keep pinned is ordinary memory.
  PinnedMemory(std::size_t bytes, const Place& place);
  /// Waits for the stream where an error came between a copy and `wait`.
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  /// Queues a copy to the next `bytes` bytes and returns where they will be.
  void* bring(const void* there, std::size_t bytes);
  /// Until all of them are here.
  void wait();

 private:
  Place place_;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  bool pinned_ = true;
  bool waits_ = false;  ///< for a copy
};

}  // namespace tessera::cuda
