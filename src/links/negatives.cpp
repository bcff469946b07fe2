// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/negatives.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"
#include "links/random_use.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "negative pairs";
constexpr std::uint32_t attempts = 64;

[[noreturn]] void no_negative(VertexId source) {
  throw Error(ErrorCode::bad_data, fmt::format("source {} has an edge to every target", source),
              where, "draw uniform pairs, or leave its edges out of those that are asked for");
}

}  // namespace

/// Edges by source, and how many targets each source is not connected to.
struct NegativeSampler::State {
  explicit State(const Graph& known)
      : graph(known), csc(graph.csc()), before(static_cast<std::size_t>(known.num_cols()) + 1) {
    parallel_for(graph.num_cols(), even_grain(graph.num_cols()), [&](std::int64_t source) {
      const auto row = targets_of(static_cast<VertexId>(source));
      const bool adds_itself =
          graph.is_square() && !std::binary_search(row.begin(), row.end(), source);
      before[static_cast<std::size_t>(source)] =
          graph.num_rows() - std::ssize(row) - (adds_itself ? 1 : 0);
    });
    exclusive_scan(std::span(before));
  }

  std::span<const VertexId> targets_of(VertexId source) const {
    const EdgeOffset begin = csc.col_offsets[source];
    return {csc.row_indices.data() + begin,
            static_cast<std::size_t>(csc.col_offsets[source + 1] - begin)};
  }

  std::int64_t negatives() const { return before.back(); }
  std::int64_t negatives_of(VertexId source) const noexcept {
    const auto place = static_cast<std::size_t>(source);
    return before[place + 1] - before[place];
  }

  /// Whether a target is no negative of a source.
  bool is_known(VertexId source, VertexId target) const {
    const auto row = targets_of(source);
    return (graph.is_square() && source == target) ||
           std::binary_search(row.begin(), row.end(), target);
  }

  /// The k-th of the targets that a source has no edge to. Ahead of the m-th known target t there
  /// are t - m others; the source itself counts as a known target of a square graph.
  VertexId nth_negative(VertexId source, std::int64_t k) const {
    const auto row = targets_of(source);
    const auto own = std::lower_bound(row.begin(), row.end(), source) - row.begin();
    const bool inserts_itself = graph.is_square() && (own == std::ssize(row) ||
                                                      row[static_cast<std::size_t>(own)] != source);
    const auto known_target = [&](std::ptrdiff_t m) -> std::int64_t {
      if (!inserts_itself || m < own) return row[static_cast<std::size_t>(m)];
      return m == own ? source : row[static_cast<std::size_t>(m - 1)];
    };
    std::ptrdiff_t first = 0, last = std::ssize(row) + (inserts_itself ? 1 : 0);
    while (first < last) {
      const std::ptrdiff_t middle = first + (last - first) / 2;
      if (known_target(middle) - middle > k) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return static_cast<VertexId>(k + first);
  }

  /// The source that the k-th of all negatives belongs to, and the target.
  std::pair<VertexId, VertexId> nth_pair(std::int64_t k) const {
    const auto next = std::upper_bound(before.begin(), before.end(), k) - 1;
    const auto source = static_cast<VertexId>(next - before.begin());
    return {source, nth_negative(source, k - *next)};
  }

  VertexId by_degree(VertexId source, const Random& random, std::uint64_t element) const {
    if (graph.num_edges() > 0) {
      for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
        const auto edge = random.at_step(random.step() * (attempts + 1) + attempt)
                              .below(element, static_cast<std::uint64_t>(graph.num_edges()));
        const VertexId target = csc.row_indices[static_cast<EdgeOffset>(edge)];
        if (!is_known(source, target)) return target;
      }
    }
    return uniform(source, random.at_step(random.step() * (attempts + 1) + attempts), element);
  }

  VertexId uniform(VertexId source, const Random& random, std::uint64_t element) const {
    const auto count = static_cast<std::uint64_t>(negatives_of(source));
    return nth_negative(source, static_cast<std::int64_t>(random.below(element, count)));
  }

  Graph graph;
  const Csc& csc;
  std::vector<std::int64_t> before;  ///< negatives of lower sources
};

NegativeSampler::NegativeSampler(const Graph& known) {
  detail::require_whole(known);
  if (known.has_repeated_edges()) {
    throw Error(ErrorCode::invalid_argument, "the graph lists an edge several times", where,
                "build it with Duplicates::first or Duplicates::sum");
  }
  state_ = std::make_unique<const State>(known);
}

NegativeSampler::~NegativeSampler() = default;
NegativeSampler::NegativeSampler(NegativeSampler&&) noexcept = default;
NegativeSampler& NegativeSampler::operator=(NegativeSampler&&) noexcept = default;

std::int64_t NegativeSampler::num_negatives() const noexcept { return state_->negatives(); }

std::int64_t NegativeSampler::num_negatives_of(VertexId source) const noexcept {
  return state_->negatives_of(source);
}

Pairs NegativeSampler::draw(const Pairs& positives, const NegativeOptions& options) const {
  const State& state = *state_;
  if (options.per_positive < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} negatives for each positive pair", options.per_positive), where,
                "ask for one at least");
  }
  const bool by_source = options.kind != NegativeKind::uniform;
  for (const VertexId source : positives.sources) {
    if (source < 0 || source >= state.graph.num_cols()) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("source {} of a positive pair, of {}", source, state.graph.num_cols()), where,
          "number vertices as the graph does");
    }
    if (by_source && state.negatives_of(source) == 0) no_negative(source);
  }
  const std::int64_t count = positives.size() * options.per_positive;
  if (count > 0 && state.negatives() == 0) {
    throw Error(ErrorCode::bad_data, "every pair of vertices is an edge", where,
                "use a graph with fewer edges");
  }
  const Random random(options.seed, draw_negatives, options.step);
  Pairs drawn{std::vector<VertexId>(static_cast<std::size_t>(count)),
              std::vector<VertexId>(static_cast<std::size_t>(count))};
  parallel_for(count, even_grain(count), [&](std::int64_t i) {
    const auto element = static_cast<std::uint64_t>(i);
    VertexId& source = drawn.sources[element];
    VertexId& target = drawn.targets[element];
    if (by_source) {
      source = positives.sources[static_cast<std::size_t>(i / options.per_positive)];
      target = options.kind == NegativeKind::by_source ? state.uniform(source, random, element)
                                                       : state.by_degree(source, random, element);
    } else {
      const auto k = random.below(element, static_cast<std::uint64_t>(state.negatives()));
      std::tie(source, target) = state.nth_pair(static_cast<std::int64_t>(k));
    }
  });
  return drawn;
}

}  // namespace tessera::links
