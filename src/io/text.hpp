// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"

/// Reading large text files of numbers with all threads.
namespace tessera::io {

/// A byte order mark that says nothing and is left out.
inline constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";

/// Throws `unsupported` for a text in UTF-16.
void require_utf8(std::string_view text, const std::string& path);

/// The whole of a text file, unpacked if its first bytes are gzip's.
Buffer<std::byte> load_text(const std::string& path);

/// Without a byte order mark.
inline std::string_view text_of(const Buffer<std::byte>& bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                        static_cast<std::size_t>(bytes.size()));
  if (text.starts_with(utf8_mark)) text.remove_prefix(utf8_mark.size());
  return text;
}

/// Takes words off the front of a line. Spaces, tabs and carriage returns part them.
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
std::string_view take_line(std::string_view& text);

/// True for a line that is blank or begins with '%'.
bool is_comment(std::string_view line);

/// Lines that carry something, found by all threads. Each has its number among these lines and its
/// line number in the file.
class TextEntries {
 public:
  /// @param first_line  line number, in the file, of the first line of `text`
  TextEntries(std::string_view text, std::int64_t first_line);

  std::int64_t count() const noexcept { return count_; }

  /// Runs `body(entry, line, line_number)` for all of them, in parallel.
  void for_each(
      FunctionRef<void(std::int64_t entry, std::string_view line, std::int64_t number)> body) const;

 private:
  struct Chunk {
    std::string_view text;
    std::int64_t first_line = 0;
    std::int64_t first_entry = 0;
  };
  std::vector<Chunk> chunks_;
  std::int64_t count_ = 0;
};

}  // namespace tessera::io
