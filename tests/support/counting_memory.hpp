// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"

namespace tessera::test {

/// Memory of another resource, counted: what was taken, what is still held, and whether all of it
/// came back as it was taken. It fills what it hands out, and what comes back, with a pattern that
/// is neither 0 nor a sensible number, in the order of the stream; and it can run dry.
class CountingMemory final : public MemoryResource {
 public:
  explicit CountingMemory(MemoryResource& from) : from_(from) {}
  explicit CountingMemory(Device device) : CountingMemory(default_memory(device)) {}

  void* allocate(std::size_t bytes, Stream stream) override {
    if (bytes == 0) return nullptr;
    const std::scoped_lock lock(mutex_);
    ++num_allocations_;
    if (num_allocations_ >= first_failure_ && num_allocations_ <= last_failure_) {
      throw Error(ErrorCode::out_of_memory, "the counting memory has run dry", "memory");
    }
    void* const memory = from_.allocate(bytes, stream);
    live_[memory] = bytes;
    live_bytes_ += static_cast<std::int64_t>(bytes);
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    poison(memory, bytes, stream);
    return memory;
  }

  void deallocate(void* memory, std::size_t bytes, Stream stream) noexcept override {
    const std::scoped_lock lock(mutex_);
    const auto found = live_.find(memory);
    if (found == live_.end() || found->second != bytes) {
      ++num_wrong_releases_;
      return;
    }
    live_.erase(found);
    live_bytes_ -= static_cast<std::int64_t>(bytes);
    poison(memory, bytes, stream);
    from_.deallocate(memory, bytes, stream);
  }

  Device device() const noexcept override { return from_.device(); }

  /// The nth allocation from now on, counted from 1, and all that follow throw `out_of_memory`.
  void fail_from(std::int64_t nth) {
    first_failure_ = num_allocations_ + nth;
    last_failure_ = std::numeric_limits<std::int64_t>::max();
  }
  /// The nth alone.
  void fail_once(std::int64_t nth) { first_failure_ = last_failure_ = num_allocations_ + nth; }
  void never_fail() { first_failure_ = std::numeric_limits<std::int64_t>::max(); }

  std::int64_t num_allocations() const noexcept { return num_allocations_; }
  std::int64_t num_live() const noexcept { return static_cast<std::int64_t>(live_.size()); }
  std::int64_t live_bytes() const noexcept { return live_bytes_; }
  std::int64_t peak_bytes() const noexcept { return peak_bytes_; }
  /// What came back but was never taken, or with another size.
  std::int64_t num_wrong_releases() const noexcept { return num_wrong_releases_; }

 private:
  void poison(void* memory, std::size_t bytes, Stream stream) noexcept {
    try {
      if (device().kind == DeviceKind::cpu) {
        std::memset(memory, 0xa5, bytes);
      } else {
        const std::vector<unsigned char> pattern(bytes, 0xa5);
        copy_bytes(memory, pattern.data(), bytes, device(), stream);
      }
    } catch (...) {
      ++num_wrong_releases_;
    }
  }

  MemoryResource& from_;
  std::mutex mutex_;
  std::map<void*, std::size_t> live_;
  std::int64_t num_allocations_ = 0;
  std::int64_t live_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t num_wrong_releases_ = 0;
  std::int64_t first_failure_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_failure_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace tessera::test
