// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/split.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "train/random_use.hpp"

namespace tessera::train {
namespace {

void require_sense(const SplitShares& shares) {
  const bool sensible = shares.train > 0 && shares.validation > 0 && shares.test >= 0;
  if (!sensible || !(shares.train + shares.validation + shares.test <= 1 + 1e-9)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a split of {}, {}, {}", shares.train, shares.validation, shares.test),
                "split", "give positive shares that sum to at most 1; that of the test may be 0");
  }
}

std::ptrdiff_t part_size(double share, std::ptrdiff_t items) {
  const auto exact = std::llround(share * static_cast<double>(items));
  return std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(exact));
}

}  // namespace

const char* to_string(SplitPart part) noexcept {
  constexpr const char* names[] = {"", "train", "val", "test"};
  return names[static_cast<std::size_t>(part)];
}

Split random_split(std::span<const std::int64_t> items, const SplitShares& shares,
                   std::uint64_t seed) {
  require_sense(shares);
  const std::ptrdiff_t count = std::ssize(items);
  const std::ptrdiff_t least_test = shares.test > 0 ? 1 : 0;
  if (count < 2 + least_test) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} labelled items cannot be split", count), "split",
                fmt::format("use data with at least {} of them", 2 + least_test));
  }
  std::vector<std::int64_t> order(items.begin(), items.end());
  shuffle(order, Random(seed, draw_split));
  // Rounding up two parts of few items must leave something for the third.
  const std::ptrdiff_t train = std::min(part_size(shares.train, count), count - 1 - least_test);
  const std::ptrdiff_t validation =
      std::min(part_size(shares.validation, count), count - train - least_test);
  const std::ptrdiff_t test =
      least_test == 0 ? 0 : std::min(part_size(shares.test, count), count - train - validation);
  const auto validation_begin = order.begin() + train;
  const auto test_begin = validation_begin + validation;
  Split split{{order.begin(), validation_begin},
              {validation_begin, test_begin},
              {test_begin, test_begin + test}};
  for (auto* part : {&split.train, &split.validation, &split.test}) {
    std::sort(part->begin(), part->end());
  }
  return split;
}

Split fold_split(std::span<const std::int64_t> labels, std::int64_t folds, std::int64_t fold,
                 std::uint64_t seed) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_class;
  std::int64_t labelled = 0;
  for (std::size_t item = 0; item < labels.size(); ++item) {
    if (labels[item] < 0) continue;
    by_class[labels[item]].push_back(static_cast<std::int64_t>(item));
    ++labelled;
  }
  if (folds < 3 || folds > labelled || fold < 0 || fold >= folds) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("fold {} of {} with {} labelled items", fold, folds, labelled), "folds",
                "use at least 3 folds, and no more than there are items");
  }
  std::vector<std::vector<std::int64_t>> hands(static_cast<std::size_t>(folds));
  std::size_t dealt = 0;
  for (auto& [label, members] : by_class) {
    shuffle(members, Random(seed, draw_folds, static_cast<std::uint32_t>(label)));
    for (const std::int64_t item : members) hands[dealt++ % hands.size()].push_back(item);
  }
  Split split;
  const std::int64_t validation = (fold + folds - 1) % folds;
  for (std::int64_t k = 0; k < folds; ++k) {
    auto& part = k == fold ? split.test : k == validation ? split.validation : split.train;
    const auto& hand = hands[static_cast<std::size_t>(k)];
    part.insert(part.end(), hand.begin(), hand.end());
  }
  for (auto* part : {&split.train, &split.validation, &split.test}) {
    std::sort(part->begin(), part->end());
  }
  return split;
}

}  // namespace tessera::train
