// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/random.hpp"
#include "tessera/core/types.hpp"
#include "tessera/ops/pairs.hpp"

#include "graph/index_shuffle.hpp"

/// How a pair is chosen and drawn, the same on every device.
namespace tessera::ops {

/// Keeps what pairs draw apart from what layers and training draw: layers of `Random`.
enum PairUse : std::uint32_t { draw_of_negatives = 0x7E000001u, order_of_pairs };

struct Pair {
  VertexId source = 0;
  VertexId target = 0;
};

/// Edges by source, and how many targets lower sources are not connected to, in memory of a device.
struct NonEdgeLists {
  const EdgeOffset* offsets = nullptr;  ///< of each source, into `targets`
  const VertexId* targets = nullptr;    ///< rising
  const std::int64_t* before = nullptr;
  EdgeOffset num_edges = 0;
  VertexId num_sources = 0;
  bool is_square = false;
  VertexId first_target = 0;  ///< what row 0 of the graph is called in pairs

  constexpr std::int64_t count() const { return before[num_sources]; }
  constexpr std::int64_t count_of(VertexId source) const {
    return before[source + 1] - before[source];
  }

  /// The first place among the targets of a source that is not below `wanted`, from 0.
  constexpr EdgeOffset place_of(VertexId source, VertexId wanted) const {
    EdgeOffset first = offsets[source], last = offsets[source + 1];
    while (first < last) {
      const EdgeOffset middle = first + (last - first) / 2;
      if (targets[middle] < wanted) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first - offsets[source];
  }

  constexpr bool is_edge(VertexId source, VertexId target) const {
    const EdgeOffset at = offsets[source] + place_of(source, target);
    return at < offsets[source + 1] && targets[at] == target;
  }

  /// Whether a target is no negative of a source.
  constexpr bool is_known(VertexId source, VertexId target) const {
    return (is_square && source == target) || is_edge(source, target);
  }

  /// The k-th of the targets that a source has no edge to. Ahead of the m-th known target t there
  /// are t - m others; the source itself counts as a known target of a square graph.
  constexpr VertexId nth_negative(VertexId source, std::int64_t k) const {
    const VertexId* const row = targets + offsets[source];
    const EdgeOffset degree = offsets[source + 1] - offsets[source];
    const EdgeOffset own = is_square ? place_of(source, source) : 0;
    const bool inserts_itself = is_square && (own == degree || row[own] != source);
    EdgeOffset first = 0;
    EdgeOffset last = degree + (inserts_itself ? 1 : 0);
    while (first < last) {
      const EdgeOffset middle = first + (last - first) / 2;
      const bool is_behind = inserts_itself && middle > own;
      const std::int64_t known =
          inserts_itself && middle == own ? source : row[is_behind ? middle - 1 : middle];
      if (known - middle > k) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    return static_cast<VertexId>(k + first);
  }

  /// The source that the k-th of all negatives belongs to, and the target.
  constexpr Pair nth_pair(std::int64_t k) const {
    VertexId first = 0, last = num_sources;  // the last source with before[source] <= k
    while (last - first > 1) {
      const VertexId middle = first + (last - first) / 2;
      if (before[middle] <= k) {
        first = middle;
      } else {
        last = middle;
      }
    }
    return {first, nth_negative(first, k - before[first])};
  }

  constexpr VertexId uniform(VertexId source, const Random& random, std::uint64_t element) const {
    const auto of_source = static_cast<std::uint64_t>(count_of(source));
    return nth_negative(source, static_cast<std::int64_t>(random.below(element, of_source)));
  }

  /// Draws that hit an edge are repeated; the last is uniform.
  constexpr VertexId by_degree(VertexId source, const Random& random, std::uint64_t element) const {
    constexpr std::uint32_t attempts = 64;
    const std::uint32_t first = random.step() * (attempts + 1);
    for (std::uint32_t attempt = 0; num_edges > 0 && attempt < attempts; ++attempt) {
      const auto edge =
          random.at_step(first + attempt).below(element, static_cast<std::uint64_t>(num_edges));
      const VertexId target = targets[edge];
      if (!is_known(source, target)) return target;
    }
    return uniform(source, random.at_step(first + attempts), element);
  }
};

/// Negative number `element` of a draw, which belongs to a source, with the graph's numbers.
constexpr Pair drawn_within(const NonEdgeLists& known, NegativeKind kind, VertexId source,
                            const Random& random, std::uint64_t element) {
  if (kind == NegativeKind::by_source) return {source, known.uniform(source, random, element)};
  if (kind == NegativeKind::by_degree) return {source, known.by_degree(source, random, element)};
  const auto all = static_cast<std::uint64_t>(known.count());
  return known.nth_pair(static_cast<std::int64_t>(random.below(element, all)));
}

/// The same as pairs have it.
constexpr Pair drawn_negative(const NonEdgeLists& known, NegativeKind kind, VertexId source,
                              const Random& random, std::uint64_t element) {
  const Pair pair = drawn_within(known, kind, source, random, element);
  return {pair.source, pair.target + known.first_target};
}

/// Which pair stands where in the order of an epoch.
constexpr IndexShuffle order_of(std::int64_t pairs, std::uint64_t side, std::uint64_t seed,
                                std::int64_t epoch) {
  return {static_cast<std::uint64_t>(pairs), side,
          Random(seed, order_of_pairs, static_cast<std::uint32_t>(epoch))};
}

}  // namespace tessera::ops
