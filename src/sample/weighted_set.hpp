// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sample/draw_formula.hpp"

namespace tessera::sample {

/// Keys have numbers of their own, behind any that attempts use.
inline constexpr std::uint32_t first_block_of_keys = 1u << 31;

/// A candidate by when it would be drawn: Efraimidis and Spirakis: exponential numbers divided by
/// weights come in the order in which the candidates would be drawn one after the other.
struct WeightKey {
  double value = std::numeric_limits<double>::infinity();
  EdgeOffset edge = std::numeric_limits<EdgeOffset>::max();

  friend constexpr bool operator<(const WeightKey& a, const WeightKey& b) {
    return a.value < b.value || (a.value == b.value && a.edge < b.edge);
  }
};

TESSERA_ANYWHERE inline WeightKey weight_key(const CandidateLists& lists, const HopRules& rules,
                                             const Choice& choice, std::uint64_t element,
                                             EdgeOffset edge) {
  const auto bits = nth_number(
      rules.random, element, static_cast<std::uint64_t>(edge - choice.begin), first_block_of_keys);
  return {exponential(bits) / static_cast<double>(lists.weights[edge]), edge};
}

/// Whether attempts are worth while, and how many: where many candidates are left out.
constexpr std::int64_t attempts_of(const Choice& choice, std::int64_t count) {
  return choice.size() > 8 * count ? 4 * count : 0;
}

/// A set of weighted edges, drawn by the lanes of a team: draws in proportion to weights, of which
/// those that came before are passed over, then the smallest keys of those that many attempts have
/// not found. A team has `size` lanes and says which one this is (`lane`), whether no lower lane
/// has the same edge (`is_first`), how many of all lanes, and of those below, a condition holds for
/// (`count`, `count_below`), the least key of all (`least`); `meet` makes what lanes wrote visible.
template <class Team>
TESSERA_ANYWHERE void draw_weighted_set(const Team& team, const CandidateLists& lists,
                                        const HopRules& rules, const Choice& choice,
                                        std::uint64_t element, EdgeOffset* drawn,
                                        std::int64_t count) {
  std::int64_t found = 0;
  const auto is_among = [&](EdgeOffset edge) {
    for (std::int64_t i = 0; i < found; ++i) {
      if (drawn[i] == edge) return true;
    }
    return false;
  };
  const std::int64_t attempts = attempts_of(choice, count);
  for (std::int64_t first = 0; first < attempts && found < count; first += team.size) {
    const std::int64_t attempt = first + team.lane;
    EdgeOffset edge = -1 - attempt;  // equal to no other
    if (attempt < attempts) {
      edge = weighted_edge(lists, choice,
                           nth_number(rules.random, element, static_cast<std::uint64_t>(attempt)));
    }
    const bool is_new = edge >= 0 && !is_among(edge);
    const bool is_kept = team.is_first(edge) && is_new;
    const std::int64_t place = found + team.count_below(is_kept);
    team.meet();  // every lane has looked
    if (is_kept && place < count) drawn[place] = edge;
    found = std::min(count, found + team.count(is_kept));
    team.meet();
  }
  WeightKey last{-1, -1};
  for (std::int64_t i = found; i < count; ++i) {
    WeightKey best;
    for (EdgeOffset edge = choice.begin + team.lane; edge < choice.end; edge += team.size) {
      const WeightKey key = weight_key(lists, rules, choice, element, edge);
      if (last < key && key < best && !is_among(edge)) best = key;
    }
    last = team.least(best);
    if (team.lane == 0) drawn[i] = last.edge;
  }
}

}  // namespace tessera::sample
