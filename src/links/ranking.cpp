// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/ranking.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"
#include "links/scores.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "ranking";

void require_positive(std::int64_t k) {
  if (k >= 1) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("the best {} of a ranking", k), where,
              "give a K of at least 1");
}

void require_rows(std::int64_t rows, std::int64_t others, const char* what) {
  if (rows == others) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {} for {} rows", others, what, rows),
              where, "give one for each row");
}

/// Counts the scores that a true one competes with.
template <class Score>
class Competition {
 public:
  explicit Competition(Score truth) : truth_(truth) {
    if (std::isnan(truth)) refuse_score(where);
  }

  void meet(Score other) {
    if (std::isnan(other)) refuse_score(where);
    better_ += other > truth_ ? 1 : 0;
    tied_ += other == truth_ ? 1 : 0;
  }

  double rank() const { return 1 + static_cast<double>(better_) + static_cast<double>(tied_) / 2; }

 private:
  Score truth_;
  std::int64_t better_ = 0;
  std::int64_t tied_ = 0;
};

/// How much a hit at a place counts in NDCG.
double gain(std::int64_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

}  // namespace

template <class Score>
double hits_at(std::span<const Score> positives, std::span<const Score> negatives, std::int64_t k) {
  require_positive(k);
  require_numbers(positives, where);
  require_numbers(negatives, where);
  if (positives.empty()) return 0;
  if (std::ssize(negatives) < k) return 1;
  std::vector<Score> sorted(negatives.begin(), negatives.end());
  const auto kth = sorted.begin() + (k - 1);
  std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
  const auto hits =
      std::count_if(positives.begin(), positives.end(), [&](Score s) { return s > *kth; });
  return static_cast<double>(hits) / static_cast<double>(positives.size());
}

template <class Score>
std::vector<double> ranks(std::span<const Score> positives, MatrixView<const Score> negatives) {
  require_rows(negatives.rows, std::ssize(positives), "positives");
  std::vector<double> result(positives.size());
  parallel_for(negatives.rows, even_grain(negatives.rows, 16), [&](std::int64_t i) {
    Competition<Score> competition(positives[static_cast<std::size_t>(i)]);
    for (std::int64_t j = 0; j < negatives.cols; ++j) competition.meet(negatives(i, j));
    result[static_cast<std::size_t>(i)] = competition.rank();
  });
  return result;
}

template <class Score>
std::vector<double> ranks_of(MatrixView<const Score> scores, std::span<const VertexId> truths,
                             const Graph* known) {
  require_rows(scores.rows, std::ssize(truths), "true candidates");
  if (known != nullptr) {
    detail::require_whole(*known);
    require_rows(scores.rows, known->num_rows(), "rows of known candidates");
  }
  std::vector<double> result(truths.size());
  parallel_for(scores.rows, even_grain(scores.rows, 16), [&](std::int64_t i) {
    const VertexId truth = truths[static_cast<std::size_t>(i)];
    if (truth < 0 || truth >= scores.cols) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the true candidate of row {} is {}, of {}", i, truth, scores.cols),
                  where, "number candidates as the columns of the scores");
    }
    std::span<const VertexId> left_out;
    if (known != nullptr) left_out = known->neighbours(static_cast<VertexId>(i));
    auto next = left_out.begin();
    Competition<Score> competition(scores(i, truth));
    for (std::int64_t j = 0; j < scores.cols; ++j) {
      while (next != left_out.end() && *next < j) ++next;
      const bool is_known = next != left_out.end() && *next == j;
      if (j != truth && !is_known) competition.meet(scores(i, j));
    }
    result[static_cast<std::size_t>(i)] = competition.rank();
  });
  return result;
}

double mean_reciprocal_rank(std::span<const double> ranks) {
  double sum = 0;
  for (const double rank : ranks) sum += 1 / rank;
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

double hits_within(std::span<const double> ranks, std::int64_t k) {
  require_positive(k);
  const auto hits = std::count_if(ranks.begin(), ranks.end(),
                                  [&](double rank) { return rank <= static_cast<double>(k); });
  return ranks.empty() ? 0 : static_cast<double>(hits) / static_cast<double>(ranks.size());
}

ListQuality list_quality(MatrixView<const VertexId> lists, const Graph& truth) {
  detail::require_whole(truth);
  require_rows(truth.num_rows(), lists.rows, "lists");
  require_positive(lists.cols);
  ListQuality sums;
  for (std::int64_t i = 0; i < lists.rows; ++i) {
    const auto wanted = truth.neighbours(static_cast<VertexId>(i));
    if (wanted.empty()) continue;
    std::int64_t hits = 0;
    double gained = 0, ideal = 0;
    for (std::int64_t place = 0; place < lists.cols; ++place) {
      if (place < std::ssize(wanted)) ideal += gain(place);
      if (!std::binary_search(wanted.begin(), wanted.end(), lists(i, place))) continue;
      ++hits;
      gained += gain(place);
    }
    ++sums.rows;
    sums.recall += static_cast<double>(hits) / static_cast<double>(wanted.size());
    sums.ndcg += gained / ideal;
  }
  if (sums.rows == 0) return {};
  const auto rows = static_cast<double>(sums.rows);
  return {sums.recall / rows, sums.ndcg / rows, sums.rows};
}

template double hits_at(std::span<const float>, std::span<const float>, std::int64_t);
template double hits_at(std::span<const double>, std::span<const double>, std::int64_t);
template std::vector<double> ranks(std::span<const float>, MatrixView<const float>);
template std::vector<double> ranks(std::span<const double>, MatrixView<const double>);
template std::vector<double> ranks_of(MatrixView<const float>, std::span<const VertexId>,
                                      const Graph*);
template std::vector<double> ranks_of(MatrixView<const double>, std::span<const VertexId>,
                                      const Graph*);

}  // namespace tessera::links
