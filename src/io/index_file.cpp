// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/index_file.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

#include "io/text.hpp"
#include "io/text_source.hpp"

namespace tessera::io {
namespace {

/// A graph without vertices has an empty list, which is an empty file.
bool is_empty_file(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown) &&
         std::filesystem::is_empty(path, unknown);
}

constexpr auto count_integers = [](std::string_view text) {
  std::int64_t count = 0;
  while (!text.empty()) count += is_comment(take_line(text)) ? 0 : 1;
  return count;
};

}  // namespace

std::vector<std::int64_t> read_index_file(const std::string& path, std::int64_t expected_count) {
  const auto require_count = [&](std::int64_t count) {
    if (expected_count < 0 || count == expected_count) return;
    throw Error(ErrorCode::bad_data,
                fmt::format("holds {} integers, but {} are needed", count, expected_count), path,
                "give one integer per line, one line per vertex");
  };
  if (is_empty_file(path)) {
    require_count(0);
    return {};
  }
  TextSource source(path);
  const EntryNumbers numbers(source, 0, "counting integers", {}, count_integers);
  require_count(numbers.total());
  std::vector<std::int64_t> values(static_cast<std::size_t>(numbers.total()));
  for_each_chunk(source, 0, "reading integers", {}, [&](std::int64_t, const TextChunk& chunk) {
    auto place = static_cast<std::size_t>(numbers.first_of(chunk));
    for (std::string_view rest = chunk.text; !rest.empty();) {
      const std::string_view line = take_line(rest);
      if (is_comment(line)) continue;
      LineScanner scanner(line);
      const auto value = scanner.integer();
      if (!value || !scanner.at_end()) {
        throw LineProblem{line.data(), "is not one integer", "give one integer per line"};
      }
      if (place < values.size()) values[place++] = *value;
    }
  });
  source.require_unchanged();
  return values;
}

void write_index_file(const std::string& path, std::span<const std::int64_t> values) {
  std::string text;
  for (const std::int64_t value : values) text += std::to_string(value) + '\n';
  write_text_file(path, text);
}

}  // namespace tessera::io
