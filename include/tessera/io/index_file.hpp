// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::io {

/// Text with one integer per line, as METIS writes partitions: the part of each vertex, or for an
/// order the old number of each new vertex. Blank lines and lines that begin with '%' do not count.
/// @param expected_count  how many there must be; -1 for any number
std::vector<std::int64_t> read_index_file(const std::string& path,
                                          std::int64_t expected_count = -1);

/// The file appears whole or not at all.
void write_index_file(const std::string& path, std::span<const std::int64_t> values);

}  // namespace tessera::io
