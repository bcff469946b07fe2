// SPDX-License-Identifier: Apache-2.0
#include "io/checksum.hpp"

#include <zlib.h>

#include "tessera/core/parallel.hpp"

namespace tessera::io {

void Crc32::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  value_ = static_cast<std::uint32_t>(
      crc32_z(value_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  length_ += static_cast<std::int64_t>(bytes.size());
}

void Crc32::join(const Crc32& next) {
  value_ = static_cast<std::uint32_t>(crc32_combine(value_, next.value_, next.length_));
  length_ += next.length_;
}

Crc32 parallel_crc32(std::span<const std::byte> bytes) {
  constexpr std::int64_t grain = 1 << 20;
  return parallel_reduce(
      static_cast<std::int64_t>(bytes.size()), grain, Crc32(),
      [&](std::int64_t begin, std::int64_t end) {
        return Crc32(
            bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      },
      [](Crc32 sum, const Crc32& next) {
        sum.join(next);
        return sum;
      });
}

}  // namespace tessera::io
