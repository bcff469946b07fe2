// SPDX-License-Identifier: Apache-2.0
#include "io/formats.hpp"

#include <algorithm>
#include <cctype>

#include "tessera/io/container.hpp"
#include "tessera/io/edge_list.hpp"
#include "tessera/io/matrix_market.hpp"
#include "tessera/io/npz.hpp"

#include "io/container_layout.hpp"
#include "io/matrix_market_header.hpp"
#include "io/scan.hpp"

namespace tessera::io {
namespace {

bool begins_with(std::string_view bytes, std::string_view start) {
  return bytes.size() >= start.size() &&
         std::equal(start.begin(), start.end(), bytes.begin(), [](char expected, char found) {
           return std::tolower(static_cast<unsigned char>(expected)) ==
                  std::tolower(static_cast<unsigned char>(found));
         });
}

/// True for what people write with editors and programs with print: no control characters but those
/// that part words and lines.
bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < ' ' && !is_blank(c) && c != '\n') || code == 0x7F;
  });
}

constexpr FileFormat formats[] = {
    {"npz", "NumPy archive", ".npz",
     [](const FirstLook& look) {
       // The second is a zip file without members.
       return begins_with(look.first_bytes, "PK\x03\x04") ||
              begins_with(look.first_bytes, "PK\x05\x06");
     },
     read_npz, write_npz, true},
    {"mtx", "Matrix Market", ".mtx .mtx.gz",
     [](const FirstLook& look) { return begins_with(look.first_bytes, matrix_market_banner); },
     read_matrix_market,
     [](const Dataset& dataset, const std::string& path, const Progress& progress) {
       write_matrix_market(dataset.graph, path, progress);
     },
     false},
    {"tsr", "Tessera container", ".tsr",
     [](const FirstLook& look) { return begins_with(look.first_bytes, container_magic); },
     read_container, write_container, true},
    {"edges", "edge list", ".csv .tsv .txt .edges .csv.gz .tsv.gz .txt.gz",
     [](const FirstLook& look) { return !look.is_folder && is_text(look.first_bytes); },
     read_edge_list, nullptr, false},
};

}  // namespace

std::span<const FileFormat> file_formats() { return formats; }

}  // namespace tessera::io
