// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/core/random.hpp"
#include "tessera/core/types.hpp"

#include "sample/candidates.hpp"
#include "sample/chosen.hpp"

namespace tessera::sample {

/// How the vertices of one hop draw.
struct HopRules {
  std::int64_t fan_out = 0;  ///< -1: all
  bool replace = false;
  bool latest = false;
  Random random;
};

/// The candidates that a vertex draws from, and what their running weights begin with.
struct Choice {
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
  double base = 0;
};

/// Draws for one vertex after the other. Each thread has its own.
class Chooser {
 public:
  Chooser(const Candidates& candidates, const HopRules& rules)
      : candidates_(candidates), rules_(rules) {}

  /// `time`: that of the seed, where edges have times.
  Choice choice(VertexId vertex, std::optional<std::int64_t> time) const;

  /// How many edges are drawn.
  std::int64_t count(const Choice& choice) const noexcept {
    const std::int64_t there = choice.end - choice.begin;
    if (rules_.fan_out < 0 || there == 0) return there;
    return rules_.replace || rules_.fan_out < there ? rules_.fan_out : there;
  }

  /// Writes candidates, as many as `drawn` has room for, which is what `count` says. `element`
  /// names the vertex, and the tree where trees are disjoint.
  void choose(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);

 private:
  void uniform_set(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);
  void weighted_set(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);
  void smallest_keys(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);
  EdgeOffset weighted(const Choice& choice, std::uint64_t bits) const;

  const Candidates& candidates_;
  HopRules rules_;
  Chosen chosen_;
  std::vector<std::pair<double, EdgeOffset>> keys_;
};

}  // namespace tessera::sample
