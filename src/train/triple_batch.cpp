// SPDX-License-Identifier: Apache-2.0
#include "train/triple_batch.hpp"

#include <cstddef>
#include <numeric>
#include <utility>

#include "tessera/core/random.hpp"

#include "graph/index_shuffle.hpp"
#include "train/random_use.hpp"

namespace tessera::train {
namespace {

/// Layers of `Random` beside those of other trainings.
enum DrawnFor : std::uint32_t { for_order = 0x7F001000u, for_negatives, for_messages };

}  // namespace

Graph AskedTriples::groups(std::int32_t num_relations) const {
  std::vector<EdgeOffset> offsets(relations.size() + 1);
  std::iota(offsets.begin(), offsets.end(), EdgeOffset{0});
  return Graph(static_cast<VertexId>(relations.size()), num_relations, std::move(offsets),
               std::vector<VertexId>(relations));
}

AskedTriples drawn_triples(const Triples& all, VertexId num_entities, const TripleDraw& draw,
                           std::int64_t step) {
  const std::int64_t steps = all.size() / draw.size;
  const Random order(draw.seed, for_order, static_cast<std::uint32_t>(step / steps));
  const IndexShuffle shuffle(static_cast<std::uint64_t>(all.size()), order);
  const Random random(draw.seed, for_negatives, static_cast<std::uint32_t>(step));
  AskedTriples asked;
  const auto add = [&](VertexId head, std::int32_t relation, VertexId tail) {
    asked.ends.sources.push_back(head);
    asked.relations.push_back(relation);
    asked.ends.targets.push_back(tail);
  };
  std::vector<std::size_t> chosen;
  for (std::int64_t i = 0; i < draw.size; ++i) {
    const std::int64_t place = step % steps * draw.size + i;
    chosen.push_back(static_cast<std::size_t>(shuffle(static_cast<std::uint64_t>(place))));
    add(all.heads[chosen.back()], all.relations[chosen.back()], all.tails[chosen.back()]);
  }
  std::uint64_t number = 0;
  for (const std::size_t k : chosen) {
    for (std::int64_t j = 0; j < draw.negatives; ++j, ++number) {
      const auto entity =
          static_cast<VertexId>(random.below(2 * number, static_cast<std::uint64_t>(num_entities)));
      const bool of_head = random.below(2 * number + 1, 2) == 0;
      add(of_head ? entity : all.heads[k], all.relations[k], of_head ? all.tails[k] : entity);
    }
  }
  return asked;
}

Triples message_triples(const Triples& all, std::int32_t num_relations, double dropped,
                        std::uint64_t seed, std::int64_t step) {
  const Random random(seed, for_messages, static_cast<std::uint32_t>(step));
  Triples messages;
  for (std::size_t k = 0; k < all.heads.size(); ++k) {
    if (dropped > 0 && random.uniform(k) < dropped) continue;
    messages.heads.push_back(all.heads[k]);
    messages.relations.push_back(all.relations[k]);
    messages.tails.push_back(all.tails[k]);
  }
  const std::size_t kept = messages.heads.size();
  for (std::size_t k = 0; k < kept; ++k) {
    messages.heads.push_back(messages.tails[k]);
    messages.relations.push_back(messages.relations[k] + num_relations);
    messages.tails.push_back(messages.heads[k]);
  }
  return messages;
}

}  // namespace tessera::train
