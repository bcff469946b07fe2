// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/placed.hpp"

/// What attention kernels promise of one form, or where numbers are not finite: each test runs on
/// every kernel that promises it.
namespace tessera::test {
namespace {

std::vector<std::string> exact_kernels() {
  std::vector<std::string> names = kernels_without_terms();
  std::erase_if(
      names, [](const std::string& name) { return !testing::kernel_info(name).exact_nonfinite; });
  return names;
}

class GatKernels : public AttentionKernelTest {};
class GatV2Kernels : public AttentionKernelTest {};
class DotKernels : public AttentionKernelTest {};
class ExactAttentionKernels : public AttentionKernelTest {};

TEST_P(GatKernels, LargeScoresDoNotOverflow) {
  const Graph graph = testing::random_graph(40, 40, 600, 6, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const float size : {1e4f, -1e4f, 80.0f}) {
      AttentionCase<float> run(graph, options_of(kernel, AttentionForm::gat, 8, 8, 0), 600);
      for (float& score : run.target.span()) score += size;
      for (std::int64_t j = 0; j < run.source.rows(); j += 3) run.source(j, 0) -= size;
      run.run_all();
      for (const float element : run.output.span()) ASSERT_TRUE(std::isfinite(element));
      expect_matches_reference(run);
    }
  });
}

/// Rows that grow block by block towards their maximum rescale what they have summed.
TEST_P(GatKernels, MaximumAtTheEndOfALongRow) {
  const Graph graph = testing::star_graph(5000);
  for_instruction_sets([&](const std::string& kernel) {
    AttentionCase<float> run(graph, options_of(kernel, AttentionForm::gat, 3, 5, 0), 700);
    for (std::int64_t j = 0; j < run.source.rows(); ++j) {
      run.source(j, 1) = static_cast<float>(j) * 0.01f;
      run.source(j, 2) =
          j == run.source.rows() - 1 ? 0.0f : -std::numeric_limits<float>::infinity();
    }
    run.run_all();
    const AttentionCase<double> expected = reference_of(run);
    for (std::int64_t f = 0; f < run.options.features; ++f) {
      EXPECT_NEAR(static_cast<double>(run.output(0, f)), expected.output(0, f), 2e-5);
    }
  });
}

TEST_P(GatKernels, RowsOfMinusInfinityAreNotANumber) {
  const Graph graph = testing::star_graph(20);
  for_instruction_sets([&](const std::string& kernel) {
    AttentionCase<float> run(graph, options_of(kernel, AttentionForm::gat, 2, 3, 0), 1400);
    for (std::int64_t j = 1; j <= 20; ++j)
      run.source(j, 1) = -std::numeric_limits<float>::infinity();
    run.run_all();
    for (std::int64_t f = 0; f < 6; ++f) EXPECT_EQ(std::isnan(run.output(0, f)), f >= 3) << f;
  });
}

TEST_P(DotKernels, LargeDotProductsDoNotOverflow) {
  const Graph graph = testing::random_graph(40, 40, 600, 18, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const double scale : {300.0, -300.0}) {
      AttentionCase<float> run(graph, options_of(kernel, AttentionForm::dot, 2, 8, 0), 1950);
      run.scale = scale;
      run.run_all();
      for (const Matrix<float>* result :
           {&run.output, &run.grad_target, &run.grad_source, &run.grad_value}) {
        for (const float element : result->span()) ASSERT_TRUE(std::isfinite(element));
      }
    }
  });
}

/// What AGNN asks for: rows of unit length as targets and sources, one head, a learned scale.
TEST_P(DotKernels, UnitRowsWithALearnedScale) {
  const std::vector<testing::NamedGraph> graphs = {
      {"random", testing::random_graph(129, 129, 1500, 17, false)},
      {"star", testing::star_graph(3000)}};
  for_instruction_sets([&](const std::string& kernel) {
    for (const testing::NamedGraph& named : graphs) {
      for (const std::int64_t width : {1, 16, 33, 64, 128}) {
        SCOPED_TRACE(named.name + ", width " + std::to_string(width));
        AttentionCase<float> run(named.graph, options_of(kernel, AttentionForm::dot, 1, width, 0),
                                 1750);
        for (std::int64_t i = 0; i < run.value.rows(); ++i) {
          double square = 0;
          for (std::int64_t f = 0; f < width; ++f) {
            square += std::pow(static_cast<double>(run.value(i, f)), 2);
          }
          for (std::int64_t f = 0; f < width; ++f) {
            const double unit = static_cast<double>(run.value(i, f)) / std::sqrt(square);
            run.target(i, f) = run.source(i, f) = static_cast<float>(unit);
          }
        }
        run.scale = 1.7;
        run.run_all();
        expect_matches_reference(run);
      }
    }
  });
}

/// Whatever the plan keeps of a forward run, backward belongs to the numbers it is given.
/// Attention in stages, which takes dot products only, has arrays of edges by its nature.
TEST_P(GatV2Kernels, KeepsNothingOfTheSizeOfEdges) {
  const Graph graph = testing::random_graph(300, 300, 40000, 14, false);
  for_instruction_sets([&](const std::string& kernel) {
    AttentionCase<float> run(graph, options_of(kernel, AttentionForm::gatv2, 8, 8, 0.5), 1600);
    PlacedAttention<float> placed(run);
    placed.run_forward();
    placed.run_backward(placed.gradients());
    EXPECT_GT(placed.plan.workspace_bytes(), 0);
    EXPECT_LT(placed.plan.workspace_bytes(), graph.num_edges() * 8);
  });
}

int kind_of(double x) { return std::isnan(x) ? 0 : std::isinf(x) ? (x > 0 ? 1 : -1) : 2; }

template <class T>
void expect_same_kinds(const Matrix<T>& computed, const Matrix<double>& expected) {
  for (std::int64_t i = 0; i < expected.rows(); ++i) {
    for (std::int64_t j = 0; j < expected.cols(); ++j) {
      EXPECT_EQ(kind_of(static_cast<double>(computed(i, j))), kind_of(expected(i, j)))
          << "(" << i << ", " << j << ")";
    }
  }
}

/// Such scores times log2(e) are no numbers any more, their differences are.
TEST_P(ExactAttentionKernels, ScoresNearTheLargestNumber) {
  const Graph graph = testing::random_graph(40, 40, 300, 14, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const float term : {1.5e38f, -1.5e38f}) {
      SCOPED_TRACE(kernel + ", terms of " + std::to_string(term));
      AttentionOptions options = options_of(kernel, AttentionForm::gat, 2, 8, 0);
      options.negative_slope = 1;
      AttentionCase<float> run(graph, options, 1400);
      for (float& score : run.target.span()) score = term;
      for (float& score : run.source.span()) score = term;
      run.run_all();
      const AttentionCase<double> expected = reference_of(run);
      for (std::int64_t i = 0; i < run.output.rows(); ++i) {
        for (std::int64_t f = 0; f < run.output.cols(); ++f) {
          ASSERT_NEAR(static_cast<double>(run.output(i, f)), expected.output(i, f), 2e-5);
        }
      }
    }
  });
}

TEST_P(ExactAttentionKernels, NonFiniteValuesStayWhereTheReferenceHasThem) {
  const Graph graph = testing::random_graph(33, 33, 150, 12, false);
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for_instruction_sets([&](const std::string& kernel) {
    for (const auto& [form, width] : forms_and_widths(kernel, {5, 3})) {
      for (const float odd : {inf, -inf, nan}) {
        for (const double dropout : {0.0, 0.5}) {
          SCOPED_TRACE(std::string(to_string(form)) + " " + std::to_string(odd) + ", width " +
                       std::to_string(width));
          AttentionCase<float> scores(graph, options_of(kernel, form, 3, width, dropout), 1200);
          scores.source(7, 1) = odd;
          scores.run_all();
          const AttentionCase<double> expected_scores = reference_of(scores);
          expect_same_kinds(scores.output, expected_scores.output);
          expect_same_kinds(scores.grad_value, expected_scores.grad_value);
          AttentionCase<float> values(graph, options_of(kernel, form, 3, width, dropout), 1300);
          values.value(9, 6) = odd;
          values.run_all();
          expect_same_kinds(values.output, reference_of(values).output);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, GatKernels, ::testing::ValuesIn(kernels_for(AttentionForm::gat)),
                         testing::kernel_test_name);
INSTANTIATE_TEST_SUITE_P(All, GatV2Kernels, ::testing::ValuesIn(kernels_for(AttentionForm::gatv2)),
                         testing::kernel_test_name);
INSTANTIATE_TEST_SUITE_P(All, DotKernels, ::testing::ValuesIn(kernels_for(AttentionForm::dot)),
                         testing::kernel_test_name);
INSTANTIATE_TEST_SUITE_P(All, ExactAttentionKernels, ::testing::ValuesIn(exact_kernels()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
