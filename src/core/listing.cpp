// SPDX-License-Identifier: Apache-2.0
#include "core/listing.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tessera {

std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 40;
  if (name.size() <= longest) return fmt::format("'{}'", name);
  std::size_t end = longest;
  // Not within a character of UTF-8.
  while (end > longest - 4 && (static_cast<unsigned char>(name[end]) & 0xC0u) == 0x80u) --end;
  return fmt::format("'{}…'", name.substr(0, end));
}

std::string listed(const std::vector<std::string>& items) {
  constexpr std::size_t most = 8;
  const std::size_t shown = std::min(items.size(), most);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == items.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + items[i];
  }
  if (shown < items.size()) text += fmt::format(" and {} more", items.size() - shown);
  return text;
}

}  // namespace tessera
