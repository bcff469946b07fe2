// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "support/dense_workspace.hpp"
#include "support/gradient_check.hpp"
#include "support/random_matrix.hpp"
#include "tessera/core/device.hpp"
#include "tessera/nn/propagate.hpp"
#include "tessera/ops/elementwise.hpp"

/// A product that finishes its rows itself against the product and what follows, one after the
/// other: the same results, and the same gradients from what each of them keeps.
namespace tessera::nn {
namespace {

Tensor random_tensor(std::int64_t rows, std::int64_t width, std::uint64_t seed,
                     const Placement& placement) {
  Tensor tensor(placement);
  tensor.upload(
      testing::random_matrix<float>(rows, width, testing::NumberKind::normal, seed).view());
  return tensor;
}

Matrix<float> on_host(const Tensor& tensor) {
  Matrix<float> copy(tensor.rows(), tensor.cols());
  synchronise(tensor.device());
  copy_bytes(copy.data(), tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes()),
             tensor.device());
  synchronise(tensor.device());
  return copy;
}

void expect_same(const Tensor& a, const Tensor& b, const char* what) {
  const Matrix<float> first = on_host(a), second = on_host(b);
  ASSERT_EQ(first.rows(), second.rows());
  for (std::int64_t i = 0; i < first.size(); ++i) {
    const float expected = second.data()[i];
    ASSERT_NEAR(first.data()[i], expected, 2e-5 * (1 + std::abs(expected))) << what << " " << i;
  }
}

void compare(const EpilogueOptions& options, bool training, bool with_residual, std::int64_t width,
             Device device) {
  const Placement placement{Precision::fp32, &default_memory(device)};
  Topology topology(test::weighted_graph(70, 70, 400, 3), device);
  Context context;
  context.graph = &topology;
  context.training = training;
  context.seed = 9;
  context.step = 4;
  context.workspace = test::workspace_on(device);
  Epilogue own(options, width, placement, Initial::uniform(0.5));
  Epilogue after(options, width, placement, Initial::uniform(0.5));
  if (options.bias) {
    own.bias->reset(Random(5));
    after.bias->reset(Random(5));
  }
  const Tensor x = random_tensor(70, width, 1, placement);
  const Tensor residual = random_tensor(70, width, 2, placement);
  const Propagation propagation{"test", gcn_adjacency};
  ASSERT_TRUE(can_finish(own, x, context));
  Tensor together(placement), apart(placement);
  propagate_and_finish(propagation, x, with_residual ? &residual : nullptr, own, 7, together,
                       context);
  propagate(propagation, x, apart, context);
  if (with_residual) ops::add_scaled(1, residual, 1, apart, device, {});
  const Tensor& finished = after.forward_in_place(apart, 7, context);
  expect_same(together, finished, "result");
  Tensor grad = random_tensor(70, width, 4, placement),
         other_grad = random_tensor(70, width, 4, placement);
  own.backward(grad, 7, context);
  after.backward(other_grad, 7, context);
  expect_same(grad, other_grad, "gradient");
  if (options.bias) expect_same(own.bias->gradient, after.bias->gradient, "bias gradient");
}

void compare_all(Device device) {
  using ops::Activation;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::leaky_relu}) {
    for (const double dropout : {0.0, 0.5}) {
      for (const bool training : {false, true}) {
        for (const bool residual : {false, true}) {
          SCOPED_TRACE(::testing::Message() << to_string(activation) << ", dropout " << dropout
                                            << (training ? ", training" : ""));
          for (const std::int64_t width : {1, 7, 16}) {
            compare({true, activation, 0.1, 1, dropout}, training, residual, width, device);
          }
        }
      }
    }
  }
}

TEST(FinishedProduct, is_the_product_and_what_follows) { compare_all({}); }

TEST(FinishedProduct, is_the_same_on_device_OnDevice) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  compare_all({DeviceKind::cuda, 0});
}

TEST(FinishedProduct, is_not_tried_where_backward_needs_what_lies_between) {
  Context context;
  context.training = true;
  const Tensor x(3, 16);
  const Tensor odd(3, 7), large_odd(40000, 7), large(40000, 16);
  const Epilogue elu({true, ops::Activation::elu}, 16, {});
  const Epilogue relu({true, ops::Activation::relu}, 16, {});
  const Epilogue nothing({false}, 16, {});
  EXPECT_FALSE(can_finish(elu, x, context));
  EXPECT_TRUE(can_finish(relu, x, context));
  // Rows that do not fill whole vectors are only worth it where the product is small.
  EXPECT_TRUE(can_finish(relu, odd, context));
  EXPECT_FALSE(can_finish(elu, odd, context));
  EXPECT_FALSE(can_finish(relu, large_odd, context));
  EXPECT_TRUE(can_finish(relu, large, context));
  EXPECT_FALSE(can_finish(nothing, x, context));
  context.training = false;
  EXPECT_TRUE(can_finish(elu, x, context));
}

}  // namespace
}  // namespace tessera::nn
