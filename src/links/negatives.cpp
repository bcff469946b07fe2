// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/negatives.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "graph/requirements.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "negative pairs";

[[noreturn]] void no_negative(VertexId source) {
  throw Error(ErrorCode::bad_data, fmt::format("source {} has an edge to every target", source),
              where, "draw uniform pairs, or leave its edges out of those that are asked for");
}

const Graph& checked(const Graph& known) {
  detail::require_whole(known);
  if (!known.has_repeated_edges()) return known;
  throw Error(ErrorCode::invalid_argument, "the graph lists an edge several times", where,
              "build it with Duplicates::first or Duplicates::sum");
}

}  // namespace

NegativeSampler::NegativeSampler(const Graph& known)
    : num_sources_(known.num_cols()), non_edges_(checked(known)) {}

Pairs NegativeSampler::draw(const Pairs& positives, const NegativeOptions& options) const {
  if (options.per_positive < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} negatives for each positive pair", options.per_positive), where,
                "ask for one at least");
  }
  const bool by_source = options.kind != NegativeKind::uniform;
  for (const VertexId source : positives.sources) {
    if (source < 0 || source >= num_sources_) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("source {} of a positive pair, of {}", source, num_sources_), where,
                  "number vertices as the graph does");
    }
    if (by_source && num_negatives_of(source) == 0) no_negative(source);
  }
  const std::int64_t count = positives.size() * options.per_positive;
  if (count > 0 && num_negatives() == 0) {
    throw Error(ErrorCode::bad_data, "every pair of vertices is an edge", where,
                "use a graph with fewer edges");
  }
  Matrix<VertexId> drawn(2, count);
  ops::draw_negatives(
      as_matrix(positives), non_edges_,
      {options.kind, options.per_positive, options.seed, options.step, nullptr, false}, drawn);
  return {{drawn.row(0), drawn.row(0) + count}, {drawn.row(1), drawn.row(1) + count}};
}

}  // namespace tessera::links
