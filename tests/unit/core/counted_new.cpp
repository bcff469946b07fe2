// SPDX-License-Identifier: Apache-2.0
#include "support/counted_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> news{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  news.fetch_add(1, std::memory_order_relaxed);
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  if (void* const memory = std::aligned_alloc(alignment, whole == 0 ? alignment : whole)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

std::int64_t tessera::test::num_news() noexcept { return news.load(); }

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
