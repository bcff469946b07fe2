// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/core/random.hpp"

namespace tessera::train {

/// Keeps what training draws apart from the layers' own numbers: layers of `Random`.
enum RandomUse : std::uint32_t {
  draw_split = 0x7F000000u,
  draw_folds,
  shuffle_batches,
  draw_walks,
};

/// Fisher and Yates, the same on any machine.
template <class T>
void shuffle(std::vector<T>& values, const Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(random.below(i, i))]);
  }
}

}  // namespace tessera::train
