// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/sddmm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Graph& small_graph() {
  static const Graph graph = testing::random_graph(5, 7, 20, 1, false);
  return graph;
}

SddmmOptions options_of(EdgeFunction function, std::int64_t features, std::int64_t heads) {
  SddmmOptions options;
  options.function = function;
  options.features = features;
  options.heads = heads;
  return options;
}

SddmmOptions backward_options(EdgeFunction function, std::int64_t features, std::int64_t heads) {
  SddmmOptions options = options_of(function, features, heads);
  options.backward = true;
  return options;
}

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return {};
}

TEST(Sddmm, RejectsHeadsThatDoNotShareTheFeatures) {
  const auto plan = [](EdgeFunction function, std::int64_t features, std::int64_t heads) {
    return [=] { plan_sddmm(small_graph(), options_of(function, features, heads)); };
  };
  EXPECT_THAT(message_of(plan(EdgeFunction::dot, 7, 2)), AllOf(HasSubstr("7"), HasSubstr("2")));
  EXPECT_THAT(message_of(plan(EdgeFunction::dot, 4, 0)), HasSubstr("0 heads"));
  EXPECT_THAT(message_of(plan(EdgeFunction::add, 4, 2)), HasSubstr("one feature per head"));
}

TEST(Sddmm, NamesTheOperandAndBothShapes) {
  const SddmmPlan plan = plan_sddmm(small_graph(), backward_options(EdgeFunction::dot, 4, 2));
  const EdgeOffset num_edges = small_graph().num_edges();
  Matrix<float> u(5, 4, 1.0f);
  Matrix<float> v(7, 4, 1.0f);
  Matrix<float> edges(num_edges, 2);
  EXPECT_THAT(message_of([&] { run(plan, v, v, edges); }),
              AllOf(HasSubstr("u is 7 x 4"), HasSubstr("5 x 4")));
  EXPECT_THAT(message_of([&] { run(plan, u, u, edges); }),
              AllOf(HasSubstr("v is 5 x 4"), HasSubstr("7 x 4")));
  EXPECT_THAT(message_of([&] { run(plan, u, v, u); }), HasSubstr("edges is 5 x 4"));
  EXPECT_THAT(message_of([&] { run_backward(plan, u, v, edges, v, {}); }),
              HasSubstr("grad_u is 7 x 4"));
}

TEST(Sddmm, ComputesOnlyTheGradientsAskedFor) {
  const SddmmPlan plan = plan_sddmm(small_graph(), backward_options(EdgeFunction::dot, 4, 2));
  const Matrix<float> v(7, 4, 1.0f);
  const Matrix<float> grad_edges(small_graph().num_edges(), 2, 1.0f);
  Matrix<float> grad_u(5, 4, -1.0f);
  run_backward(plan, {}, v, grad_edges, grad_u, {});
  for (VertexId row = 0; row < 5; ++row) {
    EXPECT_EQ(grad_u(row, 0), static_cast<float>(small_graph().degree(row)));
  }
}

}  // namespace
}  // namespace tessera::ops
