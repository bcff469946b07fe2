// SPDX-License-Identifier: Apache-2.0
#include "io/text_array.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/utf8.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t character_bytes = 4;

/// Calls `take` with the code of each character.
template <class Take>
void for_each_character(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const Character next = first_character(text);
    take(next.bytes == 0 ? char32_t{0xfffd} : next.code);
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
}

void require_sense(const std::string& name, std::int64_t texts, std::int64_t widest,
                   std::int64_t used) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  constexpr std::int64_t most_padding = 32;
  const bool fits = widest == 0 || texts <= most_bytes / character_bytes / widest;
  if (fits || texts / most_padding <= used / widest) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} texts of up to {} characters are mostly padding as an array of NumPy",
                          texts, widest),
              name, "write .csv or .json, or shorten the longest");
}

}  // namespace

NamedArray text_array(std::string name, const std::vector<std::string_view>& texts) {
  std::int64_t widest = 1, used = 0;
  for (const std::string_view text : texts) {
    std::int64_t characters = 0;
    for_each_character(text, [&](char32_t) { ++characters; });
    widest = std::max(widest, characters);
    used += characters;
  }
  const std::int64_t count = std::ssize(texts);
  require_sense(name, count, widest, used);
  Buffer<std::byte> bytes(count * widest * character_bytes);
  std::fill_n(bytes.data(), bytes.size(), std::byte{0});
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* place = bytes.data() + i * widest * character_bytes;
    for_each_character(texts[static_cast<std::size_t>(i)], [&](char32_t code) {
      std::memcpy(place, &code, character_bytes);
      place += character_bytes;
    });
  }
  return {std::move(name), {fmt::format("<U{}", widest), {count}, std::move(bytes)}};
}

}  // namespace tessera::io
