// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/transform.hpp"

#include "support/attention_kernels.hpp"
#include "support/comparisons.hpp"
#include "support/cosine_case.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/many_rows.hpp"
#include "support/matrices.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"
#include "support/placed_matrix.hpp"
#include "support/random_coo.hpp"
#include "support/slopes.hpp"
#include "tessera/core/recording.hpp"

#include "ops/attention/reference.hpp"

/// Attention by cosines, as AGNN has it, by every kernel that takes it.
namespace tessera::test {
namespace {

class CosineKernels : public AttentionKernelTest {
 protected:
  AttentionOptions options(std::int64_t width, double dropout = 0) const {
    return options_of(GetParam(), AttentionForm::cosine, 1, width, dropout);
  }
};

TEST_P(CosineKernels, OddGraphs) {
  must_compare();
  for (const testing::NamedGraph& odd : testing::odd_patterns()) {
    if (odd.graph.num_rows() != odd.graph.num_cols()) continue;
    SCOPED_TRACE(odd.name);
    check_all_precisions(odd.graph, options(16), 3000);
    check_all_precisions(odd.graph, options(7, 0.4), 3010);
  }
}

TEST_P(CosineKernels, AnyWidth) {
  const Graph graph = testing::random_graph(33, 33, 250, 31, false);
  for (const std::int64_t width : {0, 1, 2, 3, 4, 8, 15, 16, 17, 31, 33, 64, 100, 128, 257, 700}) {
    check_all_precisions(graph, options(width), 3100);
    check_all_precisions(graph, options(width, 0.5), 3110);
  }
}

TEST_P(CosineKernels, Hubs) {
  const Graph graph = testing::star_graph(100000);
  check<float>(graph, options(8), 3200);
  check<float>(graph, options(33, 0.5), 3210);
}

TEST_P(CosineKernels, ManyRowsOfDifferentLengths) {
  if (GetParam() != "attention/cuda/rows")
    GTEST_SKIP() << "of attention/cuda/rows alone, where it runs";
  const Graph graph = testing::many_rows_of_different_lengths(42);
  check<float>(graph, options(8), 3220);
  check<Bfloat16>(graph, options(16, 0.3), 3221);
  const Graph both_ways = symmetrised(graph);
  check<float>(both_ways, options(8), 3222);
  check<Bfloat16>(both_ways, options(32), 3223);
}

/// Edges at random; with all of their twins where they go both ways.
Graph random_edges(VertexId num_vertices, int num_edges, std::uint64_t seed, bool both_ways) {
  const Graph graph = testing::random_graph(num_vertices, num_vertices, num_edges, seed, false);
  return both_ways ? symmetrised(graph) : graph;
}

/// A graph and some vertices more, which have no edge.
Graph with_lonely_vertices(const Graph& graph, VertexId count) {
  const VertexId num_vertices = graph.num_rows() + count;
  testing::Coo edges{num_vertices, num_vertices, {}, {}, {}};
  for (const auto& [ends, weight] : testing::entries_of(graph)) {
    edges.rows.push_back(ends.first);
    edges.cols.push_back(ends.second);
  }
  return edges.build({}, false);
}

/// Kernels may take both directions of an edge at once: of short rows, hubs in several pieces,
/// loops, vertices without an edge. One edge without a twin must not pass for one that has it.
TEST_P(CosineKernels, EdgesThatGoBothWays) {
  must_compare();
  const Graph few = symmetrised(testing::random_graph(60, 60, 150, 38, false));
  for (const std::int64_t width : {1, 3, 8, 16, 22, 64, 128, 300}) {
    check_all_precisions(few, options(width), 3900);
  }
  check_all_precisions(few, options(16, 0.3), 3910);
  check_all_precisions(with_self_loops(few), options(16), 3920);
  check<float>(symmetrised(testing::star_graph(20000)), options(32), 3930);
  const Graph many = symmetrised(testing::random_graph(900, 900, 300000, 39, false));
  check<float>(many, options(64), 3940);
  check<Bfloat16>(many, options(128), 3941);
  testing::Coo one_way{60, 60, {}, {}, {}};
  for (const auto& [ends, weight] : testing::entries_of(few)) {
    one_way.rows.push_back(ends.first);
    one_way.cols.push_back(ends.second);
  }
  one_way.rows.pop_back();
  one_way.cols.pop_back();
  check_all_precisions(one_way.build({}, false), options(16), 3950);
  const testing::Coo unlike{3, 3, {0, 0, 1, 2}, {1, 1, 0, 2}, {}};
  check_all_precisions(unlike.build({.duplicates = Duplicates::keep}, false), options(16), 3960);
}

/// Nothing but zeros is a gradient of a vertex without edges, whatever its features are, and they
/// reach no other vertex.
TEST_P(CosineKernels, NonFiniteFeaturesOfVerticesWithoutEdges) {
  if (!GetParam().ends_with("/rows")) {
    GTEST_SKIP() << "runs by rows; others make rows of unit length of all vertices first";
  }
  constexpr VertexId lonely = 40;
  for (const bool both_ways : {true, false}) {
    const Graph graph = with_lonely_vertices(random_edges(40, 300, 41, both_ways), 2);
    for (const float odd :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      for (const double dropout : {0.0, 0.3}) {
        SCOPED_TRACE(std::to_string(odd) + ", dropout " + std::to_string(dropout) +
                     (both_ways ? ", both ways" : ", one way"));
        CosineCase<float> run(graph, options(16, dropout), 3970);
        run.value(lonely, 5) = odd;
        run.run_all();
        expect_matches_reference(run);
        for (std::int64_t f = 0; f < 16; ++f) {
          EXPECT_EQ(run.output(lonely, f), 0.0f);
          EXPECT_EQ(run.grad_value(lonely, f), 0.0f);
        }
      }
    }
  }
}

/// A row that is not finite makes not-a-number of all rows that use it, and of no other.
TEST_P(CosineKernels, NonFiniteFeaturesStayWhereTheReferenceHasThem) {
  const Graph graph = random_edges(60, 200, 42, true);
  for (const float odd :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    SCOPED_TRACE(odd);
    CosineCase<float> run(graph, options(16), 3980);
    run.value(9, 6) = odd;
    run.run_all();
    const CosineCase<double> expected = reference_of(run);
    for (std::int64_t i = 0; i < expected.output.size(); ++i) {
      ASSERT_EQ(std::isfinite(run.output.data()[i]), std::isfinite(expected.output.data()[i])) << i;
    }
  }
}

void check_each_gradient_alone(const Graph& graph, const AttentionOptions& options) {
  CosineCase<float> both(graph, options, 3300);
  both.run_all();
  CosineCase<float> of_value(graph, both.options, 3300);
  of_value.run_all(true, false);
  CosineCase<float> of_factor(graph, both.options, 3300);
  of_factor.run_all(false, true);
  EXPECT_LT(largest_difference(of_value.grad_value, to_double(both.grad_value)), 1e-5);
  EXPECT_LT(largest_difference(of_factor.grad_factor, to_double(both.grad_factor)), 1e-5);
  EXPECT_TRUE(std::isnan(of_value.grad_factor(0, 0)));
  EXPECT_TRUE(std::isnan(of_factor.grad_value(0, 0)));
}

TEST_P(CosineKernels, EachGradientAloneIsTheSame) {
  check_each_gradient_alone(random_edges(50, 400, 32, false), options(12, 0.2));
  check_each_gradient_alone(random_edges(50, 400, 32, true), options(12));
}

TEST_P(CosineKernels, SameBitsTwice) {
  for (const bool both_ways : {false, true}) {
    SCOPED_TRACE(both_ways);
    const Graph graph = random_edges(3000, 40000, 33, both_ways);
    CosineCase<float> once(graph, options(64), 3400), again(graph, options(64), 3400);
    once.run_all();
    again.run_all();
    EXPECT_TRUE(same_bits(once.output, again.output));
    EXPECT_TRUE(same_bits(once.grad_value, again.grad_value));
    EXPECT_TRUE(same_bits(once.grad_factor, again.grad_factor));
  }
}

/// Rows have the same directions at any length; a row of zeros has none.
void check_lengths(const Graph& graph, const AttentionOptions& options) {
  CosineCase<float> run(graph, options, 3500);
  const CosineCase<double> plain = reference_of(run);
  for (const float length : {1e-10f, 1e15f, 1e18f}) {
    SCOPED_TRACE(length);
    CosineCase<float> scaled(graph, run.options, 3500);
    for (float& value : scaled.value.span()) value *= length;
    scaled.run_all();
    for (std::int64_t i = 0; i < plain.output.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(scaled.output.data()[i]) / static_cast<double>(length),
                  plain.output.data()[i], 1e-4);
    }
  }
  for (std::int64_t f = 0; f < 24; ++f) run.value(3, f) = 0;
  run.run_all();
  const CosineCase<double> expected = reference_of(run);
  expect_close(run.output, expected.output, 2e-5, "output");
}

TEST_P(CosineKernels, LengthsOfAnySize) {
  check_lengths(random_edges(40, 500, 34, false), options(24));
  check_lengths(random_edges(40, 500, 34, true), options(24));
}

void check_strided_views(const Graph& graph, AttentionOptions options) {
  for (const std::int64_t width : {7, 16}) {
    options.features = width;
    CosineCase<float> plain(graph, options, 3600);
    plain.run_all();
    Padded<float> value(plain.value), grad_output(plain.grad_output);
    Padded<float> output(17, width), grad_value(17, width);
    const Device device = plain.options.device;
    Placed<float> on_value(value, device), on_grad_output(grad_output, device),
        on_output(output, device), on_grad_value(grad_value, device);
    PlacedMatrix<float> on_factor(plain.factor, device), on_log_sum(plain.log_sum, device);
    ops::AttentionInputs inputs = plain.inputs();
    inputs.value = on_value.view();
    inputs.vector = on_factor.view();
    const ops::AttentionPlan plan = ops::plan_attention(graph, plain.options);
    ops::run(plan, inputs, {on_output.view(), on_log_sum.view()});
    ops::run_backward(plan, inputs, on_output.view(), on_log_sum.view(), on_grad_output.view(),
                      {.value = on_grad_value.view()});
    on_output.fetch();
    on_grad_value.fetch();
    EXPECT_TRUE(output.margins_intact());
    EXPECT_TRUE(grad_value.margins_intact());
    for (std::int64_t i = 0; i < 17; ++i) {
      for (std::int64_t f = 0; f < width; ++f) {
        EXPECT_NEAR(output.view()(i, f), plain.output(i, f), 1e-5);
        EXPECT_NEAR(grad_value.view()(i, f), plain.grad_value(i, f), 1e-5);
      }
    }
  }
}

TEST_P(CosineKernels, StridedViews) {
  check_strided_views(random_edges(17, 90, 35, false), options(16, 0.25));
  check_strided_views(random_edges(17, 90, 35, true), options(16));
}

TEST_P(CosineKernels, WeightsAreThoseOfTheReference) {
  const Graph graph = testing::random_graph(33, 33, 200, 36, false);
  CosineCase<float> run(graph, options(20), 3700);
  run.run_all();
  const Device device = run.options.device;
  Matrix<float> weights(graph.num_edges(), 1);
  PlacedMatrix<float> on_value(run.value, device), on_factor(run.factor, device),
      on_log_sum(run.log_sum, device), on_weights(weights, device);
  ops::AttentionInputs inputs = run.inputs();
  inputs.value = on_value.view();
  inputs.vector = on_factor.view();
  ops::attention_weights(ops::plan_attention(graph, run.options), inputs, on_log_sum.view(),
                         on_weights.view());
  on_weights.fetch();
  Matrix<double> expected(graph.num_edges(), 1);
  const CosineCase<double> reference = reference_of(run);
  ops::reference::attention_weights(graph, run.options, reference.inputs(), expected);
  expect_close(weights, expected, 1e-5, "weights");
}

TEST_P(CosineKernels, GradientsAreSlopesOfTheForwardPass) {
  const Graph graph = testing::random_graph(150, 150, 900, 39, false);
  for (const std::int64_t width : {8, 33, 64}) {
    SCOPED_TRACE("width " + std::to_string(width));
    CosineCase<float> run(graph, options(width), 3950);
    if (!supports(run.options.kernel, run.options)) continue;
    run.run_all();
    const auto of_value = numbers_of(run.grad_value), of_factor = numbers_of(run.grad_factor);
    const auto loss = [&] {
      run.run_all();
      return loss_between(run.output, run.grad_output);
    };
    expect_slope(loss, run.value, of_value, 0x1p-8, "value");
    expect_slope(loss, run.factor, of_factor, 0x1p-6, "factor");
  }
}

TEST_P(CosineKernels, RecordingsReadWhatHasChanged) {
  if (on_cpu(GetParam())) GTEST_SKIP() << "only a GPU records; tools/gpu.sh test runs it";
  const Graph graph = testing::random_graph(300, 300, 2500, 40, false);
  for (const std::int64_t width : {16, 64, 200}) {
    SCOPED_TRACE("width " + std::to_string(width));
    CosineCase<float> run(graph, options(width), 3960), other(graph, options(width), 3970);
    if (!supports(run.options.kernel, run.options)) continue;
    const ops::AttentionPlan plan = ops::plan_attention(graph, run.options);
    const Device device = run.options.device;
    PlacedMatrix<float> value(run.value, device), factor(run.factor, device),
        output(run.output, device), log_sum(run.log_sum, device),
        grad_output(run.grad_output, device), grad_value(run.grad_value, device),
        grad_factor(run.grad_factor, device);
    const auto work = [&](Stream stream) {
      ops::AttentionInputs inputs = run.inputs();
      inputs.value = value.view();
      inputs.vector = factor.view();
      ops::run(plan, inputs, {output.view(), log_sum.view()}, stream);
      ops::AttentionGradOutputs gradients;
      gradients.value = grad_value.view();
      gradients.vector = grad_factor.view();
      ops::run_backward(plan, inputs, output.view(), log_sum.view(), grad_output.view(), gradients,
                        stream);
    };
    work({});
    const Recording recording = Recording::of(device, work);
    std::copy(other.value.span().begin(), other.value.span().end(), run.value.span().begin());
    std::copy(other.grad_output.span().begin(), other.grad_output.span().end(),
              run.grad_output.span().begin());
    other.factor(0, 0) = run.factor(0, 0) = 0.75f;
    for (PlacedMatrix<float>* matrix : {&value, &factor, &grad_output}) matrix->send();
    recording.replay();
    for (PlacedMatrix<float>* matrix : {&output, &grad_value, &grad_factor}) matrix->fetch();
    other.run_all();
    EXPECT_TRUE(same_bits(run.output, other.output));
    EXPECT_TRUE(same_bits(run.grad_value, other.grad_value));
    EXPECT_TRUE(same_bits(run.grad_factor, other.grad_factor));
  }
}

/// In double precision, on a directed graph, with dropout.
TEST(CosineAttention, GradientsAgreeWithFiniteDifferences) {
  const Graph graph = testing::random_graph(7, 7, 24, 37, false);
  CosineCase<double> run(graph, options_of("", AttentionForm::cosine, 1, 5, 0.3), 3800);
  run.run_all();
  const ops::AttentionPlan plan = ops::plan_attention(graph, run.options);
  Matrix<double> output(7, 5);
  const auto loss = [&] {
    ops::run(plan, run.inputs(), {output, {}});
    return inner_product(output, run.grad_output);
  };
  expect_gradient(loss, run.value, run.grad_value);
  expect_gradient(loss, run.factor, run.grad_factor);
}

TEST(CosineAttention, RejectsWhatDoesNotFit) {
  const Graph graph = testing::random_graph(6, 6, 12, 38, false);
  CosineCase<float> run(graph, options_of("", AttentionForm::cosine, 1, 4, 0), 3900);
  const ops::AttentionPlan plan = ops::plan_attention(graph, run.options);
  const auto problem_with = [&](auto&& change) {
    ops::AttentionInputs inputs = run.inputs();
    change(inputs);
    return argument_problem([&] { ops::run(plan, inputs, {run.output, run.log_sum}); });
  };
  EXPECT_NE(problem_with([&](auto& in) { in.target = run.value; }).find("has no target"),
            std::string::npos);
  EXPECT_NE(problem_with([&](auto& in) { in.vector = {}; }).find("vector"), std::string::npos);
  AttentionOptions options = run.options;
  options.heads = 2;
  EXPECT_NE(argument_problem([&] { ops::plan_attention(graph, options); }).find("one head"),
            std::string::npos);
  const Graph wide = testing::random_graph(6, 7, 12, 38, false);
  EXPECT_NE(argument_problem([&] { ops::plan_attention(wide, run.options); }).find("square"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, CosineKernels,
                         ::testing::ValuesIn(kernels_for(AttentionForm::cosine)),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
