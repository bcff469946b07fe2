// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/cuda_backend.hpp"
#include "core/transfer_memory.hpp"

namespace tessera {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

std::int64_t physical_bytes() {
  static const std::int64_t bytes =
      static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return bytes;
}

[[noreturn]] void refuse(std::size_t bytes, std::int64_t in_use) {
  constexpr double gib = 1 << 30;
  throw Error(ErrorCode::out_of_memory,
              fmt::format("cannot allocate {:.3g} GiB: {:.3g} GiB are in use of {:.3g} GiB",
                          static_cast<double>(bytes) / gib, static_cast<double>(in_use) / gib,
                          static_cast<double>(physical_bytes()) / gib),
              "memory", "use a smaller graph, fewer features or a larger machine");
}

class HostMemory final : public MemoryResource {
 public:
  void* allocate(std::size_t bytes, Stream) override {
    if (bytes == 0) return nullptr;
    const std::int64_t before = current_.load(std::memory_order_relaxed);
    if (bytes > static_cast<std::size_t>(physical_bytes()) ||
        before > physical_bytes() - static_cast<std::int64_t>(bytes)) {
      refuse(bytes, before);
    }
    // Large arrays are touched from end to end: huge pages save most of the page faults.
    const bool large = bytes >= 2 * huge_page;
    const std::size_t alignment = large ? huge_page : cache_line;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) refuse(bytes, before);
    if (large) madvise(memory, rounded, MADV_HUGEPAGE);
    count(static_cast<std::int64_t>(bytes));
    return memory;
  }

  void deallocate(void* memory, std::size_t bytes, Stream) noexcept override {
    std::free(memory);
    count(-static_cast<std::int64_t>(bytes));
  }

  Device device() const noexcept override { return {}; }

  MemoryUse use() const noexcept { return {current_.load(), peak_.load()}; }
  void reset_peak() noexcept { peak_.store(current_.load()); }

 private:
  void count(std::int64_t bytes) noexcept {
    const std::int64_t now = current_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }

  std::atomic<std::int64_t> current_{0};
  std::atomic<std::int64_t> peak_{0};
};

// Never destroyed: arrays in static storage may be freed after main ends.
HostMemory& the_host_memory() {
  static HostMemory* const memory = new HostMemory;
  return *memory;
}

}  // namespace

MemoryResource& host_memory() { return the_host_memory(); }
MemoryUse host_memory_use() noexcept { return the_host_memory().use(); }
void reset_host_memory_peak() noexcept { the_host_memory().reset_peak(); }

MemoryResource& default_memory(Device device) {
  require_available(device);
  return device.kind == DeviceKind::cpu ? host_memory() : cuda_backend::memory(device.index);
}

MemoryResource& transfer_memory(Device device) {
  require_available(device);
  return device.kind == DeviceKind::cpu ? host_memory() : cuda_backend::transfer_memory();
}

MemoryResource& Place::resource() const {
  if (memory == nullptr) return default_memory(device);
  if (memory->device() == device) return *memory;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("memory of {} for work on {}", to_string(memory->device()), to_string(device)),
      "memory", "give a memory resource of the same device");
}

MemoryUse memory_use(Device device) {
  require_available(device);
  return device.kind == DeviceKind::cpu ? host_memory_use()
                                        : cuda_backend::memory_use(device.index);
}

void reset_memory_peak(Device device) {
  require_available(device);
  if (device.kind == DeviceKind::cpu) {
    reset_host_memory_peak();
  } else {
    cuda_backend::reset_memory_peak(device.index);
  }
}

void copy_bytes(void* to, const void* from, std::size_t bytes, Device device, Stream stream) {
  if (bytes == 0) return;
  if (device.kind == DeviceKind::cpu) {
    std::memcpy(to, from, bytes);
  } else {
    cuda_backend::copy(to, from, bytes, device, stream);
  }
}

void fill_zero(void* memory, std::size_t bytes, Device device, Stream stream) {
  if (bytes == 0) return;
  if (device.kind == DeviceKind::cpu) {
    std::memset(memory, 0, bytes);
  } else {
    cuda_backend::fill_zero(memory, bytes, device, stream);
  }
}

std::int64_t checked_area(std::int64_t rows, std::int64_t cols) {
  if (rows < 0 || cols < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("negative size {} x {}", rows, cols));
  }
  std::int64_t area = 0;
  if (__builtin_mul_overflow(rows, cols, &area)) {
    throw Error(ErrorCode::out_of_memory, fmt::format("{} x {} overflows 63 bits", rows, cols),
                "memory", "use fewer rows or features");
  }
  return area;
}

std::size_t checked_bytes(std::int64_t count, std::size_t size) {
  return static_cast<std::size_t>(checked_area(count, static_cast<std::int64_t>(size)));
}

}  // namespace tessera
