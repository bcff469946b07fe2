// SPDX-License-Identifier: Apache-2.0
#include "support/counted_new.hpp"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> news{0};
std::atomic<std::int64_t> bytes_out{0};
std::atomic<std::int64_t> most_bytes_out{0};

void count_given(void* memory) noexcept {
  const auto size = static_cast<std::int64_t>(malloc_usable_size(memory));
  const std::int64_t now = bytes_out.fetch_add(size, std::memory_order_relaxed) + size;
  std::int64_t most = most_bytes_out.load(std::memory_order_relaxed);
  while (now > most && !most_bytes_out.compare_exchange_weak(most, now)) {
  }
}

void give_back(void* memory) noexcept {
  bytes_out.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(memory)),
                      std::memory_order_relaxed);
  std::free(memory);
}

/// Null where there is no memory.
void* counted_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  news.fetch_add(1, std::memory_order_relaxed);
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (memory != nullptr) count_given(memory);
  return memory;
}

void* counted(std::size_t bytes, std::size_t alignment) {
  if (void* const memory = counted_or_null(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::int64_t tessera::test::num_news() noexcept { return news.load(); }
std::int64_t tessera::test::new_bytes() noexcept { return bytes_out.load(); }
std::int64_t tessera::test::most_new_bytes() noexcept { return most_bytes_out.load(); }
void tessera::test::forget_most_new_bytes() noexcept { most_bytes_out = bytes_out.load(); }

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// The sanitizers bring these two, which would not fit the way memory is given back here.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted_or_null(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted_or_null(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
