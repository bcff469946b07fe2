// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/curves.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "links/scores.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "curves";

template <class Score>
std::vector<Score> highest_first(std::span<const Score> scores) {
  require_numbers(scores, where);
  std::vector<Score> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  return sorted;
}

/// How many from `next` on equal a score; `next` moves behind them.
template <class Score>
std::int64_t take_equal(const std::vector<Score>& sorted, std::size_t& next, Score score) {
  const std::size_t begin = next;
  while (next < sorted.size() && sorted[next] == score) ++next;
  return static_cast<std::int64_t>(next - begin);
}

/// Calls `visit(positives, negatives)` for each score that occurs, the highest first, with how many
/// of both have it.
template <class Score, class Visit>
void for_each_threshold(std::span<const Score> positives, std::span<const Score> negatives,
                        Visit&& visit) {
  if (positives.empty() || negatives.empty()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} positives against {} negatives", positives.size(), negatives.size()), where,
        "give one of both at least");
  }
  const auto found = highest_first(positives), wrong = highest_first(negatives);
  std::size_t next_found = 0, next_wrong = 0;
  while (next_found < found.size() || next_wrong < wrong.size()) {
    const bool is_found = next_wrong == wrong.size() ||
                          (next_found < found.size() && found[next_found] >= wrong[next_wrong]);
    const Score score = is_found ? found[next_found] : wrong[next_wrong];
    const std::int64_t equal_found = take_equal(found, next_found, score);
    visit(equal_found, take_equal(wrong, next_wrong, score));
  }
}

}  // namespace

template <class Score>
double roc_auc(std::span<const Score> positives, std::span<const Score> negatives) {
  // Pairs (positive above negative) counted twice, so that half a pair is a whole number.
  std::int64_t doubled_pairs = 0, above = 0;
  for_each_threshold(positives, negatives, [&](std::int64_t found, std::int64_t wrong) {
    doubled_pairs += wrong * (2 * above + found);
    above += found;
  });
  return static_cast<double>(doubled_pairs) /
         (2 * static_cast<double>(positives.size()) * static_cast<double>(negatives.size()));
}

template <class Score>
double average_precision(std::span<const Score> positives, std::span<const Score> negatives) {
  std::int64_t found_so_far = 0, all = 0;
  double sum = 0;
  for_each_threshold(positives, negatives, [&](std::int64_t found, std::int64_t wrong) {
    found_so_far += found;
    all += found + wrong;
    sum +=
        static_cast<double>(found) * static_cast<double>(found_so_far) / static_cast<double>(all);
  });
  return sum / static_cast<double>(positives.size());
}

template double roc_auc(std::span<const float>, std::span<const float>);
template double roc_auc(std::span<const double>, std::span<const double>);
template double average_precision(std::span<const float>, std::span<const float>);
template double average_precision(std::span<const double>, std::span<const double>);

}  // namespace tessera::links
