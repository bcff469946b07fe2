// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/narrow_attention.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/graph/build.hpp"

/// Attention on windows in 16 bits: how windows are dealt out, what is kept, what is not finite,
/// and each gradient alone.
namespace tessera::test {
namespace {

class NarrowAttentionKernels : public AttentionKernelTest {};

/// Some long windows of 16 rows, which as many warps have enough to do with, and many of few edges
/// or none, of which each of the others takes more than 32 one after another. `other_way`: windows
/// of columns.
Graph long_and_short_windows(VertexId num_long, bool other_way) {
  constexpr VertexId num_others = 4096, long_row = 171, num_short = 1000;
  const VertexId num_rows = (num_long + num_short) * 16 - 5;
  std::vector<VertexId> own, others;
  for (VertexId row = 0; row < num_rows; ++row) {
    const VertexId window = row / 16;
    const VertexId degree = window < num_long ? long_row : window % 9 == 4 ? 0 : row % 2;
    const VertexId first = window < num_long ? row % 16 * long_row + window * 37 : row * 7;
    for (VertexId k = 0; k < degree; ++k) {
      own.push_back(row);
      others.push_back((first + k) % num_others);
    }
  }
  return other_way ? from_coo(num_others, num_rows, others, own)
                   : from_coo(num_rows, num_others, own, others);
}

/// Among them windows for which factors do not serve.
TEST_P(NarrowAttentionKernels, ManyShortWindowsOfAWarp) {
  if (GetParam() != "attention/cuda/short") GTEST_SKIP() << "no windows of 16 rows";
  const std::string& kernel = GetParam();
  for (const bool other_way : {false, true}) {
    SCOPED_TRACE(other_way ? "columns" : "rows");
    AttentionCase<Bfloat16> run(long_and_short_windows(other_way ? 170 : 236, other_way),
                                options_of(kernel, AttentionForm::gat, 8, 64, 0), 2680);
    for (std::int64_t j = 3; j < run.source.rows(); j += 80) {
      for (std::int64_t h = 0; h < 8; h += 2) {
        run.source(j, h) = static_cast<Bfloat16>(static_cast<float>(run.source(j, h)) + 30);
      }
    }
    run.run_all();
    expect_matches_reference(run);
  }
}

/// Sums that the forward run keeps spare the backward run a sweep where there is a kernel for it;
/// without them, or where they would lie on no boundary of 16 bytes, gradients are the same. Over
/// whole windows and cut ones, by factors and by exponentials.
TEST_P(NarrowAttentionKernels, GradientsOfWideHeadsWhateverWasKept) {
  const std::string& kernel = GetParam();
  if (!takes<Bfloat16>(kernel, AttentionForm::gat, 3, 64))
    GTEST_SKIP() << "no heads of 64; attention/cuda/short runs it";
  enum class Kept { all, none, beside_boundaries };
  for (const Kept kept : {Kept::all, Kept::none, Kept::beside_boundaries}) {
    for (const float shift : {0.0f, 9.0f}) {
      for (const Graph& graph :
           {testing::random_graph(301, 260, 5000, 41, false), long_and_short_windows(20, false)}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(kept) << ", " << shift);
        AttentionCase<Bfloat16> run(graph, options_of(kernel, AttentionForm::gat, 3, 64, 0), 2690);
        for (Bfloat16& term : run.target.span()) {
          term = static_cast<Bfloat16>(static_cast<float>(term) + shift);
        }
        PlacedAttention<Bfloat16> placed(run);
        if (kept != Kept::all && placed.host_kept.size() == 0) continue;
        placed.keeps = kept == Kept::all;
        Matrix<float> room(1, placed.host_kept.size() + 1);
        PlacedMatrix<float> placed_room(room, placed.device);
        ops::Operand beside = placed_room.view();
        beside.data = static_cast<float*>(beside.data) + 1;
        --beside.cols;
        if (kept == Kept::beside_boundaries) {
          ops::run_keeping(placed.plan, placed.inputs(), placed.outputs(), beside);
          ops::run_backward_kept(placed.plan, placed.inputs(), placed.output.view(),
                                 placed.log_sum.view(), beside, placed.grad_output.view(),
                                 placed.gradients());
        } else {
          placed.run_forward();
          placed.run_backward(placed.gradients());
        }
        placed.fetch();
        expect_matches_reference(run);
      }
    }
  }
}

/// A graph without the edges from one vertex to rows from `first` on.
Graph without_edges(const Graph& graph, VertexId source, VertexId first) {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (const VertexId column : graph.neighbours(row)) {
      if (column != source || row < first) columns.push_back(column);
    }
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  return Graph(graph.num_rows(), graph.num_cols(), SharedArray<EdgeOffset>(std::move(offsets)),
               SharedArray<VertexId>(std::move(columns)));
}

/// Rows before `first_finite` may be other than finite, but where they are finite they are right.
void expect_no_wrong_number(const Matrix<Bfloat16>& computed, const Matrix<double>& expected,
                            std::int64_t first_finite, const char* what) {
  for (std::int64_t i = 0; i < computed.rows(); ++i) {
    for (std::int64_t f = 0; f < computed.cols(); ++f) {
      const auto found = static_cast<float>(computed(i, f));
      const auto right = static_cast<float>(expected(i, f));
      if (!std::isfinite(found) && i < first_finite) continue;
      ASSERT_NEAR(found, right, 0.02f * (1 + std::abs(right))) << what << " " << i << ", " << f;
    }
  }
}

/// A number that is not finite may turn other rows of its window of 64 into NaN, but none into a
/// wrong number, and no row of windows that do not use it.
void check_non_finite(const std::string& kernel, AttentionForm form, const Heads& heads) {
  constexpr VertexId odd_vertex = 150, first_without = 128;
  const Graph graph =
      without_edges(testing::random_graph(200, 300, 3000, 26, false), odd_vertex, first_without);
  if (!takes<Bfloat16>(kernel, form, heads.count, heads.width)) return;
  for (const float odd :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const bool of_value : {true, false}) {
      SCOPED_TRACE(std::string(to_string(form)) + ", " + name_of(heads) + ", " +
                   std::to_string(odd) + (of_value ? " of V" : " of sources"));
      AttentionCase<Bfloat16> run(graph, options_of(kernel, form, heads.count, heads.width, 0),
                                  2700);
      (of_value ? run.value(odd_vertex, 9) : run.source(odd_vertex, 1)) =
          static_cast<Bfloat16>(odd);
      run.run_all();
      const AttentionCase<double> expected = reference_of(run);
      expect_no_wrong_number(run.output, expected.output, first_without, "output");
      expect_no_wrong_number(run.grad_target, expected.grad_target, first_without, "target");
      // Targets of any window may use a source.
      const std::int64_t all = graph.num_cols();
      expect_no_wrong_number(run.grad_source, expected.grad_source, all, "source");
      expect_no_wrong_number(run.grad_value, expected.grad_value, all, "value");
    }
  }
}

TEST_P(NarrowAttentionKernels, NonFiniteFeaturesAndTermsMakeNoWrongNumber) {
  for_instruction_sets([](const std::string& kernel) {
    for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
      check_non_finite(kernel, form, {4, 8});
      check_non_finite(kernel, form, {2, 32});
      check_non_finite(kernel, form, {2, 64});
    }
  });
}

template <class T>
void check_same_bits_twice(const Graph& graph, const AttentionOptions& options) {
  if (!takes<T>(options.kernel, options.form, options.heads, options.features / options.heads)) {
    return;
  }
  SCOPED_TRACE(describe(options));
  AttentionCase<T> once(graph, options, 2500);
  once.run_all();
  expect_matches_reference(once);
  AttentionCase<T> again(graph, once.options, 2500);
  again.run_all();
  EXPECT_TRUE(same_bits(once.output, again.output));
  EXPECT_TRUE(same_bits(once.log_sum, again.log_sum));
  EXPECT_TRUE(same_bits(once.grad_target, again.grad_target));
  EXPECT_TRUE(same_bits(once.grad_source, again.grad_source));
  EXPECT_TRUE(same_bits(once.grad_value, again.grad_value));
}

TEST_P(NarrowAttentionKernels, WidthsOfHeadsAndSameBitsTwice) {
  const Graph graph = testing::random_graph(300, 260, 5000, 24, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const std::int64_t width : {8, 16, 32, 64, 128}) {
      for (const std::int64_t heads : {1, 3, 5, 8}) {
        for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
          const AttentionOptions options = options_of(kernel, form, heads, width, 0);
          check_same_bits_twice<Bfloat16>(graph, options);
          if (heads == 1) check_same_bits_twice<float>(graph, options);
        }
      }
    }
  });
}

/// Rows and columns without edges, single vertices, hubs: of wide heads.
TEST_P(NarrowAttentionKernels, OddGraphsOfWideHeads) {
  for_instruction_sets([&](const std::string& kernel) {
    if (!takes<Bfloat16>(kernel, AttentionForm::gat, 1, 64)) return;
    for (const testing::NamedGraph& odd : testing::odd_patterns()) {
      SCOPED_TRACE(odd.name);
      check_same_bits_twice<Bfloat16>(odd.graph, options_of(kernel, AttentionForm::gat, 1, 64, 0));
      check_same_bits_twice<float>(odd.graph, options_of(kernel, AttentionForm::gat, 2, 32, 0));
    }
  });
}

void check_each_gradient_alone(const Graph& graph, const AttentionOptions& options) {
  AttentionCase<Bfloat16> all(graph, options, 2800);
  all.run_all();
  expect_matches_reference(all);
  for (int wanted = 0; wanted < 3; ++wanted) {
    SCOPED_TRACE(wanted);
    AttentionCase<Bfloat16> one(graph, options, 2800);
    PlacedAttention<Bfloat16> placed(one);
    placed.run_forward();
    const ops::AttentionGradOutputs whole = placed.gradients();
    ops::AttentionGradOutputs part;
    if (wanted == 0) part.target = whole.target;
    if (wanted == 1) part.source = whole.source;
    if (wanted == 2) part.value = whole.value;
    placed.run_backward(part);
    placed.fetch();
    const auto untouched = AttentionCase<Bfloat16>(graph, options, 2800);
    const auto expect_alone = [&](bool is_wanted, const Matrix<Bfloat16>& found,
                                  const Matrix<Bfloat16>& of_all, const Matrix<Bfloat16>& none) {
      if (is_wanted) {
        EXPECT_LT(largest_difference(found, to_double(of_all)), 0.02);
      } else {
        EXPECT_TRUE(same_bits(found, none));
      }
    };
    expect_alone(wanted == 0, one.grad_target, all.grad_target, untouched.grad_target);
    expect_alone(wanted == 1, one.grad_source, all.grad_source, untouched.grad_source);
    expect_alone(wanted == 2, one.grad_value, all.grad_value, untouched.grad_value);
  }
}

TEST_P(NarrowAttentionKernels, EachGradientOfWideHeadsAlone) {
  const Graph graph = testing::random_graph(90, 150, 2000, 28, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : {AttentionForm::gat, AttentionForm::dot}) {
      if (!takes<Bfloat16>(kernel, form, 2, 64)) continue;
      SCOPED_TRACE(to_string(form));
      check_each_gradient_alone(graph, options_of(kernel, form, 2, 64, 0));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, NarrowAttentionKernels, ::testing::ValuesIn(narrow_kernels()),
                         testing::kernel_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NarrowAttentionKernels);

}  // namespace
}  // namespace tessera::test
