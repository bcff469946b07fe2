// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/device_traits.hpp"
#include "ops/dense/call_chain.hpp"
#include "support/chain_scene.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/ops/loss.hpp"

/// Dense ops that wait for each other and run together, against the same ops one by one on the CPU:
/// a layer, batch norm with ReLU, a second layer, the loss, and the gradients of all of it.
namespace tessera::ops {
namespace {

double largest(const Matrix<double>& matrix) {
  double most = 0;
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    most = std::max(most, std::abs(matrix.data()[i]));
  }
  return most;
}

template <class T>
void check(const ChainWidths& widths, std::int64_t margin, Device device) {
  SCOPED_TRACE(::testing::Message() << widths.rows << " x " << widths.in << " -> " << widths.hidden
                                    << " -> " << widths.out << " margin " << margin);
  const double tolerance = bytes_per_element(PrecisionOf<T>::value) > 2 ? 5e-5 : 3e-2;
  for (const bool training : {true, false}) {
    const auto expected = ChainScene<Expected<T>>(widths, Device{}, 0).run(false, training);
    const auto got = ChainScene<T>(widths, device, margin).run(true, training);
    const auto again = ChainScene<T>(widths, device, margin).run(true, training);
    ASSERT_EQ(expected.size(), got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      // Columns of a few numbers may cancel: errors are measured by the largest of the matrix.
      const double scale = std::max(largest(expected[i].values), 1e-3);
      for (std::int64_t j = 0; j < got[i].values.size(); ++j) {
        ASSERT_NEAR(got[i].values.data()[j], expected[i].values.data()[j], tolerance * scale)
            << got[i].name << ", element " << j << (training ? "" : ", evaluation");
      }
      EXPECT_TRUE(test::same_bits(got[i].values, again[i].values)) << got[i].name;
    }
  }
}

class ChainedOps : public ::testing::TestWithParam<test::DenseBackend> {};

/// Calls `body` with the type that stores the precision of a test; fp16 is never in a chain.
template <class Body>
void with_chained_type(const test::DenseBackend& backend, Body&& body) {
  with_type_of(backend.precision, [&]<class T>() {
    if constexpr (!std::is_same_v<T, Float16>) body.template operator()<T>();
  });
}

TEST_P(ChainedOps, agree_where_blocks_begin) {
  with_chained_type(GetParam(), [&]<class T>() {
    for (const std::int64_t rows : {5, 129}) check<T>({rows, 16, 16, 7}, 0, GetParam().device);
  });
}

TEST_P(ChainedOps, agree_with_the_same_one_by_one) {
  with_chained_type(GetParam(), [&]<class T>() {
    for (const std::int64_t rows : {5, 63, 64, 65, 300, 2708}) {
      check<T>({rows, 16, 16, 7}, 0, GetParam().device);
      check<T>({rows, 11, 8, 16}, 8, GetParam().device);
      check<T>({rows, 3, 16, 1}, 0, GetParam().device);
      check<T>({rows, 13, 16, 5}, 3, GetParam().device);
    }
    check<T>({300, 5, 9, 3}, 0, GetParam().device);
    // The most that a cluster has, the fewest and the most that a grid has, and one row more.
    check<T>({4096, 16, 16, 3}, 0, GetParam().device);
    check<T>({4097, 16, 16, 3}, 0, GetParam().device);
    check<T>({19717, 16, 16, 3}, 0, GetParam().device);
    check<T>({10000, 13, 10, 5}, 3, GetParam().device);
    check<T>({32768, 16, 16, 7}, 0, GetParam().device);
    check<T>({32769, 16, 16, 7}, 0, GetParam().device);
    check<T>({300, 17, 16, 7}, 0, GetParam().device);
  });
}

/// Without this the other tests would compare calls that never wait.
TEST_P(ChainedOps, are_those_of_few_columns_and_rows) {
  const Device device = GetParam().device;
  if (device.kind == DeviceKind::cpu) GTEST_SKIP() << "runs on GPUs, where calls wait";
  if (device_traits(device).compute_capability != 90) {
    GTEST_SKIP() << "runs on GPUs of 9.0, which have clusters of 16 blocks";
  }
  const auto waits = [&](std::int64_t rows, std::int64_t in, std::int64_t out) {
    DeviceMatrix<float> x(rows, in, device, 0), weight(out, in, device, 0);
    DeviceMatrix<float> y(rows, out, device, 0);
    return dense_ops(device).chains(LinearCall{x, weight, {}, y});
  };
  for (const std::int64_t rows : {1, 300, 4096}) EXPECT_TRUE(waits(rows, 16, 16)) << rows;
  // Any processor holds one of the 128 blocks of a grid; whether it holds two depends on how many
  // registers the compiler gives them.
  if (device_traits(device).processors >= 128) {
    for (const std::int64_t rows : {4097, 32768}) EXPECT_TRUE(waits(rows, 16, 16)) << rows;
  }
  EXPECT_TRUE(waits(300, 3, 1));
  EXPECT_FALSE(waits(32769, 16, 16));
  EXPECT_FALSE(waits(300, 17, 16));
  EXPECT_FALSE(waits(300, 16, 17));
}

TEST_P(ChainedOps, run_when_their_chain_does) {
  const Device device = GetParam().device;
  if (GetParam().precision != Precision::fp32)
    GTEST_SKIP() << "runs in fp32, and is the same for all";
  const DenseWorkspace* const workspace = test::workspace_on(device);
  DeviceMatrix<float> x(input<float>(100, 16, 1), device, 0);
  DeviceMatrix<float> w(input<float>(16, 16, 2), device, 0);
  DeviceMatrix<float> y(100, 16, device, 0), expected(100, 16, device, 0);
  linear(x, w, {}, expected, device, {}, workspace);
  {
    CallChain chain;
    CallChain* const joined = &chain;
    linear(x, w, {}, y, device, {}, workspace, Precision::fp32, {}, joined);
    chain.run();
  }
  EXPECT_LT(test::largest_difference(y.values(), test::to_double(expected.values())), 1e-4);
}

TEST_P(ChainedOps, normalise_in_place) {
  with_chained_type(GetParam(), [&]<class T>() {
    for (const std::int64_t rows : {1, 65, 4096, 20000}) {
      for (const bool training : {true, false}) {
        // One row has no variance to learn from.
        if (training && rows == 1) continue;
        SCOPED_TRACE(::testing::Message() << rows << (training ? "" : ", evaluation"));
        const ChainWidths widths{rows, 16, 16, 7};
        const Matrix<double> got =
            ChainScene<T>(widths, GetParam().device, 0).run_in_place(training);
        const Matrix<double> expected =
            ChainScene<Expected<T>>(widths, Device{}, 0).run_in_place(training);
        const double tolerance = bytes_per_element(PrecisionOf<T>::value) > 2 ? 5e-5 : 3e-2;
        EXPECT_LT(test::largest_difference(got, expected), tolerance * largest(expected));
      }
    }
  });
}

/// A gradient reads what another launch found of its batch norm and wrote. Of 16 bits that is
/// rounded, where steps of the same launch have all digits at hand.
TEST_P(ChainedOps, do_not_depend_on_where_a_chain_is_cut) {
  with_chained_type(GetParam(), [&]<class T>() {
    for (const std::int64_t rows : {300, 2708, 19717}) {
      SCOPED_TRACE(rows);
      const ChainWidths widths{rows, 13, 16, 7};
      const auto whole = ChainScene<T>(widths, GetParam().device, 0).run(true, true);
      const auto cut = ChainScene<T>(widths, GetParam().device, 0).run(true, true, true);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if constexpr (std::is_same_v<T, float>) {
          EXPECT_TRUE(test::same_bits(whole[i].values, cut[i].values)) << whole[i].name;
        } else {
          const double scale = std::max(largest(whole[i].values), 1e-3);
          for (std::int64_t j = 0; j < whole[i].values.size(); ++j) {
            ASSERT_NEAR(cut[i].values.data()[j], whole[i].values.data()[j], 3e-2 * scale)
                << whole[i].name << ", element " << j;
          }
        }
      }
    }
  });
}

/// What one launch has no room for goes into the next.
TEST_P(ChainedOps, may_have_more_matrices_than_a_launch) {
  const Device device = GetParam().device;
  if (GetParam().precision != Precision::fp32)
    GTEST_SKIP() << "runs in fp32, and is the same for all";
  const DenseWorkspace* const workspace = test::workspace_on(device);
  constexpr std::uint64_t layers = 7;
  DeviceMatrix<float> w(input<float>(16, 16, 100), device, 0);
  const auto run = [&](bool holds) {
    std::deque<DeviceMatrix<float>> x, grad_y, grad_x, grad_w;
    for (std::uint64_t i = 0; i < layers; ++i) {
      x.emplace_back(input<float>(4096, 16, 2 * i), device, 0);
      grad_y.emplace_back(input<float>(4096, 16, 2 * i + 1), device, 0);
      grad_x.emplace_back(4096, 16, device, 0), grad_w.emplace_back(16, 16, device, 0);
    }
    CallChain chain;
    CallChain* const joined = holds ? &chain : nullptr;
    for (std::uint64_t i = 0; i < layers; ++i) {
      linear_backward(x[i], w, grad_y[i], grad_w[i], {}, grad_x[i], device, {}, workspace,
                      Precision::fp32, {}, joined);
    }
    chain.run();
    std::vector<Matrix<float>> results;
    for (std::uint64_t i = 0; i < layers; ++i) {
      results.push_back(grad_x[i].values()), results.push_back(grad_w[i].values());
    }
    return results;
  };
  const auto together = run(true), alone = run(false);
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_TRUE(test::same_bits(together[i], alone[i])) << i;
  }
}

/// Columns far from 0 keep their digits.
TEST_P(ChainedOps, normalise_columns_far_from_0) {
  const Device device = GetParam().device;
  if (GetParam().precision != Precision::fp32)
    GTEST_SKIP() << "runs in fp32, as 16 bits cannot hold such columns";
  const DenseWorkspace* const workspace = test::workspace_on(device);
  for (const std::int64_t rows : {700, 2708, 20000}) {
    SCOPED_TRACE(rows);
    Matrix<float> far = input<float>(rows, 16, 1);
    for (std::int64_t i = 0; i < far.size(); ++i) far.data()[i] += 3000;
    for (std::int64_t row = 0; row < rows; ++row) far(row, 5) = 1e6f / 3;
    DeviceMatrix<float> x(far, device, 0), y(rows, 16, device, 0), z(rows, 16, device, 0);
    DeviceMatrix<float> identity(16, 16, device, 0);
    Matrix<float> ones(16, 16, 0.0f);
    for (std::int64_t i = 0; i < 16; ++i) ones(i, i) = 1;
    identity.set(ones);
    DeviceMatrix<float> mean(1, 16, device, 0), deviation(1, 16, device, 0);
    {
      CallChain chain;
      CallChain* const joined = &chain;
      batch_norm(x, {}, {}, {1e-5, 0.1, true}, {}, y, mean, deviation, device, {}, workspace, {},
                 {}, {}, joined);
      linear(y, identity, {}, z, device, {}, workspace, Precision::fp32, {}, joined);
      chain.run();
    }
    const Matrix<float> got = z.values();
    for (std::int64_t col = 0; col < 16; ++col) {
      double sum = 0, squares = 0;
      for (std::int64_t row = 0; row < rows; ++row) sum += static_cast<double>(far(row, col));
      const double middle = sum / static_cast<double>(rows);
      for (std::int64_t row = 0; row < rows; ++row) {
        const double apart = static_cast<double>(far(row, col)) - middle;
        squares += apart * apart;
      }
      const double factor = 1 / std::sqrt(squares / static_cast<double>(rows) + 1e-5);
      ASSERT_NEAR(static_cast<double>(deviation.values()(0, col)), factor, 1e-5 * factor) << col;
      for (std::int64_t row = 0; row < rows; row += 17) {
        const double expected = (static_cast<double>(far(row, col)) - middle) * factor;
        ASSERT_NEAR(static_cast<double>(got(row, col)), expected, 1e-4) << row << ", " << col;
      }
    }
  }
}

/// There are two places for what blocks tell each other: from the third meeting of a launch on they
/// are taken again. Every batch norm has other means and variances.
TEST_P(ChainedOps, meet_more_often_than_there_are_places) {
  const Device device = GetParam().device;
  if (device.kind == DeviceKind::cpu) GTEST_SKIP() << "runs on GPUs, where calls wait";
  if (GetParam().precision != Precision::fp32)
    GTEST_SKIP() << "runs in fp32, and is the same for all";
  const DenseWorkspace* const workspace = test::workspace_on(device);
  ActivationOptions relu;
  relu.activation = Activation::relu;
  constexpr std::uint64_t norms = 7;
  for (const std::int64_t rows : {50, 300, 4096, 20000}) {
    SCOPED_TRACE(rows);
    const auto run = [&](bool holds) {
      std::deque<DeviceMatrix<float>> x, gamma, beta, mean, deviation;
      x.emplace_back(input<float>(rows, 16, 1), device, 0);
      for (std::uint64_t i = 0; i < norms; ++i) {
        x.emplace_back(rows, 16, device, 0);
        gamma.emplace_back(input<float>(1, 16, 2 + 2 * i), device, 0);
        beta.emplace_back(input<float>(1, 16, 3 + 2 * i), device, 0);
        mean.emplace_back(1, 16, device, 0), deviation.emplace_back(1, 16, device, 0);
      }
      CallChain chain;
      CallChain* const joined = holds ? &chain : nullptr;
      for (std::uint64_t i = 0; i < norms; ++i) {
        batch_norm(x[i], gamma[i], beta[i], {1e-2, 0.1, true}, {}, x[i + 1], mean[i], deviation[i],
                   device, {}, workspace, relu, {}, {}, joined);
      }
      chain.run();
      std::vector<Matrix<float>> results;
      for (std::uint64_t i = 0; i < norms; ++i) {
        results.push_back(x[i + 1].values());
        results.push_back(mean[i].values()), results.push_back(deviation[i].values());
      }
      return results;
    };
    const auto alone = run(false), together = run(true);
    for (std::size_t i = 0; i < together.size(); ++i) {
      const Matrix<double> expected = test::to_double(alone[i]);
      EXPECT_LT(test::largest_difference(together[i], expected),
                1e-4 * std::max(1.0, largest(expected)))
          << i;
    }
    for (int again = 0; again < 10; ++again) {
      const auto repeated = run(true);
      for (std::size_t i = 0; i < together.size(); ++i) {
        ASSERT_TRUE(test::same_bits(repeated[i], together[i])) << i;
      }
    }
  }
}

/// What does not fit together runs one after the other all the same.
TEST_P(ChainedOps, that_need_more_than_rows_of_each_other_wait) {
  const Device device = GetParam().device;
  if (GetParam().precision != Precision::fp32)
    GTEST_SKIP() << "runs in fp32, and is the same for all";
  const DenseWorkspace* const workspace = test::workspace_on(device);
  DeviceMatrix<float> x(input<float>(1000, 16, 1), device, 0),
      w(input<float>(16, 16, 2), device, 0);
  const auto run = [&](bool holds) {
    DeviceMatrix<float> square(16, 16, device, 0), y(1000, 16, device, 0);
    CallChain chain;
    CallChain* const joined = holds ? &chain : nullptr;
    linear_backward(x, {}, x, square, {}, {}, device, {}, workspace, Precision::fp32, {}, joined);
    linear(x, square, {}, y, device, {}, workspace, Precision::fp32, {}, joined);
    chain.run();
    return y.values();
  };
  EXPECT_TRUE(test::same_bits(run(true), run(false)));
}

/// Columns of one matrix as another: copies of both would not know of each other.
TEST_P(ChainedOps, do_not_take_parts_of_a_matrix_for_another) {
  const Device device = GetParam().device;
  if (GetParam().precision != Precision::fp32)
    GTEST_SKIP() << "runs in fp32, and is the same for all";
  const DenseWorkspace* const workspace = test::workspace_on(device);
  DeviceMatrix<float> x(input<float>(1000, 16, 1), device, 0), w(input<float>(7, 16, 2), device, 0);
  const MatrixView<float> all = x.view();
  const MatrixView<const float> first{all.data, all.rows, 7, all.stride, all.device};
  const auto run = [&](bool holds) {
    DeviceMatrix<float> square(7, 16, device, 0), y(1000, 7, device, 0);
    CallChain chain;
    CallChain* const joined = holds ? &chain : nullptr;
    linear(x, w, {}, y, device, {}, workspace, Precision::fp32, {}, joined);
    linear_backward(x, {}, first, square, {}, {}, device, {}, workspace, Precision::fp32, {},
                    joined);
    linear(x, square, {}, y, device, {}, workspace, Precision::fp32, {}, joined);
    chain.run();
    return y.values();
  };
  const Matrix<float> got = run(true);
  const Matrix<double> alone = test::to_double(run(false));
  EXPECT_LT(test::largest_difference(got, alone), 1e-4 * largest(alone));
}

INSTANTIATE_TEST_SUITE_P(Backends, ChainedOps, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
