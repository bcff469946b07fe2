// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace tessera::io {

static_assert(std::endian::native == std::endian::little,
              "arrays are read and written as they lie in memory, which must be little-endian");

/// The number at `offset`, which must lie inside `bytes`; need not be aligned.
template <class T>
requires std::is_trivially_copyable_v<T> T get_little_endian(std::span<const std::byte> bytes,
                                                             std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.subspan(offset, sizeof(T)).data(), sizeof(T));
  return value;
}

/// One number after the other.
template <class... T>
requires(std::is_trivially_copyable_v<T>&&...) void put_little_endian(std::string& out,
                                                                      T... values) {
  (out.append(reinterpret_cast<const char*>(&values), sizeof(T)), ...);
}

}  // namespace tessera::io
