// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/data/knowledge_graph.hpp"
#include "tessera/links/split.hpp"

namespace tessera::train {

/// What a step asks for: positives, then the negatives of each, in order.
struct AskedTriples {
  links::Pairs ends;
  std::vector<std::int32_t> relations;

  /// Which relation each has, triples x relations.
  Graph groups(std::int32_t num_relations) const;
};

struct TripleDraw {
  std::int64_t size = 0;  ///< how many positives
  std::int64_t negatives = 0;
  std::uint64_t seed = 0;
};

/// Step `step` of an order of their own that the triples have in each epoch. A negative has another
/// head or tail, each as often: any entity, which may make it true.
AskedTriples drawn_triples(const Triples& all, VertexId num_entities, const TripleDraw& draw,
                           std::int64_t step);

/// Those that carry messages, each with its inverse: all but a share of `dropped`.
Triples message_triples(const Triples& all, std::int32_t num_relations, double dropped,
                        std::uint64_t seed, std::int64_t step);

}  // namespace tessera::train
