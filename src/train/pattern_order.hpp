// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/progress.hpp"
#include "tessera/ops/spmm.hpp"
#include "tessera/reorder/permutation.hpp"
#include "tessera/train/pattern.hpp"

namespace tessera::train {

/// What the products of a training will be like: what an order is chosen for.
struct ExpectedProducts {
  ops::SpmmOptions options;  ///< of each
  std::int64_t count = 0;    ///< of all together
};

struct TrainOptions;
ExpectedProducts expected_products(const TrainOptions& options, std::int64_t width,
                                   std::int64_t count);

struct PatternOrder {
  Permutation order;  ///< empty: vertices stay where they are
  std::string note;   ///< what was decided, in words
};

/// The order of a graph's vertices in which training sees it. The same one for any number of
/// threads.
PatternOrder find_pattern_order(const Graph& graph, const PatternChoice& choice,
                                const ExpectedProducts& products, std::uint64_t seed,
                                const Progress& progress = {});

}  // namespace tessera::train
