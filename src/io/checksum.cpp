// SPDX-License-Identifier: Apache-2.0
#include "io/checksum.hpp"

#include <zlib.h>

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

}  // namespace tessera::io
