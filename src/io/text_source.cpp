// SPDX-License-Identifier: Apache-2.0
#include "io/text_source.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/text.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t usual_block = 1 << 23;
constexpr std::int64_t chunk_bytes = 1 << 18;
constexpr std::int64_t window_bytes = 1 << 18;
constexpr std::int64_t read_grain = 1 << 21;

bool begins_gzipped(const InputFile& file) {
  std::byte first[2];
  if (file.size() < 2) return false;
  file.read(0, first);
  return looks_gzipped(first);
}

std::vector<TextChunk> cut(const TextBlock& block, std::int64_t begin) {
  std::string_view rest = block.text;
  std::int64_t offset = block.offset;
  if (begin > offset) {
    const auto skipped = std::min<std::int64_t>(begin - offset, std::ssize(rest));
    rest.remove_prefix(static_cast<std::size_t>(skipped));
    offset += skipped;
  }
  const std::int64_t text_bytes = block.offset + std::ssize(block.text);
  std::vector<TextChunk> chunks;
  while (!rest.empty()) {
    const std::size_t wanted = std::min<std::size_t>(rest.size(), chunk_bytes);
    const std::size_t end = rest.find('\n', wanted - 1);
    const std::size_t length = end == std::string_view::npos ? rest.size() : end + 1;
    chunks.push_back({rest.substr(0, length), offset, text_bytes});
    rest.remove_prefix(length);
    offset += static_cast<std::int64_t>(length);
  }
  return chunks;
}

/// A LineProblem with its place in the text instead of a place in memory.
struct PlacedProblem {
  std::int64_t offset;
  std::string problem;
  std::string fix;
};

}  // namespace

TextSource::TextSource(const std::string& path) : file_(path), packed_(begins_gzipped(file_)) {
  // One byte more than a small file has, so that its end is seen in the first block. What a packed
  // one has is not known.
  constexpr std::int64_t small_block = 1 << 16;
  const std::int64_t wanted = packed_ ? std::max(small_block, 4 * file_.size()) : file_.size() + 1;
  block_bytes_ = std::min(usual_block, wanted);
  rewind();
}

void TextSource::rewind() {
  held_ = used_ = offset_ = position_ = 0;
  started_ = ended_ = false;
  unread_ = {};
  between_members_ = false;
  if (packed_) {
    inflater_.emplace(DeflateFormat::gzip, path());
    if (window_.empty()) window_ = Buffer<std::byte>(std::min(window_bytes, file_.size()));
  }
}

std::size_t TextSource::fill(std::span<std::byte> out) {
  if (packed_) return fill_unpacked(out);
  const auto length = std::min<std::int64_t>(std::ssize(out), file_.size() - position_);
  parallel_ranges(length, read_grain, [&](std::int64_t begin, std::int64_t end) {
    file_.read(position_ + begin,
               out.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  });
  position_ += length;
  return static_cast<std::size_t>(length);
}

std::size_t TextSource::fill_unpacked(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    if (unread_.empty() && position_ < file_.size()) {
      const auto length = std::min(window_.size(), file_.size() - position_);
      const auto fresh = window_.span().first(static_cast<std::size_t>(length));
      file_.read(position_, fresh);
      position_ += length;
      unread_ = fresh;
    }
    if (between_members_) {
      // Zeros may pad the end of a gzip file; anything else has to be another member.
      while (!unread_.empty() && unread_.front() == std::byte{}) unread_ = unread_.subspan(1);
      if (unread_.empty() && position_ < file_.size()) continue;
      if (unread_.empty()) return filled;
      inflater_->restart();
      between_members_ = false;
    }
    const auto step = inflater_->advance(unread_, out.subspan(filled));
    unread_ = unread_.subspan(step.consumed);
    filled += step.produced;
    between_members_ = step.finished;
    if (!step.finished && step.consumed == 0 && step.produced == 0 && position_ == file_.size() &&
        unread_.empty()) {
      damaged(path(), "the gzip stream ends early");
    }
  }
  return filled;
}

void TextSource::skip_byte_order_mark() {
  const std::string_view start(reinterpret_cast<const char*>(buffer_.data()),
                               static_cast<std::size_t>(held_));
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) {
    throw Error(ErrorCode::unsupported, "is UTF-16", path(), "save the text as UTF-8");
  }
  if (!start.starts_with(utf8_mark)) return;
  used_ = offset_ = std::ssize(utf8_mark);
  held_ -= used_;
}

std::optional<TextBlock> TextSource::next() {
  if (buffer_.empty()) buffer_ = Buffer<std::byte>(block_bytes_);
  for (;;) {
    std::memmove(buffer_.data(), buffer_.data() + used_, static_cast<std::size_t>(held_));
    used_ = 0;
    if (!ended_) {
      const auto room = buffer_.span().subspan(static_cast<std::size_t>(held_));
      const std::size_t filled = fill(room);
      held_ += static_cast<std::int64_t>(filled);
      ended_ = filled < room.size();
    }
    if (!std::exchange(started_, true)) skip_byte_order_mark();
    if (held_ == 0) return {};
    const std::string_view held(reinterpret_cast<const char*>(buffer_.data() + used_),
                                static_cast<std::size_t>(held_));
    const std::size_t last = held.rfind('\n');
    if (last == std::string_view::npos && !ended_) {
      // A line longer than the buffer.
      Buffer<std::byte> larger(2 * buffer_.size());
      std::memcpy(larger.data(), buffer_.data() + used_, held.size());
      buffer_ = std::move(larger);
      used_ = 0;
      continue;
    }
    const std::string_view text = ended_ ? held : held.substr(0, last + 1);
    const TextBlock block{text, offset_};
    used_ += std::ssize(text);
    held_ -= std::ssize(text);
    offset_ += std::ssize(text);
    return block;
  }
}

std::int64_t TextSource::line_at(std::int64_t offset) const {
  TextSource again(path());
  std::int64_t line = 1;
  while (const auto block = again.next()) {
    const auto length =
        std::clamp<std::int64_t>(offset - block->offset, 0, std::ssize(block->text));
    line += std::count(block->text.begin(), block->text.begin() + length, '\n');
    if (length < std::ssize(block->text)) break;
  }
  return line;
}

void for_each_chunk(TextSource& source, std::int64_t begin, std::string_view stage,
                    const Progress& progress,
                    FunctionRef<void(std::int64_t, const TextChunk&)> body,
                    FunctionRef<void(std::int64_t)> before, FunctionRef<void(std::int64_t)> after) {
  source.rewind();
  try {
    report(progress, stage, 0, source.file_bytes());
    while (const auto block = source.next()) {
      const std::vector<TextChunk> chunks = cut(*block, begin);
      before(std::ssize(chunks));
      parallel_tasks(std::ssize(chunks), [&](std::int64_t task) {
        const TextChunk& chunk = chunks[static_cast<std::size_t>(task)];
        try {
          body(task, chunk);
        } catch (const LineProblem& line) {
          throw PlacedProblem{chunk.offset + (line.at - chunk.text.data()), line.problem, line.fix};
        }
      });
      after(std::ssize(chunks));
      report(progress, stage, source.bytes_read(), source.file_bytes());
    }
  } catch (const PlacedProblem& placed) {
    throw Error(ErrorCode::bad_data, placed.problem,
                fmt::format("{}: line {}", source.path(), source.line_at(placed.offset)),
                placed.fix);
  }
}

EntryNumbers::EntryNumbers(TextSource& source, std::int64_t begin, std::string_view stage,
                           const Progress& progress,
                           FunctionRef<std::int64_t(std::string_view)> count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;
  for_each_chunk(
      source, begin, stage, progress,
      [&](std::int64_t task, const TextChunk& chunk) {
        counts[static_cast<std::size_t>(task)] = {chunk.offset, count(chunk.text)};
      },
      [&](std::int64_t chunks) { counts.assign(static_cast<std::size_t>(chunks), {}); },
      [&](std::int64_t) {
        for (const auto& [offset, entries] : counts) {
          firsts_.emplace_back(offset, total_);
          total_ += entries;
        }
      });
}

std::int64_t EntryNumbers::first_of(const TextChunk& chunk) const {
  const auto found =
      std::lower_bound(firsts_.begin(), firsts_.end(), std::pair(chunk.offset, std::int64_t{0}));
  const bool known = found != firsts_.end() && found->first == chunk.offset;
  return known ? found->second : total_;
}

}  // namespace tessera::io
