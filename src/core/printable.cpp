// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/printable.hpp"

#include <algorithm>
#include <cstdint>

#include "core/utf8.hpp"

namespace tessera {
namespace {

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
    const Character next = first_character(text);
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
