// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/io/tables.hpp"

#include "io/table_layout.hpp"

namespace tessera::io {

/// Which columns of an edge list are what.
struct EdgeListLayout {
  TableLayout table;
  std::int64_t source = 0;
  std::int64_t target = 1;
  std::int64_t weight = -1;  ///< -1: there are none
  bool names = false;        ///< ids are texts
  std::string first_name;    ///< the id that says so, where no option does
  bool prose = false;        ///< words between blanks, which may be about anything
};

/// @param head  the begin of the text, of whole lines
EdgeListLayout find_edge_list_layout(std::string_view head, const EdgeListOptions& options,
                                     const std::string& path);

/// What columns of edge lists are called.
HeaderWords edge_header_words();

/// The columns of sources and targets, by what they are called or else the first two.
std::pair<std::int64_t, std::int64_t> end_columns(const TableLayout& table);

/// True for a header that calls one column as sources are called, and another as targets are.
bool names_edges(const TableLayout& table);

}  // namespace tessera::io
