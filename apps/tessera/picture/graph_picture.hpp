// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "picture/picture.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::app::picture {

/// Where the edges of a graph lie: the adjacency matrix cut into at most 512 x 512 cells.
struct Density {
  VertexId num_rows = 0, num_cols = 0;
  int rows = 0, columns = 0;          ///< of cells
  std::vector<std::int64_t> edges{};  ///< in each cell, row after row
  std::int64_t least = 0;             ///< of the cells that have any
  std::int64_t most = 0;
};

Density density_of(const Graph& graph);

/// How many vertices have a degree of 0, 1, 2-3, 4-7, ...
struct Degrees {
  std::vector<std::int64_t> in;   ///< lengths of rows
  std::vector<std::int64_t> out;  ///< lengths of columns
};

Degrees degrees_of(const Graph& graph);

/// The density, with a histogram of degrees beside it.
Picture graph_picture(const std::string& title, const Density& density, const Degrees& degrees);

/// One of two pictures side by side.
struct Side {
  std::string title;
  Density density;
  std::vector<std::string> notes;  ///< lines below
  /// Of each window of rows, from above: drawn as a strip beside the matrix, if there are any.
  std::vector<std::uint8_t> on_tensor_cores{};
};

/// Two densities with the same colours for the same numbers.
Picture compared_picture(const std::string& title, const Side& before, const Side& after);

}  // namespace tessera::app::picture
