// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "ops/grouped_linear/reference.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_test.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/ops/grouped_linear.hpp"

/// Products of rows with the weights of their groups on every device and in every precision against
/// the reference.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

class GroupedLinear : public test::DenseTest {};

struct GroupedShapes {
  std::int64_t rows, groups, blocks, height, width;
};
constexpr GroupedShapes shapes[] = {{0, 3, 1, 4, 4},    {1, 1, 1, 1, 1},     {15, 4, 3, 5, 5},
                                    {16, 500, 2, 3, 2}, {17, 2, 1, 33, 1},   {33, 3, 1, 7, 31},
                                    {40, 5, 10, 1, 9},  {200, 3, 1, 70, 65}, {900, 2, 30, 5, 5},
                                    {31, 4, 6, 12, 1}};

/// Which group each row belongs to: in no order, the last group empty where there are several, and
/// most rows in group 0.
Graph random_groups(std::int64_t rows, std::int64_t groups, std::uint64_t seed) {
  const Random random(seed);
  std::vector<EdgeOffset> offsets(static_cast<std::size_t>(rows) + 1);
  std::iota(offsets.begin(), offsets.end(), EdgeOffset{0});
  std::vector<VertexId> columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto k = static_cast<std::uint64_t>(i);
    const bool in_first = groups == 1 || random.uniform(2 * k) < 0.6;
    columns.push_back(in_first ? 0
                               : static_cast<VertexId>(random.below(
                                     2 * k + 1, static_cast<std::uint64_t>(groups - 1))));
  }
  return Graph(static_cast<VertexId>(rows), static_cast<VertexId>(groups), std::move(offsets),
               std::move(columns));
}

template <class T>
void check(const GroupedShapes& shape, std::int64_t margin, Device device) {
  const auto [rows, count, blocks, height, width] = shape;
  SCOPED_TRACE(::testing::Message()
               << rows << " rows, " << count << " groups, " << blocks << " blocks of " << height
               << " x " << width << ", margin " << margin << ", seed 5");
  const Graph groups = random_groups(rows, count, 5);
  const auto x = normal_matrix<T>(rows, blocks * height, 1);
  const auto weights = normal_matrix<T>(count, blocks * height * width, 2);
  const auto grad_y = normal_matrix<T>(rows, blocks * width, 3);
  DeviceMatrix<T> from(x, device, margin), by(weights, device, margin);
  DeviceMatrix<T> slopes(grad_y, device, margin), y(rows, blocks * width, device, margin);
  DeviceMatrix<T> grad_x(rows, blocks * height, device, margin),
      alone(rows, blocks * height, device, margin);
  DeviceMatrix<T> grad_weights(count, blocks * height * width, device, margin);
  grouped_linear(from, groups, by, blocks, y, device);
  grouped_linear_backward(from, groups, by, blocks, slopes, grad_x, grad_weights, device);
  grouped_linear_backward(from, groups, by, blocks, slopes, alone, {}, device);
  Matrix<double> y_expected(rows, blocks * width), grad_x_expected(rows, blocks * height);
  Matrix<double> grad_weights_expected(count, blocks * height * width);
  const Matrix<double> x_wide = to_double(x), weights_wide = to_double(weights);
  const Matrix<double> slopes_wide = to_double(grad_y);
  reference::grouped_linear(x_wide.view(), groups, weights_wide.view(), blocks, y_expected.view());
  reference::grouped_linear_backward(x_wide.view(), groups, weights_wide.view(), blocks,
                                     slopes_wide.view(), grad_x_expected.view(),
                                     grad_weights_expected.view());
  expect_close("y", y.values(), y_expected, 1e-6, static_cast<double>(height));
  expect_close("grad_x", grad_x.values(), grad_x_expected, 1e-6, static_cast<double>(width));
  expect_close("grad_x alone", alone.values(), grad_x_expected, 1e-6, static_cast<double>(width));
  expect_close("grad_weights", grad_weights.values(), grad_weights_expected, 1e-6,
               1 + static_cast<double>(rows));
}

TEST_P(GroupedLinear, agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const GroupedShapes& shape : shapes) {
      for (const std::int64_t margin : margins) check<T>(shape, margin, device());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, GroupedLinear, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

TEST(GroupedLinearOnCpu, is_the_same_for_any_number_of_threads) {
  const Graph groups = random_groups(700, 3, 9);
  const auto x = normal_matrix<float>(700, 130, 1), weights = normal_matrix<float>(3, 130 * 9, 2);
  const auto grad_y = normal_matrix<float>(700, 9, 3);
  Matrix<float> results[2];
  const int before = num_threads();
  for (int run = 0; run < 2; ++run) {
    set_num_threads(run == 0 ? 1 : 4);
    results[run] = Matrix<float>(3, 130 * 9);
    grouped_linear_backward(x, groups, weights, 1, grad_y, {}, results[run]);
  }
  set_num_threads(before);
  for (std::int64_t k = 0; k < results[0].size(); ++k) {
    ASSERT_EQ(results[0].data()[k], results[1].data()[k]) << k;
  }
}

TEST(GroupedLinearOnCpu, what_does_not_fit_is_an_error) {
  const auto x = normal_matrix<float>(2, 6, 1), weights = normal_matrix<float>(3, 12, 2);
  Matrix<float> y(2, 4);
  const auto run = [&](const Graph& groups, std::int64_t blocks) {
    grouped_linear(x, groups, weights, blocks, y);
  };
  const Graph right = random_groups(2, 3, 1);
  run(right, 2);
  using testing::expect_error;
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"do not divide into 4 blocks"}, [&] { run(right, 4); });
  expect_error(invalid, {"do not divide into 0 blocks"}, [&] { run(right, 0); });
  expect_error(invalid, {"weights"}, [&] { run(right, 1); });
  expect_error(invalid, {"groups has 3 rows"}, [&] { run(random_groups(3, 3, 1), 2); });
  const Graph two_groups(2, 3, std::vector<EdgeOffset>{0, 2, 2}, std::vector<VertexId>{0, 1});
  expect_error(invalid, {"row 0 belongs to 2 groups"}, [&] { run(two_groups, 2); });
}

}  // namespace
}  // namespace tessera::ops
