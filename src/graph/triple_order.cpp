// SPDX-License-Identifier: Apache-2.0
#include "graph/triple_order.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera {
namespace {

void require_below(std::int64_t number, std::int64_t bound, const char* what, std::int64_t triple) {
  if (number >= 0 && number < bound) return;
  throw Error(ErrorCode::bad_data,
              fmt::format("triple {} has {} {}, but there are {}", triple, what, number, bound),
              "triples", "they are numbered from 0");
}

}  // namespace

void require_triples(const Triples& triples, VertexId num_vertices, std::int32_t num_relations) {
  const auto count = static_cast<std::size_t>(triples.size());
  if (triples.relations.size() != count || triples.tails.size() != count) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} heads, {} relations and {} tails", count, triples.relations.size(),
                            triples.tails.size()),
                "triples", "give one of each for every triple");
  }
  for (std::size_t k = 0; k < count; ++k) {
    const auto triple = static_cast<std::int64_t>(k);
    require_below(triples.heads[k], num_vertices, "head", triple);
    require_below(triples.relations[k], num_relations, "relation", triple);
    require_below(triples.tails[k], num_vertices, "tail", triple);
  }
}

std::vector<EdgeOffset> ordered_by(std::span<const std::int32_t> keys, std::int32_t bound,
                                   std::span<const EdgeOffset> before) {
  std::vector<EdgeOffset> next(static_cast<std::size_t>(bound) + 1, 0);
  for (const std::int32_t key : keys) ++next[static_cast<std::size_t>(key) + 1];
  for (std::size_t key = 1; key < next.size(); ++key) next[key] += next[key - 1];
  std::vector<EdgeOffset> order(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const EdgeOffset place = before.empty() ? static_cast<EdgeOffset>(i) : before[i];
    const auto key = static_cast<std::size_t>(keys[static_cast<std::size_t>(place)]);
    order[static_cast<std::size_t>(next[key]++)] = place;
  }
  return order;
}

}  // namespace tessera
