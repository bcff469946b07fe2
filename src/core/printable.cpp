// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/printable.hpp"

#include <algorithm>
#include <cstdint>

namespace tessera {
namespace {

/// The first character of a text in UTF-8; `bytes` is 0 where the first byte begins none.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

Character first_of(std::string_view text) {
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

/// Controls, what orders or formats other text, every space but the plain one, ends of lines,
/// private characters, and blocks that hold none. In rising order.
constexpr struct {
  char32_t first, last;
} hidden[] = {
    {0x00, 0x1f},        {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},
    {0x61c, 0x61c},      {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
    {0x8e2, 0x8e2},      {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},
    {0x2028, 0x202f},    {0x205f, 0x206f},   {0x3000, 0x3000},   {0xe000, 0xf8ff},
    {0xfdd0, 0xfdef},    {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},
    {0x110bd, 0x110bd},  {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a},  {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff}, {0x3fffe, 0xe00ff},
    {0xe01f0, 0x10ffff},
};

bool is_hidden(char32_t code) {
  const auto* const range =
      std::lower_bound(std::begin(hidden), std::end(hidden), code,
                       [](const auto& one, char32_t value) { return one.last < value; });
  return range != std::end(hidden) && range->first <= code;
}

void append_escape(std::string& shown, char32_t code) {
  switch (code) {
    case '\n': shown += "\\n"; return;
    case '\r': shown += "\\r"; return;
    case '\t': shown += "\\t"; return;
    default: break;
  }
  constexpr char digits[] = "0123456789abcdef";
  shown += code < 0x100 ? "\\x" : code < 0x10000 ? "\\u" : "\\U";
  for (int shift = code < 0x100 ? 4 : code < 0x10000 ? 12 : 28; shift >= 0; shift -= 4) {
    shown += digits[code >> shift & 15U];
  }
}

}  // namespace

std::string printable(std::string_view text, bool keep_lines) {
  std::string shown;
  while (!text.empty()) {
    const Character next = first_of(text);
    const std::size_t length = std::max<std::size_t>(next.bytes, 1);
    if (next.bytes == 0) {
      append_escape(shown, static_cast<std::uint8_t>(text[0]));
    } else if (is_hidden(next.code) && !(next.code == '\n' && keep_lines)) {
      append_escape(shown, next.code);
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace tessera
