// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::train {

/// Which items (vertices, or graphs of a union) are for what.
struct Split {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> validation;
  std::vector<std::int64_t> test;

  friend bool operator==(const Split&, const Split&) = default;
};

/// What an item is for; `none` where it is in no part.
enum class SplitPart : std::uint8_t { none, train, validation, test };

/// "train", "val" or "test", as a column of a table has it; empty for `none`.
const char* to_string(SplitPart part) noexcept;

/// Shares of the items of a random split. What their sum lacks to 1 is left out.
struct SplitShares {
  double train = 0.6;
  double validation = 0.2;
  double test = 0.2;

  friend bool operator==(const SplitShares&, const SplitShares&) = default;
};

/// Draws a split of `items`. Each part gets at least one, but the test none where its share is 0;
/// fewer items than parts, and shares that are not positive or sum to more than 1, are
/// `invalid_argument` errors.
Split random_split(std::span<const std::int64_t> items, const SplitShares& shares,
                   std::uint64_t seed);

/// Cross-validation: deals the labelled items to `folds` hands, class by class in random order, so
/// that each hand has its share of every class. Hand `fold` is the test, the one before it the
/// validation, the rest are for training. Needs at least three folds and an item for each.
Split fold_split(std::span<const std::int64_t> labels, std::int64_t folds, std::int64_t fold,
                 std::uint64_t seed);

}  // namespace tessera::train
