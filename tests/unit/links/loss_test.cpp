// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "support/expect_error.hpp"
#include "support/finite_differences.hpp"
#include "support/random_coo.hpp"

namespace tessera::links {
namespace {

using testing::expect_error;
using testing::gradient_mismatch;
using testing::ThreadScope;

template <class Score>
using Loss = double (*)(std::span<const Score>, std::span<const Score>, std::span<Score>,
                        std::span<Score>);

template <class Score>
double hinge(std::span<const Score> positives, std::span<const Score> negatives,
             std::span<Score> grad_positives, std::span<Score> grad_negatives) {
  return margin_loss(positives, negatives, 0.75, grad_positives, grad_negatives);
}

template <class Score>
std::vector<Loss<Score>> losses() {
  return {bce_loss<Score>, bpr_loss<Score>, hinge<Score>};
}

/// The same by formulas that need scores of moderate size.
double formula(std::size_t which, std::span<const double> positives,
               std::span<const double> negatives) {
  double sum = 0;
  if (which == 0) {
    for (const double p : positives) sum -= std::log(1 / (1 + std::exp(-p)));
    for (const double n : negatives) sum -= std::log(1 - 1 / (1 + std::exp(-n)));
    return sum / double(positives.size() + negatives.size());
  }
  const std::size_t each = negatives.size() / positives.size();
  for (std::size_t k = 0; k < negatives.size(); ++k) {
    const double lead = positives[k / each] - negatives[k];
    sum += which == 1 ? -std::log(1 / (1 + std::exp(-lead))) : std::max(0.0, 0.75 - lead);
  }
  return sum / double(negatives.size());
}

template <class Score>
Matrix<Score> drawn(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<Score> scores(rows, cols);
  const Random random(seed);
  for (std::int64_t i = 0; i < scores.size(); ++i) {
    scores.data()[i] = static_cast<Score>(3 * random.normal(static_cast<std::uint64_t>(i)));
  }
  return scores;
}

TEST(LinkLoss, ValuesAndGradients) {
  for (std::size_t which = 0; which < 3; ++which) {
    const auto loss = losses<double>()[which];
    for (const auto& [rows, each] : {std::pair{1, 1}, {7, 1}, {5, 4}, {1, 30}}) {
      Matrix<double> positives = drawn<double>(rows, 1, 1);
      Matrix<double> negatives = drawn<double>(rows, each, 2);
      Matrix<double> of_positives(rows, 1), of_negatives(rows, each);
      const double value =
          loss(positives.span(), negatives.span(), of_positives.span(), of_negatives.span());
      EXPECT_NEAR(value, formula(which, positives.span(), negatives.span()), 1e-12);
      EXPECT_EQ(value, loss(positives.span(), negatives.span(), {}, {}));
      const auto again = [&] { return loss(positives.span(), negatives.span(), {}, {}); };
      EXPECT_EQ(gradient_mismatch(positives, of_positives, again), "");
      EXPECT_EQ(gradient_mismatch(negatives, of_negatives, again), "");
    }
  }
}

TEST(LinkLoss, BinaryCrossEntropyTakesAnyNumberOfEither) {
  const Matrix<double> positives = drawn<double>(7, 1, 1), negatives = drawn<double>(4, 1, 2);
  EXPECT_NEAR(bce_loss<double>(positives.span(), negatives.span()),
              formula(0, positives.span(), negatives.span()), 1e-12);
  EXPECT_NEAR(bce_loss<double>(positives.span(), {}), formula(0, positives.span(), {}), 1e-12);
}

TEST(LinkLoss, SinglePrecisionIsCloseToDouble) {
  constexpr std::int64_t rows = 3000, each = 7;
  const Matrix<float> positives = drawn<float>(rows, 1, 1), negatives = drawn<float>(rows, each, 2);
  const std::vector<double> wide_positives(positives.span().begin(), positives.span().end());
  const std::vector<double> wide_negatives(negatives.span().begin(), negatives.span().end());
  for (std::size_t which = 0; which < 3; ++which) {
    Matrix<float> of_positives(rows, 1), of_negatives(rows, each);
    std::vector<double> expected_positives(rows), expected_negatives(rows * each);
    const double value = losses<float>()[which](positives.span(), negatives.span(),
                                                of_positives.span(), of_negatives.span());
    EXPECT_NEAR(value,
                losses<double>()[which](wide_positives, wide_negatives, expected_positives,
                                        expected_negatives),
                1e-6);
    for (std::size_t i = 0; i < rows; ++i) {
      EXPECT_NEAR(double(of_positives.data()[i]), expected_positives[i], 1e-6 / rows);
    }
    for (std::size_t k = 0; k < rows * each; ++k) {
      EXPECT_NEAR(double(of_negatives.data()[k]), expected_negatives[k], 1e-6 / rows / each);
    }
  }
}

TEST(LinkLoss, NoScoreIsTooLarge) {
  const std::vector<float> right{3e38f, 1000}, wrong{-3e38f, -1000};
  for (const auto loss : losses<float>()) {
    std::vector<float> of_positives(2), of_negatives(2);
    EXPECT_EQ(loss(right, wrong, of_positives, of_negatives), 0);
    for (const float slope : {of_positives[0], of_positives[1], of_negatives[0], of_negatives[1]}) {
      EXPECT_EQ(slope, 0);
    }
  }
  const std::vector<float> low{-1000}, high{1000};
  std::vector<float> of_positives(1), of_negatives(1);
  EXPECT_EQ(bce_loss<float>(low, high, of_positives, of_negatives), 1000);
  EXPECT_EQ(of_positives[0], -0.5f);
  EXPECT_EQ(of_negatives[0], 0.5f);
  EXPECT_EQ(bpr_loss<float>(low, high, of_positives, of_negatives), 2000);
  EXPECT_EQ(of_positives[0], -1);
  EXPECT_EQ(of_negatives[0], 1);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> best{infinity}, worst{-infinity};
  EXPECT_EQ(bce_loss<double>(best, worst), 0);
  EXPECT_EQ(bce_loss<double>(worst, best), infinity);
  EXPECT_EQ(bpr_loss<double>(best, worst), 0);
}

TEST(LinkLoss, ScoresThatAreNotNumbersAreNotHidden) {
  const std::vector<double> odd{std::nan("")}, plain{1};
  for (const auto loss : losses<double>()) {
    EXPECT_TRUE(std::isnan(loss(odd, plain, {}, {})));
    EXPECT_TRUE(std::isnan(loss(plain, odd, {}, {})));
  }
}

TEST(LinkLoss, AMarginThatIsJustKeptHasTheGradientFromAbove) {
  const std::vector<double> positives{2}, negatives{1};
  std::vector<double> of_positives(1), of_negatives(1);
  EXPECT_EQ(margin_loss<double>(positives, negatives, 1, of_positives, of_negatives), 0);
  EXPECT_EQ(of_positives[0], -1);
  EXPECT_EQ(of_negatives[0], 1);
}

TEST(LinkLoss, NoPairsGiveNothing) {
  const std::vector<double> some{1, 2};
  for (const auto loss : losses<double>()) EXPECT_EQ(loss({}, {}, {}, {}), 0);
  std::vector<double> gradient{5, 5};
  EXPECT_EQ(bpr_loss<double>(some, {}, gradient), 0);
  EXPECT_EQ(gradient, (std::vector<double>{0, 0}));
}

TEST(LinkLoss, TheSameBitsForAnyNumberOfThreads) {
  const Matrix<float> positives = drawn<float>(40000, 1, 1), negatives = drawn<float>(40000, 3, 2);
  for (const auto loss : losses<float>()) {
    const auto run = [&](int threads) {
      const ThreadScope scope(threads);
      std::vector<float> gradient(40000);
      const double value = loss(positives.span(), negatives.span(), gradient, {});
      gradient.push_back(static_cast<float>(value));
      return std::pair(value, gradient);
    };
    EXPECT_EQ(run(1), run(16));
    EXPECT_EQ(run(1), run(3));
  }
}

TEST(LinkLoss, RefusesWhatDoesNotFit) {
  const std::vector<double> two{1, 2}, three{1, 2, 3};
  std::vector<double> room(1);
  expect_error(ErrorCode::invalid_argument, {"3 negatives for 2 positives"},
               [&] { bpr_loss<double>(two, three); });
  expect_error(ErrorCode::invalid_argument, {"3 negatives for 0 positives"},
               [&] { margin_loss<double>({}, three); });
  for (const auto loss : losses<double>()) {
    expect_error(ErrorCode::invalid_argument, {"room for 1 gradients of 2 positives"},
                 [&] { loss(two, two, room, {}); });
    expect_error(ErrorCode::invalid_argument, {"room for 1 gradients of 2 negatives"},
                 [&] { loss(two, two, {}, room); });
  }
  for (const double margin : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    expect_error(ErrorCode::invalid_argument, {"a margin of"},
                 [&] { margin_loss<double>(two, two, margin); });
  }
}

}  // namespace
}  // namespace tessera::links
