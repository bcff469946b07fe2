// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.hpp"

#include <cstdint>

namespace tessera {

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead < 0xc2   ? 0
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  char32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  // Spellings that are too long, halves of pairs, and what lies beyond the last character.
  constexpr char32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_half = code >= 0xd800 && code <= 0xdfff;
  return code < lowest[bytes] || is_half || code > 0x10ffff ? Character{} : Character{code, bytes};
}

}  // namespace tessera
