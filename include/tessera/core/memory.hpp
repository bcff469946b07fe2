// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "tessera/core/device.hpp"

namespace tessera {

/// Where memory comes from. Callers may replace it, for example by a framework's allocator. It must
/// outlive everything made of it.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;

  /// Returns at least `bytes` bytes, aligned to 64, on a GPU to 256, that work queued on the stream
  /// from now on may use. Throws `out_of_memory`; never returns null unless `bytes` is 0.
  virtual void* allocate(std::size_t bytes, Stream stream) = 0;
  /// Work that is on the stream already may still use the memory; it goes to others after that.
  virtual void deallocate(void* memory, std::size_t bytes, Stream stream) noexcept = 0;
  virtual Device device() const noexcept = 0;
};

/// Memory of this process. Counts what it hands out, and refuses what the machine cannot hold, so
/// that an impossible request is an error here and not a killed process later.
MemoryResource& host_memory();

/// The memory of a device: `host_memory()`, or the GPU's stream-ordered pool. Throws
/// `backend_unavailable` where there is no such device.
MemoryResource& default_memory(Device device);

/// Where something is made: on which device, of which memory, and on which stream the work of
/// making it is queued. It is released in the order of that stream, too, so the stream must outlive
/// it. docs/design/memory.md has the rules.
struct Place {
  Place() = default;
  Place(Device on, MemoryResource* from = nullptr, Stream in_order_of = {})
      : device(on), memory(from), stream(in_order_of) {}

  /// The memory; throws `invalid_argument` where it is another device's.
  MemoryResource& resource() const;

  Device device = {};
  MemoryResource* memory = nullptr;  ///< null: `default_memory(device)`
  Stream stream = {};
};

/// Copies between any two places, of which at least one is on `device`. On a GPU the copy is queued
/// on the stream; a copy to or from ordinary host memory has happened when the call returns.
void copy_bytes(void* to, const void* from, std::size_t bytes, Device device, Stream stream = {});

/// Sets memory of a device to 0, in the order of the stream.
void fill_zero(void* memory, std::size_t bytes, Device device, Stream stream = {});

/// Memory that a caller lends to one run of a plan: a view, on the plan's device, aligned to 256
/// bytes, of at least the plan's `workspace_bytes()`. What it holds before and after is of no
/// meaning. Absent, a run uses the plan's own.
struct Workspace {
  void* data = nullptr;
  std::int64_t bytes = 0;

  bool absent() const noexcept { return data == nullptr; }
};

struct MemoryUse {
  std::int64_t current_bytes = 0;
  std::int64_t peak_bytes = 0;
};

/// What `host_memory()` has handed out.
MemoryUse host_memory_use() noexcept;

/// Makes the present use the new peak, so that a stage can be measured alone.
void reset_host_memory_peak() noexcept;

/// The same of any device: what its `default_memory` has handed out.
MemoryUse memory_use(Device device);
void reset_memory_peak(Device device);

/// count * size in bytes; throws `out_of_memory` where that does not fit 63 bits.
std::size_t checked_bytes(std::int64_t count, std::size_t size);

/// rows * cols; throws `invalid_argument` if either is negative, `out_of_memory` on overflow.
std::int64_t checked_area(std::int64_t rows, std::int64_t cols);

/// An owned, uninitialised array of plain values.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size, MemoryResource& resource = host_memory(), Stream stream = {})
      : resource_(&resource), stream_(stream), size_(size) {
    data_ = static_cast<T*>(resource.allocate(checked_bytes(size, sizeof(T)), stream));
  }
  Buffer(std::int64_t size, const Place& place) : Buffer(size, place.resource(), place.stream) {}
  Buffer(std::int64_t size, T value) : Buffer(size) {
    for (T& element : *this) element = value;
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) {
      resource_->deallocate(data_, static_cast<std::size_t>(size_) * sizeof(T), stream_);
    }
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::int64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// Where the memory lies; the CPU if there is none.
  Device device() const noexcept { return resource_ == nullptr ? Device{} : resource_->device(); }
  T& operator[](std::int64_t i) noexcept { return data_[i]; }
  const T& operator[](std::int64_t i) const noexcept { return data_[i]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  std::span<T> span() noexcept { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const T> span() const noexcept { return {data_, static_cast<std::size_t>(size_)}; }
  operator std::span<const T>() const noexcept { return span(); }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(resource_, other.resource_);
    std::swap(stream_, other.stream_);
    std::swap(size_, other.size_);
  }

 private:
  T* data_ = nullptr;
  MemoryResource* resource_ = nullptr;
  Stream stream_;
  std::int64_t size_ = 0;
};

}  // namespace tessera
