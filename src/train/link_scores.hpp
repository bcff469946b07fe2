// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/links/split.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/step/tensor.hpp"

/// Pairs as a model of links is asked for them.
namespace tessera::train {

/// A list of pairs in memory of a device.
class PlacedPairs {
 public:
  /// Room for so many.
  PlacedPairs(std::int64_t count, const Place& place);
  PlacedPairs(const links::Pairs& pairs, const Place& place);

  std::int64_t size() const noexcept { return ids_.size() / 2; }
  operator ops::ConstOperand() const { return part(0, size()); }
  ops::ConstOperand part(std::int64_t first, std::int64_t count) const;
  ops::Operand part(std::int64_t first, std::int64_t count);
  /// Becomes these pairs from one on.
  void set(std::int64_t first, const links::Pairs& pairs, Stream stream);

 private:
  Buffer<VertexId> ids_;
};

/// With the same pairs the other way behind them where both are asked for.
links::Pairs asked_ways(links::Pairs pairs, bool both);

/// Lists of pairs whose scores are wanted.
class AskedPairs {
 public:
  /// With `both_ways` the score of a pair is the mean of those of both directions.
  AskedPairs(const std::vector<links::Pairs>& lists, bool both_ways, const Place& place);

  ops::ConstOperand pairs() const { return pairs_; }
  /// Of the model's result: the score of each pair, list after list.
  std::vector<float> scores(const step::Tensor& result, Stream stream) const;
  /// Those of one list.
  std::span<const float> list(std::span<const float> scores, std::size_t number) const {
    return scores.subspan(ends_[number], ends_[number + 1] - ends_[number]);
  }

 private:
  bool both_ways_;
  std::vector<std::size_t> ends_;
  PlacedPairs pairs_;
};

}  // namespace tessera::train
