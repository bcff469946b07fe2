// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// What is seen of a source before it is read.
struct FirstLook {
  const std::string& path;
  bool is_folder = false;
  std::string_view first_bytes;  ///< unpacked, if the file is gzipped
};

/// A file format: how its files begin and end, and who reads and writes them.
struct FileFormat {
  std::string_view key;  ///< what --format calls it
  std::string_view name;
  std::string_view endings;  ///< separated by spaces; the first is the usual one
  bool (*recognises)(const FirstLook& look);
  Dataset (*read)(const std::string& path, const ReadOptions& options);
  /// Null for formats that are only read.
  void (*write)(const Dataset& dataset, const std::string& path, const Progress& progress);
  bool holds_everything;  ///< false if it can hold the graph alone
};

/// In the order in which they are asked whether a file is theirs.
std::span<const FileFormat> file_formats();

/// As many first bytes as any format needs to recognise its own.
inline constexpr std::int64_t bytes_to_recognise = 4096;

}  // namespace tessera::io
