// SPDX-License-Identifier: Apache-2.0
#include "graph/requirements.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::detail {

void require_square(const Graph& graph, const char* what) {
  if (graph.is_square()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the graph is rectangular ({} targets x {} sources)", graph.num_rows(),
                          graph.num_cols()),
              what, "use a graph whose targets and sources are the same vertices");
}

void require_no_scales(const Graph& graph, const char* what) {
  if (!graph.has_row_scale() && !graph.has_col_scale()) return;
  throw Error(ErrorCode::invalid_argument, "the graph is scaled already", what,
              "start from the graph before it was normalised, or call with_scales({}, {})");
}

}  // namespace tessera::detail
