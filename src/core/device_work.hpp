// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

/// What this process asks of its GPUs, counted where it is asked: what planning costs is seen here.
namespace tessera {

struct DeviceWork {
  std::int64_t waits = 0;        ///< of this process for a stream or an event
  std::int64_t allocations = 0;  ///< of the default memory of GPUs
  std::int64_t copies = 0;       ///< in any direction
  /// Those that go to memory of this process, counted only while a `CopyWatch` lives, since
  /// telling where a pointer leads takes time.
  std::int64_t copies_to_host = 0;
  std::int64_t bytes_to_host = 0;
  std::int64_t largest_to_host = 0;  ///< bytes, of one copy

  /// What came after the other; the largest copy is that of the whole time watched.
  DeviceWork since(const DeviceWork& earlier) const noexcept {
    return {waits - earlier.waits,
            allocations - earlier.allocations,
            copies - earlier.copies,
            copies_to_host - earlier.copies_to_host,
            bytes_to_host - earlier.bytes_to_host,
            largest_to_host};
  }
};

namespace detail {

struct DeviceWorkCounters {
  std::atomic<std::int64_t> waits{0}, allocations{0}, copies{0};
  std::atomic<std::int64_t> copies_to_host{0}, bytes_to_host{0}, largest_to_host{0};
  std::atomic<int> watches{0};

  static void add(std::atomic<std::int64_t>& counter, std::int64_t count = 1) noexcept {
    counter.fetch_add(count, std::memory_order_relaxed);
  }
};

inline DeviceWorkCounters device_work_counters;

}  // namespace detail

/// Since this process began.
inline DeviceWork device_work() noexcept {
  const detail::DeviceWorkCounters& now = detail::device_work_counters;
  return {now.waits.load(),          now.allocations.load(),   now.copies.load(),
          now.copies_to_host.load(), now.bytes_to_host.load(), now.largest_to_host.load()};
}

/// While one lives, copies to memory of this process are counted apart.
class CopyWatch {
 public:
  CopyWatch() noexcept {
    detail::device_work_counters.largest_to_host = 0;
    ++detail::device_work_counters.watches;
  }
  ~CopyWatch() { --detail::device_work_counters.watches; }
  CopyWatch(const CopyWatch&) = delete;
  CopyWatch& operator=(const CopyWatch&) = delete;
};

}  // namespace tessera
