// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.hpp"

/// The byte layout of Tessera's container: a header, a table of named arrays, and the arrays. It is
/// the specification in docs/formats.md; what the arrays mean is not known here.
namespace tessera::io {

/// Ends in the bytes that a transfer as text would change, as PNG's does.
inline constexpr std::string_view container_magic = "\x89TSR\r\n\x1A\n";
inline constexpr std::uint32_t container_version = 1;

/// One array of the container.
struct Section {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
  std::uint32_t crc = 0;
  std::int64_t offset = 0;
};

/// Gives every section its place, one after the other.
void place_sections(std::vector<Section>& sections);

/// Header and table of placed sections.
std::string encode_container_header(const std::vector<Section>& sections);

/// Whether the file has the first bytes of a container.
bool begins_as_container(const InputFile& file);

/// Reads header and table, and checks them against each other and against the file: checksum,
/// sizes, places, names, and that everything between the sections is zero. The contents of the
/// sections themselves remain to be checked.
std::vector<Section> read_container_header(const InputFile& file);

}  // namespace tessera::io
