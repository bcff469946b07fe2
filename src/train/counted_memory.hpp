// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tessera/core/memory.hpp"

/// Memory that tells how much of it was asked for.
namespace tessera::train {

/// Bytes of one resource, or of several together.
class ByteCount {
 public:
  std::int64_t current() const noexcept { return current_; }
  std::int64_t peak() const noexcept { return peak_; }

  void add(std::int64_t bytes) noexcept {
    const std::int64_t now = current_ += bytes;
    std::int64_t peak = peak_;
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }

 private:
  std::atomic<std::int64_t> current_ = 0;
  std::atomic<std::int64_t> peak_ = 0;
};

class CountedMemory : public MemoryResource {
 public:
  /// `together` counts what several take.
  explicit CountedMemory(ByteCount& together) noexcept : together_(together) {}

  const ByteCount& count() const noexcept { return own_; }

 protected:
  void add(std::int64_t bytes) noexcept {
    own_.add(bytes);
    together_.add(bytes);
  }

 private:
  ByteCount own_;
  ByteCount& together_;
};

/// That of another resource.
class ForwardedMemory final : public CountedMemory {
 public:
  ForwardedMemory(MemoryResource& from, ByteCount& together) noexcept
      : CountedMemory(together), from_(from) {}

  void* allocate(std::size_t bytes, Stream stream) override;
  void deallocate(void* memory, std::size_t bytes, Stream stream) noexcept override;
  Device device() const noexcept override { return from_.device(); }

 private:
  MemoryResource& from_;
};

/// For buffers that are planned and never used: addresses of this process, behind which there is no
/// memory until somebody writes there.
class UnusedMemory final : public CountedMemory {
 public:
  /// It says that it lies on `device`.
  UnusedMemory(Device device, ByteCount& together) noexcept
      : CountedMemory(together), device_(device) {}

  void* allocate(std::size_t bytes, Stream stream) override;
  void deallocate(void* memory, std::size_t bytes, Stream stream) noexcept override;
  Device device() const noexcept override { return device_; }

 private:
  Device device_;
};

}  // namespace tessera::train
