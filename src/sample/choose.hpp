// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tessera/core/types.hpp"

#include "sample/candidates.hpp"
#include "sample/chosen.hpp"
#include "sample/draw_formula.hpp"

namespace tessera::sample {

/// Draws for one vertex after the other. Each thread has its own.
class Chooser {
 public:
  Chooser(const Candidates& candidates, const HopRules& rules)
      : lists_(candidates.lists()), rules_(rules) {}

  /// Writes candidates, as many as `drawn` has room for, which is what `count_of` says. `element`
  /// names the vertex, and the tree where trees are disjoint.
  void choose(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);

 private:
  void uniform_set(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);
  void weighted_set(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);
  void smallest_keys(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn);

  CandidateLists lists_;
  HopRules rules_;
  Chosen chosen_;
  std::vector<std::pair<double, EdgeOffset>> keys_;
};

}  // namespace tessera::sample
