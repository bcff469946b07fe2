// SPDX-License-Identifier: Apache-2.0
#include "io/json_text.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/utf8.hpp"

namespace tessera::io {
namespace {

constexpr char32_t replacement = 0xfffd;

void append_escaped(std::string& json, char32_t code) {
  if (code < 0x10000) {
    fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(code));
    return;
  }
  // Beyond the first 65,536 characters as two halves, which is what JSON has for them.
  append_escaped(json, 0xd800 + ((code - 0x10000) >> 10));
  append_escaped(json, 0xdc00 + ((code - 0x10000) & 0x3ffU));
}

}  // namespace

void append_json_text(std::string& json, std::string_view text) {
  json.push_back('"');
  while (!text.empty()) {
    const Character next = first_character(text);
    const char32_t code = next.bytes == 0 ? replacement : next.code;
    if (code == '"' || code == '\\') {
      json.push_back('\\');
      json.push_back(static_cast<char>(code));
    } else if (code >= 0x20 && code < 0x7f) {
      json.push_back(static_cast<char>(code));
    } else {
      append_escaped(json, code);
    }
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  json.push_back('"');
}

}  // namespace tessera::io
