// SPDX-License-Identifier: Apache-2.0
#include "io/formats.hpp"

#include <algorithm>
#include <cctype>

#include "tessera/core/error.hpp"
#include "tessera/io/container.hpp"
#include "tessera/io/edge_list.hpp"
#include "tessera/io/graphml.hpp"
#include "tessera/io/matrix_market.hpp"
#include "tessera/io/metis.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/ogb.hpp"
#include "tessera/io/tu.hpp"

#include "io/container_layout.hpp"
#include "io/matrix_market_header.hpp"
#include "io/pickles.hpp"
#include "io/scan.hpp"
#include "io/text.hpp"

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

/// Also where the banner is damaged or missing: the line of sizes would be taken for an edge of a
/// list, and not even a wrong number of entries would tell.
bool looks_like_matrix_market(const FirstLook& look) {
  std::string_view text = look.first_bytes;
  if (text.starts_with(utf8_mark)) text.remove_prefix(utf8_mark.size());
  if (begins_with(text, matrix_market_banner) || begins_with(text, "%MatrixMarket")) return true;
  const bool named = look.path.ends_with(".mtx") || look.path.ends_with(".mtx.gz");
  return named && !text.empty() && is_text(text);
}

/// Nothing in METIS's files tells them from lists of numbers, so their name has to.
bool has_metis_ending(const std::string& path) {
  return path.ends_with(".graph") || path.ends_with(".metis") || path.ends_with(".graph.gz");
}

constexpr FileFormat formats[] = {
    {"pt", "PyTorch's file", ".pt .pth",
     [](const FirstLook& look) {
       return !look.is_folder && begins_as_torch_file(look.first_bytes);
     },
     refuse_torch_file, nullptr, false},
    {"npz", "NumPy archive", ".npz",
     [](const FirstLook& look) {
       // The second is a zip file without members.
       return begins_with(look.first_bytes, "PK\x03\x04") ||
              begins_with(look.first_bytes, "PK\x05\x06");
     },
     read_npz, write_npz, true},
    {"mtx", "Matrix Market", ".mtx .mtx.gz", looks_like_matrix_market, read_matrix_market,
     [](const Dataset& dataset, const std::string& path, const Progress& progress) {
       write_matrix_market(dataset.graph, path, progress);
     },
     false},
    {"tsr", "Tessera container", ".tsr",
     [](const FirstLook& look) { return begins_with(look.first_bytes, container_magic); },
     read_container, write_container, true},
    {"ogb", "Open Graph Benchmark folder", "folder",
     [](const FirstLook& look) { return look.is_folder && is_ogb_folder(look.path); }, read_ogb,
     nullptr, false},
    {"tu", "TU folder", "folder",
     [](const FirstLook& look) { return look.is_folder && is_tu_folder(look.path); }, read_tu,
     nullptr, false},
    {"pyg", "PyG's processed folder", "folder",
     [](const FirstLook& look) { return look.is_folder && is_processed_folder(look.path); },
     refuse_torch_file, nullptr, false},
    {"planetoid", "Planetoid's pickles", "ind.NAME.x folder", is_planetoid_or_pickle, refuse_pickle,
     nullptr, false},
    {"graphml", "GraphML", ".graphml .xml .graphml.gz",
     [](const FirstLook& look) {
       return begins_with(look.first_bytes, "<") || begins_with(look.first_bytes, "\xEF\xBB\xBF<");
     },
     read_graphml, nullptr, false},
    {"metis", "METIS graph", ".graph .metis .graph.gz",
     [](const FirstLook& look) {
       return !look.is_folder && is_text(look.first_bytes) && has_metis_ending(look.path);
     },
     read_metis, nullptr, false},
    {"edges", "edge list", ".csv .tsv .txt .edges .csv.gz .tsv.gz .txt.gz",
     [](const FirstLook& look) { return !look.is_folder && is_text(look.first_bytes); },
     read_edge_list, nullptr, false},
};

}  // namespace

std::span<const FileFormat> file_formats() { return formats; }

}  // namespace tessera::io
