// SPDX-License-Identifier: Apache-2.0
#include "train/counted_memory.hpp"

#include <sys/mman.h>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::train {

void* ForwardedMemory::allocate(std::size_t bytes, Stream stream) {
  void* const memory = from_.allocate(bytes, stream);
  add(static_cast<std::int64_t>(bytes));
  return memory;
}

void ForwardedMemory::deallocate(void* memory, std::size_t bytes, Stream stream) noexcept {
  from_.deallocate(memory, bytes, stream);
  add(-static_cast<std::int64_t>(bytes));
}

void* UnusedMemory::allocate(std::size_t bytes, Stream) {
  if (bytes == 0) return nullptr;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    constexpr double gib = 1 << 30;
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("there are no addresses for {:.3g} GiB", static_cast<double>(bytes) / gib),
        "training", "use fewer or narrower layers");
  }
  add(static_cast<std::int64_t>(bytes));
  return memory;
}

void UnusedMemory::deallocate(void* memory, std::size_t bytes, Stream) noexcept {
  if (memory == nullptr) return;
  munmap(memory, bytes);
  add(-static_cast<std::int64_t>(bytes));
}

}  // namespace tessera::train
