// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/printable.hpp"

namespace tessera {

std::string printable(std::string_view text, bool keep_lines) {
  constexpr char digits[] = "0123456789abcdef";
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    // In UTF-8 the control characters from 80 to 9f are the byte c2 and one more.
    const bool upper = byte == 0xc2 && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (!upper && ((byte >= 0x20 && byte != 0x7f) || (byte == '\n' && keep_lines))) {
      shown += text[i];
      continue;
    }
    if (upper) byte = static_cast<unsigned char>(text[++i]);
    switch (byte) {
      case '\n': shown += "\\n"; break;
      case '\r': shown += "\\r"; break;
      case '\t': shown += "\\t"; break;
      default: shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return shown;
}

}  // namespace tessera
