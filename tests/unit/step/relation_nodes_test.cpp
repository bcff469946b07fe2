// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "support/gradient_check.hpp"
#include "tessera/graph/relational.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/step/relation_nodes.hpp"

/// The adjoint rules of nodes over relations, against differences.
namespace tessera {
namespace {

using test::double_placement;
using test::GradientCheck;
using test::normal_tensor;

/// x W_g, with a learned W and a penalty on x.
class Grouped final : public nn::Layer {
 public:
  Grouped(std::int64_t groups, std::int64_t blocks, std::int64_t height, std::int64_t width)
      : Layer(double_placement()),
        blocks_(blocks),
        in_(blocks * height),
        out_(blocks * width),
        weight_("weight", groups, blocks * height * width, nn::Initial::uniform(1),
                double_placement()) {
    register_parameter(weight_);
  }
  std::int64_t input_width() const override { return in_; }
  std::int64_t output_width() const override { return out_; }
  std::string describe() const override { return "Grouped"; }

 private:
  step::Value build(const nn::StepInputs& in) override {
    return step::grouped_linear(in.program, in.sources, in.parameter(weight_), {0, blocks_});
  }

  std::int64_t blocks_, in_, out_;
  nn::Parameter weight_;
};

/// Rows 0, 2 and 3 belong to group 2, row 1 to group 0, none to group 1.
Graph groups() {
  return Graph(4, 3, std::vector<EdgeOffset>{0, 1, 2, 3, 4}, std::vector<VertexId>{2, 0, 2, 2});
}

TEST(RelationNodes, GradientsOfGroupedProductsMatchDifferences) {
  for (const auto& [blocks, height, width] :
       {std::array<std::int64_t, 3>{1, 3, 4}, {2, 3, 2}, {5, 1, 1}, {1, 6, 1}}) {
    SCOPED_TRACE(::testing::Message() << blocks << " blocks of " << height << " x " << width);
    Grouped layer(3, blocks, height, width);
    layer.reset_parameters(4);
    step::Topology topology(groups());
    step::Context context;
    context.graph = &topology;
    context.training = true;
    step::Tensor x = normal_tensor(4, blocks * height, 6);
    GradientCheck check(layer, context,
                        [&]() -> const step::Tensor& { return layer.forward(x, context); });
    const step::Tensor* const grad_x = check.backward();
    ASSERT_NE(grad_x, nullptr);
    check.expect_parameter_gradients();
    check.expect_gradient("x", x, *grad_x);
  }
}

/// Passes its parameter on, with a penalty.
class Kept final : public nn::Layer {
 public:
  explicit Kept(double factor)
      : Layer(double_placement()),
        factor_(factor),
        weight_("weight", 3, 4, nn::Initial::uniform(1), double_placement()) {
    register_parameter(weight_);
  }
  std::int64_t input_width() const override { return 1; }
  std::int64_t output_width() const override { return 4; }
  std::string describe() const override { return "Kept"; }

 private:
  step::Value build(const nn::StepInputs& in) override {
    return step::penalised(in.program, in.parameter(weight_), factor_);
  }

  double factor_;
  nn::Parameter weight_;
};

TEST(RelationNodes, APenaltyAddsTheGradientOfItsMeanSquare) {
  Kept layer(0.3);
  layer.reset_parameters(2);
  step::Topology topology(groups());
  step::Context context;
  context.graph = &topology;
  context.training = true;
  const step::Tensor input = normal_tensor(3, 1, 1);
  const step::Tensor& y = layer.forward(input, context);
  const nn::Parameter& weight = *layer.parameters()[0].parameter;
  step::Tensor slope = normal_tensor(3, 4, 9);
  const step::Tensor before = normal_tensor(3, 4, 9);
  layer.backward(slope, context);
  for (std::int64_t k = 0; k < 12; ++k) {
    const double value = weight.value.as<double>().data[k];
    EXPECT_EQ(y.as<double>().data[k], value);
    EXPECT_NEAR(weight.gradient.as<double>().data[k],
                before.as<double>().data[k] + 2 * 0.3 / 12 * value, 1e-14);
  }
}

}  // namespace
}  // namespace tessera
