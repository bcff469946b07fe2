// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "link loss";

[[noreturn]] void refuse(std::string problem, std::string fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

template <class Score>
void require_room(std::span<const Score> scores, std::span<Score> gradient, const char* of) {
  if (gradient.empty() || gradient.size() == scores.size()) return;
  refuse(fmt::format("room for {} gradients of {} {}", gradient.size(), scores.size(), of),
         "give one for each, or none");
}

/// log(1 + exp(score)), and its derivative: written with exp(-|score|), which cannot overflow.
template <class Score>
struct Softplus {
  explicit Softplus(Score score)
      : value(std::max(score, Score{0}) + std::log1p(power(score))),
        slope((score < 0 ? power(score) : Score{1}) / (Score{1} + power(score))) {}

  static Score power(Score score) { return std::exp(-std::abs(score)); }

  Score value;
  Score slope;
};

/// max(0, score), and its derivative.
template <class Score>
struct Hinge {
  explicit Hinge(Score score)
      : value(std::max(score, Score{0})), slope(score < 0 ? Score{0} : Score{1}) {}

  Score value;
  Score slope;
};

/// Sums `term(i)` in an order that does not depend on threads.
template <class Term>
double sum_of(std::int64_t count, std::int64_t grain, Term&& term) {
  return parallel_reduce(
      count, grain, 0.0,
      [&](std::int64_t begin, std::int64_t end) {
        double sum = 0;
        for (std::int64_t i = begin; i < end; ++i) sum += term(static_cast<std::size_t>(i));
        return sum;
      },
      [](double a, double b) { return a + b; });
}

constexpr std::int64_t pairs_per_task = 1 << 13;

/// The sum of softplus(sign * score), whose gradient is written as that of a mean over `count`.
template <class Score>
double sum_of_softplus(std::span<const Score> scores, Score sign, double count,
                       std::span<Score> gradient) {
  const auto share = static_cast<Score>(1 / count);
  return sum_of(std::ssize(scores), pairs_per_task, [&](std::size_t i) {
    const Softplus<Score> one(sign * scores[i]);
    if (!gradient.empty()) gradient[i] = sign * one.slope * share;
    return static_cast<double>(one.value);
  });
}

/// The mean of `Function(offset + negative - positive)` over each negative of each positive.
template <template <class> class Function, class Score>
double mean_of_differences(std::span<const Score> positives, std::span<const Score> negatives,
                           Score offset, std::span<Score> grad_positives,
                           std::span<Score> grad_negatives) {
  require_room(positives, grad_positives, "positives");
  require_room(negatives, grad_negatives, "negatives");
  const std::size_t rows = positives.size();
  if (rows == 0 ? !negatives.empty() : negatives.size() % rows != 0) {
    refuse(fmt::format("{} negatives for {} positives", negatives.size(), rows),
           "give as many for each positive");
  }
  if (negatives.empty()) {
    std::fill(grad_positives.begin(), grad_positives.end(), Score{0});
    return 0;
  }
  const std::size_t each = negatives.size() / rows;
  const auto share = static_cast<Score>(1 / static_cast<double>(negatives.size()));
  const std::int64_t grain =
      std::max<std::int64_t>(1, pairs_per_task / static_cast<std::int64_t>(each));
  const double sum = sum_of(static_cast<std::int64_t>(rows), grain, [&](std::size_t i) {
    double value = 0, slopes = 0;
    for (std::size_t k = i * each; k < (i + 1) * each; ++k) {
      const Function<Score> one(offset + negatives[k] - positives[i]);
      value += static_cast<double>(one.value);
      slopes += static_cast<double>(one.slope);
      if (!grad_negatives.empty()) grad_negatives[k] = one.slope * share;
    }
    if (!grad_positives.empty()) grad_positives[i] = static_cast<Score>(-slopes) * share;
    return value;
  });
  return sum / static_cast<double>(negatives.size());
}

}  // namespace

template <class Score>
double bce_loss(std::span<const Score> positives, std::span<const Score> negatives,
                std::span<Score> grad_positives, std::span<Score> grad_negatives) {
  require_room(positives, grad_positives, "positives");
  require_room(negatives, grad_negatives, "negatives");
  const std::size_t pairs = positives.size() + negatives.size();
  if (pairs == 0) return 0;
  const auto count = static_cast<double>(pairs);
  return (sum_of_softplus(positives, Score{-1}, count, grad_positives) +
          sum_of_softplus(negatives, Score{1}, count, grad_negatives)) /
         count;
}

template <class Score>
double bpr_loss(std::span<const Score> positives, std::span<const Score> negatives,
                std::span<Score> grad_positives, std::span<Score> grad_negatives) {
  return mean_of_differences<Softplus>(positives, negatives, Score{0}, grad_positives,
                                       grad_negatives);
}

template <class Score>
double margin_loss(std::span<const Score> positives, std::span<const Score> negatives,
                   double margin, std::span<Score> grad_positives,
                   std::span<Score> grad_negatives) {
  if (!std::isfinite(margin) || margin < 0) {
    refuse(fmt::format("a margin of {}", margin), "give a number from 0 on");
  }
  return mean_of_differences<Hinge>(positives, negatives, static_cast<Score>(margin),
                                    grad_positives, grad_negatives);
}

template double bce_loss(std::span<const float>, std::span<const float>, std::span<float>,
                         std::span<float>);
template double bpr_loss(std::span<const float>, std::span<const float>, std::span<float>,
                         std::span<float>);
template double margin_loss(std::span<const float>, std::span<const float>, double,
                            std::span<float>, std::span<float>);
template double bce_loss(std::span<const double>, std::span<const double>, std::span<double>,
                         std::span<double>);
template double bpr_loss(std::span<const double>, std::span<const double>, std::span<double>,
                         std::span<double>);
template double margin_loss(std::span<const double>, std::span<const double>, double,
                            std::span<double>, std::span<double>);

}  // namespace tessera::links
