// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Texts in UTF-8 by their characters, for what is aligned or cut to a width.
namespace tessera::app {

inline bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

inline std::size_t num_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += begins_character(byte) ? 1 : 0;
  return count;
}

/// At most so many characters from the front; none is cut in two.
inline std::string first_characters(std::string_view text, std::size_t most) {
  std::size_t count = 0, end = 0;
  for (; end < text.size(); ++end) {
    if (begins_character(text[end]) && count++ == most) break;
  }
  return std::string(text.substr(0, end));
}

}  // namespace tessera::app
