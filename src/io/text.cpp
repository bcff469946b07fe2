// SPDX-License-Identifier: Apache-2.0
#include "io/text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "tessera/core/error.hpp"

#include "io/deflate.hpp"
#include "io/file.hpp"

namespace tessera::io {
namespace {

constexpr std::size_t chunk_bytes = 1 << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/// Where the line that begins at or after `position` begins.
std::size_t line_start(std::string_view text, std::size_t position) {
  if (position == 0) return 0;
  const std::size_t end = text.find('\n', position - 1);
  return end == std::string_view::npos ? text.size() : end + 1;
}

}  // namespace

void require_utf8(std::string_view text, const std::string& path) {
  if (!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF")) return;
  throw Error(ErrorCode::unsupported, "is UTF-16", path, "save the text as UTF-8");
}

Buffer<std::byte> load_text(const std::string& path) {
  Buffer<std::byte> bytes = InputFile(path).read_all();
  if (looks_gzipped(bytes.span())) bytes = gunzip(bytes.span(), path);
  require_utf8(text_of(bytes), path);
  return bytes;
}

void LineScanner::skip_space() {
  while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
}

std::string_view LineScanner::word() {
  skip_space();
  const auto end = std::find_if(rest_.begin(), rest_.end(), is_space);
  const auto length = static_cast<std::size_t>(end - rest_.begin());
  const std::string_view found = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return found;
}

std::optional<std::int64_t> LineScanner::integer() {
  skip_space();
  if (rest_.size() > 1 && rest_[0] == '+' && rest_[1] != '-') rest_.remove_prefix(1);
  std::int64_t value = 0;
  const char* const end = rest_.data() + rest_.size();
  const auto [stop, problem] = std::from_chars(rest_.data(), end, value);
  if (problem != std::errc() || (stop != end && !is_space(*stop))) return {};
  rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
  return value;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool is_comment(std::string_view line) {
  const auto first = std::find_if_not(line.begin(), line.end(), is_space);
  return first == line.end() || *first == '%';
}

TextEntries::TextEntries(std::string_view text, std::int64_t first_line) {
  for (std::size_t begin = 0; begin < text.size(); begin += chunk_bytes) {
    const std::size_t start = line_start(text, begin);
    const std::size_t end = line_start(text, std::min(begin + chunk_bytes, text.size()));
    chunks_.push_back({text.substr(start, end - start), 0, 0});
  }
  parallel_tasks(std::ssize(chunks_), [&](std::int64_t i) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
    for (std::string_view rest = chunk.text; !rest.empty(); ++chunk.first_line) {
      chunk.first_entry += is_comment(take_line(rest)) ? 0 : 1;
    }
  });
  std::int64_t line = first_line;
  for (Chunk& chunk : chunks_) {
    line += std::exchange(chunk.first_line, line);
    count_ += std::exchange(chunk.first_entry, count_);
  }
}

void TextEntries::for_each(
    FunctionRef<void(std::int64_t, std::string_view, std::int64_t)> body) const {
  parallel_tasks(std::ssize(chunks_), [&](std::int64_t i) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
    std::int64_t number = chunk.first_line;
    std::int64_t entry = chunk.first_entry;
    for (std::string_view rest = chunk.text; !rest.empty(); ++number) {
      const std::string_view line = take_line(rest);
      if (!is_comment(line)) body(entry++, line, number);
    }
  });
}

}  // namespace tessera::io
