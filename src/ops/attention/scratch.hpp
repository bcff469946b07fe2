// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/core/memory.hpp"

#include "ops/attention/fused.hpp"

namespace tessera::ops::fused {

/// Memory for one block of edges and one row, carved from a buffer that each thread keeps between
/// runs. Its size depends on the shape of a block alone, never on the graph.
template <class S>
struct ThreadScratch : Scratch<S> {
  RowSums<S> row;    ///< of a row that is not cut into pieces
  S* row_gradients;  ///< the same of its scores, then of its values

  ThreadScratch(std::int64_t heads, std::int64_t features, std::int64_t block_edges,
                std::int64_t partial_lanes) {
    // Vectors may reach past the last number, by less than one of the widest.
    constexpr std::int64_t slack = 64 / sizeof(S);
    const std::int64_t block = block_edges * heads + slack;
    const std::int64_t counter_count = block_edges * (heads / 4 + 2) + slack;
    Carver measure{nullptr};
    carve(measure, block, counter_count, heads + slack, features + heads + slack, partial_lanes);
    static thread_local Buffer<std::byte> memory;
    if (memory.size() < measure.used) memory = Buffer<std::byte>(measure.used);
    Carver carver{memory.data()};
    carve(carver, block, counter_count, heads + slack, features + heads + slack, partial_lanes);
  }

 private:
  struct Carver {
    std::byte* base;
    std::int64_t used = 0;

    template <class T>
    void take(T*& array, std::int64_t count) {
      constexpr std::int64_t line = 64;
      if (base != nullptr) array = reinterpret_cast<T*>(base + used);
      used += (count * static_cast<std::int64_t>(sizeof(T)) + line - 1) / line * line;
    }
  };

  void carve(Carver& from, std::int64_t block, std::int64_t num_counters, std::int64_t tile,
             std::int64_t row_size, std::int64_t partial_lanes) {
    // A block has no more lines than edges.
    for (S** array : {&this->scores, &this->activations, &this->weights, &this->products,
                      &this->grads, &this->factors, &this->log_sums, &this->dots, &this->maxima,
                      &this->line_sums, &this->scales}) {
      from.take(*array, block);
    }
    from.take(this->partial, block * partial_lanes);
    for (S** array : {&this->score_tile, &this->max_tile, &this->dot_tile, &this->max_before,
                      &row.max, &row.sum}) {
      from.take(*array, tile);
    }
    for (S** array : {&this->vector, &this->activated_sums, &row.features}) {
      from.take(*array, row_size);
    }
    from.take(row_gradients, 2 * row_size);
    from.take(this->counters, num_counters);
    from.take(this->words, 4 * num_counters);
  }
};

}  // namespace tessera::ops::fused
