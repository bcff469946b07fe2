// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/rows/row_schedule.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/normalise.hpp"

namespace tessera::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Graph& small_graph() {
  static const Graph graph = testing::random_graph(5, 7, 20, 1, false);
  return graph;
}

SpmmOptions options_of(Reduction reduction = Reduction::sum) {
  SpmmOptions options;
  options.features = 3;
  options.reduction = reduction;
  return options;
}

SpmmOptions backward_options(Reduction reduction = Reduction::sum) {
  SpmmOptions options = options_of(reduction);
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

TEST(Spmm, NamesTheOperandAndBothShapes) {
  const SpmmPlan plan = plan_spmm(small_graph(), options_of());
  Matrix<float> x(7, 3, 1.0f);
  Matrix<float> y(5, 3);
  Matrix<float> wrong(6, 3, 1.0f);
  Matrix<double> other_type(7, 3, 1.0);
  EXPECT_THAT(message_of([&] { run(plan, {wrong}, {y}); }),
              AllOf(HasSubstr("x is 6 x 3"), HasSubstr("7 x 3")));
  EXPECT_THAT(message_of([&] { run(plan, {x}, {wrong}); }),
              AllOf(HasSubstr("y is 6 x 3"), HasSubstr("5 x 3")));
  EXPECT_THAT(message_of([&] { run(plan, {other_type}, {y}); }),
              AllOf(HasSubstr("fp64"), HasSubstr("fp32")));
  EXPECT_THAT(message_of([&] { run(plan, {x, wrong}, {y}); }), HasSubstr("edge_values"));
  EXPECT_THAT(message_of([&] { run(plan, {MatrixView<float>(nullptr, 7, 3)}, {y}); }),
              HasSubstr("no memory"));
  EXPECT_THAT(message_of([&] { run(plan, {MatrixView<float>(x.data(), 7, 3, 2)}, {y}); }),
              HasSubstr("stride"));
}

TEST(Spmm, RejectsAnOutputThatIsAnInput) {
  const Graph square = testing::random_graph(5, 5, 12, 2, false);
  Matrix<float> x(5, 3, 1.0f);
  const SpmmPlan plan = plan_spmm(square, options_of());
  EXPECT_THAT(message_of([&] { run(plan, {x}, {x}); }), HasSubstr("shares memory"));
}

TEST(Spmm, HasWinnersForMaxAndMinOnly) {
  Matrix<float> x(7, 3, 1.0f);
  Matrix<float> y(5, 3);
  Matrix<VertexId> winners(5, 3);
  Matrix<VertexId> wrong(5, 2);
  EXPECT_THAT(message_of([&] {
                run(plan_spmm(small_graph(), options_of()), {x}, {y, winners.view()});
              }),
              HasSubstr("no winners"));
  EXPECT_THAT(message_of([&] {
                run(plan_spmm(small_graph(), options_of(Reduction::max)), {x}, {y, wrong.view()});
              }),
              AllOf(HasSubstr("winners is 5 x 2"), HasSubstr("5 x 3")));
  EXPECT_THAT(message_of([&] {
                run_backward(plan_spmm(small_graph(), backward_options(Reduction::max)), {y}, {x});
              }),
              HasSubstr("winners is 0 x 0"));
}

TEST(Spmm, HasNoGradientOfEdgeValuesThatWasNotPlanned) {
  SpmmOptions options = backward_options();
  options.edge_value_gradient = false;
  const SpmmPlan plan = plan_spmm(small_graph(), options);
  Matrix<float> x(7, 3, 1.0f), grad_x(7, 3);
  Matrix<float> grad_y(5, 3, 1.0f);
  Matrix<float> grad_values(small_graph().num_edges(), 1);
  run_backward(plan, {grad_y}, {grad_x});
  const SpmmPlan whole = plan_spmm(small_graph(), backward_options());
  Matrix<float> expected(7, 3);
  run_backward(whole, {grad_y}, {expected});
  EXPECT_TRUE(test::same_bits(grad_x, expected));
  EXPECT_THAT(message_of([&] {
                run_backward(plan, {grad_y, x}, {grad_x, grad_values});
              }),
              HasSubstr("no gradient of edge values"));
}

TEST(Spmm, TakesNoEdgeValuesThatWereNotPlanned) {
  SpmmOptions options = backward_options();
  options.edge_values_at_run = false;
  Matrix<float> x(7, 3, 1.0f), y(5, 3), grad_x(7, 3);
  Matrix<float> values(small_graph().num_edges(), 1, 2.0f);
  const SpmmPlan plan = plan_spmm(small_graph(), options);
  run(plan, {x}, {y});
  EXPECT_THAT(message_of([&] { run(plan, {x, values}, {y}); }), HasSubstr("no edge values"));
  EXPECT_THAT(message_of([&] {
                run_backward(plan, {y, {}, values, {}}, {grad_x});
              }),
              HasSubstr("no edge values"));
}

TEST(Spmm, RejectsWhatNoKernelCanDo) {
  SpmmOptions options = options_of();
  options.features = -1;
  EXPECT_THAT(message_of([&] { plan_spmm(small_graph(), options); }), HasSubstr("-1"));
  options = options_of();
  options.precision = Precision::fp16;
  try {
    plan_spmm(small_graph(), options);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("fp16"));
  }
}

TEST(Spmm, ParsesReductions) {
  for (const Reduction reduction :
       {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min}) {
    EXPECT_EQ(parse_reduction(to_string(reduction)), reduction);
  }
  EXPECT_THAT(message_of([] { parse_reduction("median"); }), HasSubstr("median"));
}

TEST(Spmm, ExplainsItsChoice) {
  const Explanation explanation = plan_spmm(small_graph(), options_of()).explain();
  for (const KernelInfo& info : kernels("spmm")) {
    EXPECT_THAT(to_string(explanation), HasSubstr(info.name));
  }
  EXPECT_THAT(to_string(explanation), HasSubstr("chosen"));
}

TEST(Spmm, AveragesWhatMeanNormalisedGraphsSum) {
  const Matrix<double> x = test::normal_matrix<double>(7, 3, 5);
  Matrix<double> mean(5, 3);
  Matrix<double> sum(5, 3);
  SpmmOptions options = options_of(Reduction::mean);
  options.precision = Precision::fp64;
  run(plan_spmm(small_graph(), options), {x}, {mean});
  options.reduction = Reduction::sum;
  run(plan_spmm(mean_normalised(small_graph()), options), {x}, {sum});
  for (std::int64_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean.data()[i], sum.data()[i], 1e-6);
}

TEST(RowSchedule, CoversEveryEdgeOnceWithinItsLimits) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    const Graph& graph = named.graph;
    const RowSchedule schedule = make_row_schedule(graph.num_rows(), graph.row_offsets().data());
    VertexId row = 0;
    EdgeOffset edge = 0;
    std::int64_t slots = 0;
    for (const RowRange& range : schedule.ranges) {
      EXPECT_EQ(range.edge_begin, edge);
      EXPECT_LE(range.edge_end - range.edge_begin, max_edges_per_range);
      EXPECT_LE(range.row_begin, row);
      EXPECT_LT(range.row_begin, range.row_end);
      if (range.slot >= 0) {
        EXPECT_EQ(range.slot, slots++);
        EXPECT_EQ(range.row_end, range.row_begin + 1);
      } else {
        EXPECT_EQ(range.row_begin, row);
        EXPECT_EQ(range.edge_end, graph.row_offsets()[range.row_end]);
      }
      edge = range.edge_end;
      row = range.edge_end == graph.row_offsets()[range.row_end] ? range.row_end : range.row_begin;
    }
    EXPECT_EQ(row, graph.num_rows());
    EXPECT_EQ(edge, graph.num_edges());
    EXPECT_EQ(slots, schedule.num_slots);
  }
}

}  // namespace
}  // namespace tessera::ops
