// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// How every writer of the library puts files into their places: bytes go to a temporary file in
/// the same folder, which then takes the name of the old one. So a file appears whole or not at
/// all, and a link is followed, never replaced. What a killed process has left behind is removed by
/// the next one that writes into the folder.
namespace tessera::io {

void write_text_file(const std::string& path, std::string_view text);

/// The file that writing to `path` makes or replaces: links are followed, also those that lead to
/// no file yet. A circle of links is an `io` error.
std::string written_path(const std::string& path);

/// How many files this process has put into their places.
std::int64_t files_written() noexcept;

/// For programs about to end before their work does: removes the temporary files and keeps them
/// from getting to their places. Does nothing and returns false where a file has got there since
/// `files_written()` was `before`.
bool abandon_files(std::int64_t before) noexcept;

}  // namespace tessera::io
