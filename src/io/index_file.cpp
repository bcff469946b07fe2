// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/index_file.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

#include "io/file.hpp"
#include "io/text.hpp"

namespace tessera::io {
namespace {

// A graph without vertices has an empty list, which is an empty file.
Buffer<std::byte> load_list(const std::string& path) {
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(path, unknown);
  return is_file && std::filesystem::is_empty(path, unknown) ? Buffer<std::byte>()
                                                             : load_text(path);
}

}  // namespace

std::vector<std::int64_t> read_index_file(const std::string& path, std::int64_t expected_count) {
  const Buffer<std::byte> bytes = load_list(path);
  const TextEntries entries(text_of(bytes), 1);
  if (expected_count >= 0 && entries.count() != expected_count) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("holds {} integers, but {} are needed", entries.count(), expected_count), path,
        "give one integer per line, one line per vertex");
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(entries.count()));
  entries.for_each([&](std::int64_t entry, std::string_view line, std::int64_t number) {
    LineScanner scanner(line);
    const auto value = scanner.integer();
    if (!value || !scanner.at_end()) {
      throw Error(ErrorCode::bad_data, "is not one integer",
                  fmt::format("{}: line {}", path, number), "give one integer per line");
    }
    values[static_cast<std::size_t>(entry)] = *value;
  });
  return values;
}

void write_index_file(const std::string& path, std::span<const std::int64_t> values) {
  std::string text;
  for (const std::int64_t value : values) text += std::to_string(value) + '\n';
  write_text_file(path, text);
}

}  // namespace tessera::io
