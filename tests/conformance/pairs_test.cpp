// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ops/pairs/reference.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_test.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/pairs.hpp"

/// Scores of pairs, their gradients and losses on every device and in every precision against the
/// references.
namespace tessera::ops {
namespace {

using reference::PairOp;
using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::same_bits;
using test::to_double;
using test::widths;
using test::with_type_of;

class PairOps : public test::DenseTest {};

/// Pairs among some rows; every other source is row 0, an end of very many, and some rows have
/// none.
Matrix<std::int32_t> drawn_pairs(std::int64_t rows, std::int64_t count, std::uint64_t seed) {
  Matrix<std::int32_t> pairs(2, count);
  const Random random(seed);
  const auto some = static_cast<std::uint64_t>((rows + 1) / 2);
  for (std::int64_t k = 0; k < count; ++k) {
    const auto element = static_cast<std::uint64_t>(k);
    pairs(0, k) = k % 2 == 0 ? 0 : static_cast<std::int32_t>(random.below(2 * element, some));
    pairs(1, k) = static_cast<std::int32_t>(random.below(2 * element + 1, some));
  }
  return pairs;
}

struct Shape {
  std::int64_t rows, pairs;
};
constexpr Shape shapes[] = {{1, 0}, {1, 1}, {17, 15}, {33, 31}, {300, 17}, {50, 3000}};

/// Scores, and gradients of two matrices and of one.
template <class T>
void check(PairOp op, const Shape& shape, std::int64_t cols, std::int64_t heads,
           std::int64_t margin, Device device) {
  SCOPED_TRACE(::testing::Message() << shape.pairs << " pairs of " << shape.rows << " rows x "
                                    << cols << ", " << heads << " heads, margin " << margin);
  const auto a = normal_matrix<T>(shape.rows, cols, 1), b = normal_matrix<T>(shape.rows, cols, 2);
  const auto pairs = drawn_pairs(shape.rows, shape.pairs, 3);
  const auto slopes = normal_matrix<T>(shape.pairs, op == PairOp::dot ? heads : cols, 4);
  const auto unknown = normal_matrix<T>(shape.rows, cols, 5);
  DeviceMatrix<T> sources(a, device, margin), targets(b, device, margin);
  DeviceMatrix<T> y(shape.pairs, slopes.cols(), device, margin), grad_y(slopes, device, margin);
  DeviceMatrix<T> grad_a(unknown, device, margin), grad_b(unknown, device, margin);
  DeviceMatrix<T> grad_both(unknown, device, margin), grad_alone(unknown, device, margin);
  DeviceMatrix<std::int32_t> asked(pairs, device, 3);
  PairEnds ends(shape.rows, shape.pairs, Place(device));
  ends.list(asked);
  const auto* const workspace = test::workspace_on(device);
  const auto backward = [&](ConstOperand s, ConstOperand t, Operand to_s, Operand to_t) {
    if (op == PairOp::dot) {
      pair_dot_backward(s, t, ends, grad_y, to_s, to_t, {}, workspace);
    } else {
      pair_sum_backward(ends, grad_y, to_s, to_t, {}, workspace);
    }
  };
  if (op == PairOp::dot) {
    pair_dot(sources, targets, asked, y, device);
  } else {
    pair_sum(sources, targets, asked, y, device);
  }
  backward(sources, targets, grad_a, grad_b);
  backward(sources, sources, grad_both, grad_both);
  backward(sources, targets, {}, grad_alone);
  const Matrix<double> exact_a = to_double(a), exact_b = to_double(b);
  const Matrix<double> exact_slopes = to_double(slopes);
  const auto ids = pairs.view();
  expect_close("y", y.values(), reference::of_pairs(op, exact_a, exact_b, ids, heads), 1e-6,
               static_cast<double>(cols));
  Matrix<double> of_a(shape.rows, cols, 0.0), of_b(shape.rows, cols, 0.0);
  reference::of_pairs_backward(op, exact_a, exact_b, ids, exact_slopes, of_a, of_b);
  const double scale = 1 + static_cast<double>(shape.pairs);
  expect_close("grad_sources", grad_a.values(), of_a, 1e-6, scale);
  expect_close("grad_targets", grad_b.values(), of_b, 1e-6, scale);
  EXPECT_TRUE(same_bits(grad_b.values(), grad_alone.values()));
  Matrix<double> of_both(shape.rows, cols, 0.0);
  reference::of_pairs_backward(op, exact_a, exact_a, ids, exact_slopes, of_both, of_both);
  expect_close("both gradients", grad_both.values(), of_both, 1e-6, scale);
  const Matrix<T> once = grad_both.values();
  ends.list(asked);
  backward(sources, sources, grad_both, grad_both);
  EXPECT_TRUE(same_bits(once, grad_both.values())) << "at a second run";
}

TEST_P(PairOps, dot_agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const Shape& shape : shapes) {
      for (const std::int64_t cols : widths) {
        for (const std::int64_t margin : margins) {
          check<T>(PairOp::dot, shape, cols, 1, margin, device());
        }
      }
    }
    for (const std::int64_t heads : {2, 4, 24}) {
      for (const std::int64_t margin : margins) {
        check<T>(PairOp::dot, {33, 31}, 24, heads, margin, device());
        check<T>(PairOp::dot, {50, 3000}, 24, heads, margin, device());
      }
    }
  });
}

TEST_P(PairOps, sum_agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const Shape& shape : shapes) {
      for (const std::int64_t cols : widths) {
        for (const std::int64_t margin : margins) {
          check<T>(PairOp::sum, shape, cols, 1, margin, device());
        }
      }
    }
  });
}

TEST_P(PairOps, losses_agree_with_the_reference) {
  struct Case {
    std::int64_t positives, per_positive;
  };
  const auto check_loss = [&]<class T>(const Case& of, PairLossOptions options,
                                       std::int64_t margin) {
    SCOPED_TRACE(::testing::Message()
                 << of.positives << " positives, " << of.per_positive << " negatives of each, loss "
                 << static_cast<int>(options.kind) << ", smoothing " << options.smoothing
                 << ", margin " << margin);
    options.positives = of.positives;
    const std::int64_t count = of.positives * (1 + of.per_positive);
    auto given = normal_matrix<T>(count, 1, 6);
    if (count > 3) {  // no score is too large
      given(0, 0) = static_cast<T>(300.0f);
      given(count - 1, 0) = static_cast<T>(-300.0f);
    }
    const Matrix<double> exact = to_double(given);
    Matrix<double> gradient(count, 1, 0.0);
    const double expected = reference::pair_loss(exact.span(), options, gradient.span());
    DeviceMatrix<T> scores(given, device(), margin), grad(count, 1, device(), margin);
    DeviceMatrix<T> sum(1, 1, device(), 0);
    Buffer<double> value(1, Place(device()));
    const auto run = [&](Operand to, Operand to_sum) {
      pair_loss(scores, options, to, value.data(), device(), {}, test::workspace_on(device()),
                to_sum);
      double found = -1;
      copy_bytes(&found, value.data(), sizeof found, device());
      synchronise(device());
      return found;
    };
    const double found = run(grad, sum);
    EXPECT_NEAR(found, expected, 1e-6 * (1 + expected));
    expect_close("gradient", grad.values(), gradient, 1e-6, 0.1);
    Matrix<double> whole(1, 1, 0.0);
    for (const double slope : gradient.span()) whole(0, 0) += slope;
    expect_close("sum", sum.values(), whole, 1e-5);
    EXPECT_EQ(run({}, {}), found) << "without a gradient";
    EXPECT_EQ(run(scores, {}), found) << "in place";
    EXPECT_TRUE(same_bits(scores.values(), grad.values()));
  };
  with_type_of(precision(), [&]<class T>() {
    for (const Case& of : {Case{0, 0}, {1, 1}, {5, 3}, {33, 1}, {1000, 7}, {3, 500}}) {
      for (const std::int64_t margin : margins) {
        check_loss.template operator()<T>(of, {PairLossKind::bce}, margin);
        check_loss.template operator()<T>(of, {.kind = PairLossKind::bce, .smoothing = 0.25},
                                          margin);
        check_loss.template operator()<T>(of, {PairLossKind::bpr}, margin);
        check_loss.template operator()<T>(of, {.kind = PairLossKind::bpr, .smoothing = 0.25},
                                          margin);
        check_loss.template operator()<T>(of, {.kind = PairLossKind::margin, .margin = 0.5},
                                          margin);
      }
    }
  });
}

TEST(Pairs, say_what_is_wrong_with_them) {
  const auto x = normal_matrix<float>(5, 4, 1);
  Matrix<float> scores(2, 1), gradient(5, 4);
  Matrix<std::int32_t> pairs(2, 2, 0);
  pairs(1, 1) = 5;
  PairEnds ends(5, 2);
  testing::expect_error(ErrorCode::invalid_argument, {"pair_dot", "pairs[1][1] is 5", "5 rows"},
                        [&] { pair_dot(x, x, pairs, scores); });
  testing::expect_error(ErrorCode::invalid_argument, {"PairEnds::list", "pairs[1][1] is 5"},
                        [&] { ends.list(pairs); });
  pairs(1, 1) = 4;
  ends.list(pairs);
  testing::expect_error(ErrorCode::invalid_argument, {"pair_dot_backward", "grad_scores", "2 x 1"},
                        [&] {
                          Matrix<float> three(3, 1);
                          pair_dot_backward(x, x, ends, three, gradient, gradient);
                        });
  testing::expect_error(ErrorCode::invalid_argument, {"pair_dot", "4 columns", "3 heads"}, [&] {
    Matrix<float> three(2, 3);
    pair_dot(x, x, pairs, three);
  });
  double value = 0;
  testing::expect_error(ErrorCode::invalid_argument, {"pair_loss", "0 positives of 2"},
                        [&] { pair_loss(scores, {.kind = PairLossKind::bpr}, {}, &value); });
  testing::expect_error(ErrorCode::invalid_argument, {"pair_loss", "a margin of -1"}, [&] {
    pair_loss(scores, {.kind = PairLossKind::margin, .positives = 1, .margin = -1}, {}, &value);
  });
}

INSTANTIATE_TEST_SUITE_P(AllBackends, PairOps, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
