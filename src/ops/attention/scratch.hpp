// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "tessera/core/memory.hpp"

#include "ops/attention/fused.hpp"

namespace tessera::ops::fused {

/// The buffer's memory, of `size` elements at least.
template <class T>
T* grown(Buffer<T>& buffer, std::int64_t size) {
  if (buffer.size() < size) buffer = Buffer<T>(size);
  return buffer.data();
}

/// Memory for one block of edges and one row, in buffers that each thread keeps between runs. Its
/// size depends on the shape of a block alone, never on the graph.
template <class S>
struct ThreadScratch : Scratch<S> {
  RowSums<S> row;    ///< of a row that is not cut into pieces
  S* row_gradients;  ///< the same of its scores, then of its values

  ThreadScratch(std::int64_t heads, std::int64_t features, std::int64_t block_edges,
                std::int64_t partial_lanes) {
    // Vectors may reach past the last number, by less than one of the widest.
    constexpr std::int64_t slack = 64 / sizeof(S);
    // A block has no more lines than edges.
    const std::int64_t block = block_edges * heads + slack;
    const std::int64_t tile = heads + slack;
    const std::int64_t row_size = features + heads + slack;
    const std::pair<S**, std::int64_t> arrays[] = {
        {&this->scores, block},    {&this->activations, block},
        {&this->weights, block},   {&this->products, block},
        {&this->grads, block},     {&this->factors, block},
        {&this->log_sums, block},  {&this->dots, block},
        {&this->maxima, block},    {&this->line_sums, block},
        {&this->scales, block},    {&this->partial, block * partial_lanes},
        {&this->score_tile, tile}, {&this->max_tile, tile},
        {&this->dot_tile, tile},   {&this->max_before, tile},
        {&row.max, tile},          {&row.sum, tile},
        {&this->vector, row_size}, {&this->activated_sums, row_size},
        {&row.features, row_size}, {&row_gradients, 2 * row_size}};
    constexpr auto in_lines = [](std::int64_t count) {
      return (count + slack - 1) / slack * slack;
    };
    std::int64_t size = 0;
    for (const auto& [array, count] : arrays) size += in_lines(count);
    static thread_local Buffer<S> memory;
    S* next = grown(memory, size);
    for (const auto& [array, count] : arrays) {
      *array = next;
      next += in_lines(count);
    }
    const std::int64_t num_counters = block_edges * (heads / 4 + 2) + slack;
    static thread_local Buffer<std::uint64_t> counter_memory;
    static thread_local Buffer<std::uint32_t> word_memory;
    this->counters = grown(counter_memory, num_counters);
    this->words = grown(word_memory, 4 * num_counters);
  }
};

/// Which weights the last forward run has kept: drawing them again costs more than to look at them.
template <class T>
class KeptWeights {
  using S = SumOf<T>;

 public:
  /// Lets a forward run write them.
  void record(EdgeOffset edges, Problem<T>& p) {
    const std::int64_t size = checked_area(edges, kept_bytes(p.heads));
    if (bits_.size() != size) bits_ = Buffer<std::uint8_t>(size);
    if (byte_factors_.size() == 0) byte_factors_ = Buffer<S>(256 * 8);
    for (std::int64_t i = 0; i < byte_factors_.size(); ++i) {
      const bool kept = (((i / 8) >> (i % 8)) & 1) != 0;
      byte_factors_[i] = kept ? static_cast<S>(p.dropout.kept_factor) : S{0};
    }
    dropout_ = p.dropout;
    p.kept = bits_.data();
  }

  /// Lets a backward run read them, if they are of its own dropout.
  void recall(Problem<T>& p) {
    const DropoutConstants& wanted = p.dropout;
    const bool same = dropout_.key[0] == wanted.key[0] && dropout_.key[1] == wanted.key[1] &&
                      dropout_.step == wanted.step && dropout_.layer == wanted.layer &&
                      dropout_.threshold == wanted.threshold;
    if (!p.drops || bits_.size() == 0 || !same) return;
    p.kept = bits_.data();
    p.byte_factors = byte_factors_.data();
  }

  std::int64_t bytes() const noexcept { return bits_.size(); }

 private:
  Buffer<std::uint8_t> bits_;
  Buffer<S> byte_factors_;
  DropoutConstants dropout_;
};

}  // namespace tessera::ops::fused
