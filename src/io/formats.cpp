// SPDX-License-Identifier: Apache-2.0
#include "io/formats.hpp"

#include <algorithm>
#include <cctype>

#include "tessera/io/container.hpp"
#include "tessera/io/matrix_market.hpp"
#include "tessera/io/npz.hpp"

#include "io/container_layout.hpp"
#include "io/deflate.hpp"
#include "io/matrix_market_header.hpp"

namespace tessera::io {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::string_view start) {
  return bytes.size() >= start.size() &&
         std::equal(start.begin(), start.end(), bytes.begin(), [](char expected, std::byte found) {
           return std::tolower(static_cast<unsigned char>(expected)) ==
                  std::tolower(std::to_integer<unsigned char>(found));
         });
}

constexpr FileFormat formats[] = {
    {"NumPy archive", ".npz",
     [](std::span<const std::byte> bytes) {
       // The second is a zip file without members.
       return begins_with(bytes, "PK\x03\x04") || begins_with(bytes, "PK\x05\x06");
     },
     read_npz, write_npz, true},
    {"Matrix Market", ".mtx .mtx.gz",
     [](std::span<const std::byte> bytes) {
       return begins_with(bytes, matrix_market_banner) || looks_gzipped(bytes);
     },
     read_matrix_market,
     [](const Dataset& dataset, const std::string& path, const Progress& progress) {
       write_matrix_market(dataset.graph, path, progress);
     },
     false},
    {"Tessera container", ".tsr",
     [](std::span<const std::byte> bytes) { return begins_with(bytes, container_magic); },
     read_container, write_container, true},
};

}  // namespace

std::span<const FileFormat> file_formats() { return formats; }

}  // namespace tessera::io
