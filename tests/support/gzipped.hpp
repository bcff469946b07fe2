// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "io/deflate.hpp"
#include "io/file.hpp"

namespace tessera::test {

inline std::string gzipped(const std::string& text) {
  const std::span<const std::byte> parts[] = {io::bytes_of(text)};
  std::string bytes;
  for (const auto& piece : io::gzip(parts)) {
    bytes.append(reinterpret_cast<const char*>(piece.data()),
                 static_cast<std::size_t>(piece.size()));
  }
  return bytes;
}

}  // namespace tessera::test
