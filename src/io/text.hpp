// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/core/memory.hpp"

/// Lines of text and the words in them.
namespace tessera::io {

/// A byte order mark that says nothing and is left out.
inline constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";

/// Without a byte order mark.
inline std::string_view text_of(const Buffer<std::byte>& bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                        static_cast<std::size_t>(bytes.size()));
  if (text.starts_with(utf8_mark)) text.remove_prefix(utf8_mark.size());
  return text;
}

/// Takes words off the front of a line. Blanks part them.
class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : rest_(line) {}

  bool at_end() {
    skip_space();
    return rest_.empty();
  }
  /// The next word; empty at the end of the line.
  std::string_view word();
  /// The next word as an integer; nothing if it is none or does not fit 64 bits.
  std::optional<std::int64_t> integer();

 private:
  void skip_space();

  std::string_view rest_;
};

/// Takes the first line off `text`, without its end.
inline std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// True for a line that is blank or begins with '%'.
bool is_comment(std::string_view line);

}  // namespace tessera::io
