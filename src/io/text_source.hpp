// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/core/progress.hpp"

#include "io/deflate.hpp"
#include "io/file.hpp"
#include "io/scan.hpp"

namespace tessera::io {

/// Some whole lines of a text, and how many bytes of it come before them.
struct TextBlock {
  std::string_view text;
  std::int64_t offset = 0;
};

/// A text file, plain or gzipped, in blocks of whole lines: memory stays that of one block however
/// long the file. A byte order mark of UTF-8 is left out.
class TextSource {
 public:
  explicit TextSource(const std::string& path);

  const std::string& path() const noexcept { return file_.path(); }

  /// The next block, which is valid until the next call; nothing at the end.
  std::optional<TextBlock> next();
  /// Back to the first block.
  void rewind();

  /// How far the file has been read, for those who show progress.
  std::int64_t bytes_read() const noexcept { return position_; }
  std::int64_t file_bytes() const noexcept { return file_.size(); }

  /// The line, from 1, that this byte of the text belongs to. Reads the text from its begin.
  std::int64_t line_at(std::int64_t offset) const;

  /// Throws where the file is not what it was when it was opened.
  void require_unchanged() const { file_.require_unchanged(); }

 private:
  std::size_t fill(std::span<std::byte> out);
  std::size_t fill_unpacked(std::span<std::byte> out);
  void skip_byte_order_mark();

  InputFile file_;
  bool packed_ = false;
  std::int64_t block_bytes_ = 0;
  Buffer<std::byte> buffer_;
  std::int64_t held_ = 0;  ///< bytes in the buffer that no block has handed out yet
  std::int64_t used_ = 0;  ///< bytes in the buffer before those
  std::int64_t offset_ = 0;
  std::int64_t position_ = 0;
  bool started_ = false;
  bool ended_ = false;

  std::optional<Inflater> inflater_;
  Buffer<std::byte> window_;
  std::span<const std::byte> unread_;
  bool between_members_ = false;
};

/// A piece of a block, for one thread.
struct TextChunk {
  std::string_view text;
  std::int64_t offset = 0;
  /// The length of the text up to the end of the block, by which claims about it are measured.
  std::int64_t text_bytes = 0;
};

inline constexpr auto nothing_to_do = [](std::int64_t) {};

/// Goes through the text from `begin` on, a block at a time: `before(chunks)`, then
/// `body(task, chunk)` for all its chunks by all threads, then `after(chunks)`. A LineProblem that
/// `body` throws becomes a `bad_data` error with the number of the line.
void for_each_chunk(TextSource& source, std::int64_t begin, std::string_view stage,
                    const Progress& progress,
                    FunctionRef<void(std::int64_t task, const TextChunk& chunk)> body,
                    FunctionRef<void(std::int64_t chunks)> before = nothing_to_do,
                    FunctionRef<void(std::int64_t chunks)> after = nothing_to_do);

/// Numbers the entries of a text, such as the rows of a table, in a pass that counts those of every
/// chunk.
class EntryNumbers {
 public:
  EntryNumbers(TextSource& source, std::int64_t begin, std::string_view stage,
               const Progress& progress, FunctionRef<std::int64_t(std::string_view text)> count);

  std::int64_t total() const noexcept { return total_; }
  /// The number of the first entry of a chunk, from 0; `total()` where the file has changed.
  std::int64_t first_of(const TextChunk& chunk) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> firsts_;  ///< by where chunks begin
  std::int64_t total_ = 0;
};

}  // namespace tessera::io
