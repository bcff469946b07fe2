// SPDX-License-Identifier: Apache-2.0
#include "graph/requirements.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/access.hpp"

namespace tessera::detail {

void require_whole(const Graph& graph) {
  if (GraphAccess::is_whole(graph)) return;
  throw Error(ErrorCode::invalid_argument, "the graph was moved from: its edges are elsewhere",
              "graph", "use the one that it was moved to, or copy it, which shares the edges");
}

void require_square(const Graph& graph, const char* what) {
  require_whole(graph);
  if (graph.is_square()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the graph is rectangular ({} targets x {} sources)", graph.num_rows(),
                          graph.num_cols()),
              what, "use a graph whose targets and sources are the same vertices");
}

void require_no_scales(const Graph& graph, const char* what) {
  require_whole(graph);
  if (!graph.has_row_scale() && !graph.has_col_scale()) return;
  throw Error(ErrorCode::invalid_argument, "the graph is scaled already", what,
              "start from the graph before it was normalised, or call with_scales({}, {})");
}

void require_finite(std::span<const float> numbers, const char* name, const char* where,
                    const char* fix) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  const auto first = parallel_reduce(
      count, std::int64_t{1} << 16, count,
      [&](std::int64_t begin, std::int64_t end) {
        // A number minus itself is 0, or not a number: no branch while all are finite.
        float odd = 0;
        for (std::int64_t i = begin; i < end; ++i) {
          const float number = numbers[static_cast<std::size_t>(i)];
          odd += number - number;
        }
        if (odd == 0) return count;
        std::int64_t i = begin;
        while (std::isfinite(numbers[static_cast<std::size_t>(i)])) ++i;
        return i;
      },
      [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  if (first == count) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("{}[{}] is {}", name, first, numbers[static_cast<std::size_t>(first)]),
              where, fix);
}

}  // namespace tessera::detail
