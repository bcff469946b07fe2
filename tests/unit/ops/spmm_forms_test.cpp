// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device_traits.hpp"
#include "ops/spmm/cuda/scatter/cost.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/spmm.hpp"

/// Which form a plan on edges in no order has.
namespace tessera::ops {
namespace {

class SpmmForms : public ::testing::Test {
 protected:
  SpmmForms() : edges_(testing::random_coo(30, 30, 90, 1)) {
    options_.features = 8;
    options_.epochs = 1;
  }

  Coo coo() const { return borrow_coo(30, 30, {edges_.rows, edges_.cols}); }
  bool scatters(const SpmmOptions& options) const {
    return plan_spmm(coo(), options).kernel().name.ends_with("/scatter");
  }

  testing::Coo edges_;
  SpmmOptions options_;
};

TEST_F(SpmmForms, ADefaultPlanNeverScatters) {
  EXPECT_FALSE(scatters(options_));
  options_.backward = true;
  const SpmmPlan plan = plan_spmm(coo(), options_);
  const Explanation explanation = plan.explain();
  const Explanation* const form = find_child(explanation, "edges in no order");
  ASSERT_NE(form, nullptr);
  EXPECT_EQ(form->summary, "rows are made of the edges first: scattered sums depend on timing");
  EXPECT_EQ(plan.graph().num_edges(), 90);
}

TEST_F(SpmmForms, APlanForOneEpochScatters) {
  options_.allow_nondeterministic = true;
  EXPECT_TRUE(scatters(options_));
  options_.strict = true;
  EXPECT_FALSE(scatters(options_));
  options_.strict = false;
  options_.epochs = 1000000;
  EXPECT_FALSE(scatters(options_));
}

TEST_F(SpmmForms, RowsThatAreThereCostNothing) {
  options_.allow_nondeterministic = true;
  const Coo known = coo();
  known.graph();
  EXPECT_EQ(plan_spmm(known, options_).kernel().name, "spmm/cpu/rows");
}

TEST_F(SpmmForms, NamesDecide) {
  options_.kernel = "spmm/cpu/scatter";
  EXPECT_TRUE(scatters(options_));
  options_.kernel = "spmm/cpu/rows";
  options_.allow_nondeterministic = true;
  EXPECT_FALSE(scatters(options_));
  options_.kernel = "spmm/cpu/scatter";
  options_.reduction = Reduction::max;
  testing::expect_error(ErrorCode::unsupported, {"spmm/cpu/scatter cannot do it: max and min"},
                        [&] { plan_spmm(coo(), options_); });
}

TEST_F(SpmmForms, PatternsAskForNoneInParticular) {
  for (const char* const pattern : {"spmm/cpu/*", "*"}) {
    options_.kernel = pattern;
    EXPECT_FALSE(scatters(options_)) << pattern;
  }
}

TEST_F(SpmmForms, ANamedKernelKeepsToTheOtherOptions) {
  options_.kernel = "spmm/cpu/scatter";
  options_.strict = true;
  testing::expect_error(ErrorCode::unsupported, {"cannot do it: not as exact as sums in fp32"},
                        [&] { plan_spmm(coo(), options_); });
  options_.strict = false;
  options_.backward = true;
  options_.backward_kernel = "spmm/cpu/rows";
  testing::expect_error(ErrorCode::unsupported,
                        {"spmm/cpu/scatter forward and spmm/cpu/rows backward"},
                        [&] { plan_spmm(coo(), options_); });
  options_.backward_kernel = options_.kernel;
  EXPECT_TRUE(scatters(options_));
}

TEST_F(SpmmForms, WinnersOfEdgesInNoOrderHaveNoGradientOfEdgeValues) {
  options_.reduction = Reduction::max;
  options_.backward = true;
  const testing::Coo once = testing::without_duplicates(edges_);
  const Coo edges = borrow_coo(30, 30, {once.rows, once.cols});
  const SpmmPlan plan = plan_spmm(edges, options_);
  const Matrix<float> x = test::normal_matrix<float>(30, 8, 2);
  const Matrix<float> grad_y = test::normal_matrix<float>(30, 8, 3);
  Matrix<float> y(30, 8), grad_x(30, 8), grad_values(edges.num_edges(), 1);
  Matrix<std::int32_t> winners(30, 8);
  run(plan, {x}, {y, winners});
  SpmmGradInputs inputs{grad_y};
  inputs.x = x;
  inputs.winners = winners;
  run_backward(plan, inputs, {grad_x});
  testing::expect_error(ErrorCode::unsupported,
                        {"the gradient of edge values of a max over edges in no order"}, [&] {
                          run_backward(plan, inputs, {grad_x, grad_values});
                        });
}

TEST_F(SpmmForms, OtherReductionsGoByRows) {
  options_.allow_nondeterministic = true;
  options_.reduction = Reduction::max;
  const testing::Coo once = testing::without_duplicates(edges_);
  const Coo edges = borrow_coo(30, 30, {once.rows, once.cols});
  const SpmmPlan plan = plan_spmm(edges, options_);
  EXPECT_EQ(plan.kernel().name, "spmm/cpu/rows");
  const Matrix<float> x = test::normal_matrix<float>(30, 8, 2);
  Matrix<float> y(30, 8), expected(30, 8);
  run(plan, {x}, {y});
  run(plan_spmm(edges.graph(), options_), {x}, {expected});
  EXPECT_TRUE(test::same_bits(y, expected));
}

TEST_F(SpmmForms, SayWhatIsWrong) {
  options_.heads = 2;
  testing::expect_error(ErrorCode::unsupported, {"several heads on edges in no order"},
                        [&] { plan_spmm(coo(), options_); });
  options_.heads = 1;
  const SpmmPlan plan = plan_spmm(coo(), options_);
  const Matrix<float> x(30, 8, 1.0f), values(91, 1, 1.0f);
  Matrix<float> y(30, 8);
  testing::expect_error(ErrorCode::invalid_argument, {"edge_values"}, [&] {
    run(plan, {x, values}, {y});
  });
}

/// The model as the paper found it: low degrees and few uses for scatter, the rest for rows.
TEST(SpmmFormCosts, FollowDegreeWidthAndUse) {
  const auto scatters = [](VertexId vertices, int degree, std::int64_t features, double epochs) {
    const testing::Coo edges = testing::random_coo(vertices, vertices, vertices * degree, 3);
    SpmmProblem problem;
    problem.edges = borrow_coo(vertices, vertices, {edges.rows, edges.cols});
    problem.features = features;
    const FormCosts costs = predict_forms_on(h200_traits(), problem, 2);
    return costs.scatter_us < costs.reduce_us + costs.conversion_us / epochs;
  };
  EXPECT_TRUE(scatters(3000, 4, 16, 1));
  EXPECT_FALSE(scatters(3000, 4, 16, 100000));
  EXPECT_TRUE(scatters(20000, 5, 64, 1));
  EXPECT_FALSE(scatters(5000, 400, 512, 10));
}

}  // namespace
}  // namespace tessera::ops
