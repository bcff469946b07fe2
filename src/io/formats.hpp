// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tessera/io/open.hpp"

namespace tessera::io {

/// A file format: how its files begin and end, and who reads and writes them.
struct FileFormat {
  std::string_view name;
  std::string_view endings;  ///< separated by spaces; the first is the usual one
  bool (*recognises)(std::span<const std::byte> first_bytes);
  Dataset (*read)(const std::string& path, const ReadOptions& options);
  void (*write)(const Dataset& dataset, const std::string& path, const Progress& progress);
  bool holds_everything;  ///< false if it can hold the graph alone
};

std::span<const FileFormat> file_formats();

/// As many first bytes as any format needs to recognise its own.
inline constexpr std::int64_t bytes_to_recognise = 64;

}  // namespace tessera::io
