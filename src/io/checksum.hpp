// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::io {

/// CRC-32 as zip, gzip and PNG use it (polynomial 0xEDB88320). Parts may be summed apart, by
/// different threads, and then joined in order.
class Crc32 {
 public:
  Crc32() = default;
  explicit Crc32(std::span<const std::byte> bytes) { add(bytes); }

  void add(std::span<const std::byte> bytes);
  /// As if the bytes behind `next` had been added here.
  void join(const Crc32& next);

  std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
  std::int64_t length_ = 0;
};

/// The checksum of all bytes, by all threads.
Crc32 parallel_crc32(std::span<const std::byte> bytes);

}  // namespace tessera::io
