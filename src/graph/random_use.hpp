// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/random.hpp"
#include "tessera/core/types.hpp"

namespace tessera::generate {

/// Keeps the random numbers that one seed gives to different purposes apart: layers of `Random`.
enum RandomUse : std::uint32_t {
  draw_edges,
  draw_edges_across,
  scramble_ids,
  draw_sizes,
  draw_molecules,
  draw_class_means,
  draw_noise,
  draw_split,
  shuffle_twin,
  draw_labels,
  draw_words,
};

/// The random numbers of one element, one after the other, where their number is not known before.
class DrawSequence {
 public:
  DrawSequence(const Random& random, std::uint64_t element) noexcept
      : random_(random), element_(element) {}

  /// Uniform in [0, 1).
  double uniform() noexcept { return random_.at_step(step_++).uniform(element_); }
  /// Uniform in [0, bound).
  VertexId below(VertexId bound) noexcept {
    return static_cast<VertexId>(
        random_.at_step(step_++).below(element_, static_cast<std::uint64_t>(bound)));
  }

 private:
  Random random_;
  std::uint64_t element_;
  std::uint32_t step_ = 0;
};

}  // namespace tessera::generate
