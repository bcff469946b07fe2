// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/odd_graphs.hpp"
#include "support/small_weights.hpp"

/// GATv2 of 16-bit features: every kernel that takes a head of 64 of them.
namespace tessera::test {
namespace {

template <class T>
bool takes(const std::string& kernel, std::int64_t heads, std::int64_t width, double slope = 0.2) {
  AttentionOptions options = options_of(kernel, AttentionForm::gatv2, heads, width, 0);
  options.precision = ops::PrecisionOf<T>::value;
  options.negative_slope = slope;
  return supports(kernel, options);
}

std::vector<std::string> narrow_kernels() {
  std::vector<std::string> names = testing::kernel_names("attention");
  std::erase_if(names, [](const std::string& name) { return !takes<Bfloat16>(name, 1, 64); });
  return names;
}

class NarrowGatV2Kernels : public AttentionKernelTest {};

template <class T>
void multiply(Matrix<T>& matrix, float factor, std::int64_t first_row = 0) {
  for (std::int64_t i = first_row; i < matrix.rows(); ++i) {
    for (std::int64_t f = 0; f < matrix.cols(); ++f) {
      matrix(i, f) = static_cast<T>(static_cast<float>(matrix(i, f)) * factor);
    }
  }
}

/// Scores of the size that they have in a model: random numbers of size 1 as a would make them so
/// large that one weight of a row is all there is.
template <class T>
AttentionCase<T> modest_case(const Graph& graph, AttentionOptions options, std::uint64_t seed) {
  AttentionCase<T> run(graph, options, seed);
  const auto width = static_cast<float>(options.features) / static_cast<float>(options.heads);
  multiply(run.vector, 1 / std::sqrt(width));
  return run;
}

template <class T>
void check_widths(const std::string& kernel) {
  const Graph graph = testing::random_graph(300, 260, 5000, 31, false);
  for (const std::int64_t width : {32, 64, 128}) {
    for (const std::int64_t heads : {1, 3}) {
      if (!takes<T>(kernel, heads, width)) continue;
      const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, heads, width, 0);
      SCOPED_TRACE(describe(options));
      AttentionCase<T> once = modest_case<T>(graph, options, 3100);
      once.run_all();
      expect_matches_reference(once);
      AttentionCase<T> again = modest_case<T>(graph, options, 3100);
      again.run_all();
      EXPECT_TRUE(same_bits(once.output, again.output));
      EXPECT_TRUE(same_bits(once.log_sum, again.log_sum));
      EXPECT_TRUE(same_bits(once.grad_target, again.grad_target));
      EXPECT_TRUE(same_bits(once.grad_source, again.grad_source));
      EXPECT_TRUE(same_bits(once.grad_vector, again.grad_vector));
    }
  }
}

TEST_P(NarrowGatV2Kernels, WidthsOfHeadsAndSameBitsTwice) {
  for_instruction_sets([](const std::string& kernel) {
    check_widths<Bfloat16>(kernel);
    if (!on_cpu(kernel)) check_widths<Float16>(kernel);
  });
}

TEST_P(NarrowGatV2Kernels, AnySlope) {
  const Graph graph = testing::random_graph(70, 90, 900, 32, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const double slope : {0.0, 0.2, 1.0, 1.5, -0.5}) {
      if (!takes<Bfloat16>(kernel, 2, 64, slope)) {
        testing::note_declined("slope " + std::to_string(slope));
        continue;
      }
      SCOPED_TRACE("slope " + std::to_string(slope));
      AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 2, 64, 0);
      options.negative_slope = slope;
      AttentionCase<Bfloat16> run = modest_case<Bfloat16>(graph, options, 3200);
      run.run_all();
      expect_matches_reference(run);
    }
  });
}

/// With an a that makes scores of the usual size of them; all features, or those of some sources.
TEST_P(NarrowGatV2Kernels, FeaturesOfAnySize) {
  const Graph graph = testing::random_graph(200, 300, 6000, 33, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const float size : {1e-20f, 1e-6f, 1e-2f, 100.0f, 1e4f, 1e10f, 1e20f}) {
      SCOPED_TRACE("size " + std::to_string(size));
      const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 1, 64, 0);
      AttentionCase<Bfloat16> run = modest_case<Bfloat16>(graph, options, 3300);
      multiply(run.target, size);
      multiply(run.source, size);
      multiply(run.vector, 1 / size);
      run.run_all();
      expect_matches_reference(run);
    }
    for (const float size : {0.0f, 1e-9f, 300.0f}) {
      SCOPED_TRACE("some of size " + std::to_string(size));
      const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 1, 64, 0);
      AttentionCase<Bfloat16> run = modest_case<Bfloat16>(graph, options, 3350);
      multiply(run.source, size, 150);
      multiply(run.vector, 0.01f);
      run.run_all();
      expect_matches_reference(run);
    }
  });
}

TEST_P(NarrowGatV2Kernels, LargeScoresDoNotOverflow) {
  const Graph graph = testing::random_graph(80, 80, 1600, 34, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const float size : {1e4f, -1e4f, 80.0f}) {
      SCOPED_TRACE("size " + std::to_string(size));
      AttentionCase<Bfloat16> run(graph, options_of(kernel, AttentionForm::gatv2, 1, 64, 0), 3400);
      multiply(run.vector, size);
      run.run_all();
      for (const Bfloat16 element : run.output.span()) {
        ASSERT_TRUE(std::isfinite(static_cast<float>(element)));
      }
    }
  });
}

/// Equal scores are equal weights, be they large or small.
TEST_P(NarrowGatV2Kernels, EqualScores) {
  const Graph graph = testing::random_graph(100, 90, 2000, 35, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const float size : {0.0f, 0.1f, 1e3f}) {
      SCOPED_TRACE("size " + std::to_string(size));
      AttentionCase<Bfloat16> run(graph, options_of(kernel, AttentionForm::gatv2, 1, 64, 0), 3500);
      for (Bfloat16& feature : run.source.span()) feature = static_cast<Bfloat16>(size);
      run.run_all();
      for (VertexId i = 0; i < graph.num_rows(); ++i) {
        const auto neighbours = graph.neighbours(i);
        for (std::int64_t f = 0; f < 64; ++f) {
          float mean = 0;
          for (const VertexId j : neighbours) mean += static_cast<float>(run.value(j, f));
          if (!neighbours.empty()) mean /= static_cast<float>(neighbours.size());
          ASSERT_NEAR(static_cast<float>(run.output(i, f)), mean, 0.01f) << i << ", " << f;
        }
      }
    }
  });
}

/// Every row has a few neighbouring columns, of which those of the next row are others: most rows
/// of a window have no edge in most of its steps, some in two of them, and windows have odd numbers
/// of steps, or none.
Graph graph_of_bands() {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < 70; ++row) {
    const VertexId first = 13 * (row % 17);
    const VertexId size = row >= 32 && row < 48 ? 0 : 1 + row % 7;
    for (VertexId k = 0; k < size; ++k) columns.push_back(first + k);
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  return Graph(70, 230, SharedArray<EdgeOffset>(std::move(offsets)),
               SharedArray<VertexId>(std::move(columns)));
}

TEST_P(NarrowGatV2Kernels, RowsThatMissSteps) {
  const Graph graph = graph_of_bands();
  for_instruction_sets([&](const std::string& kernel) {
    for (const std::int64_t width : {32, 64, 128}) {
      if (!takes<Bfloat16>(kernel, 2, width)) continue;
      SCOPED_TRACE("width " + std::to_string(width));
      const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 2, width, 0);
      AttentionCase<Bfloat16> run = modest_case<Bfloat16>(graph, options, 3650);
      run.run_all();
      expect_matches_reference(run);
    }
  });
}

template <class T>
void check_values_that_are_sources(const std::string& kernel, const Graph& graph) {
  for (const std::int64_t width : {6, 8, 32, 64, 128, 160, 320}) {
    if (!takes<T>(kernel, 2, width)) continue;
    SCOPED_TRACE("width " + std::to_string(width));
    const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 2, width, 0);
    AttentionCase<T> run = modest_case<T>(graph, options, 3680);
    std::copy_n(run.source.span().begin(), run.source.size(), run.value.span().begin());
    PlacedAttention<T> placed(run);
    ops::AttentionInputs inputs = placed.inputs();
    inputs.value = inputs.source;
    ops::run(placed.plan, inputs, placed.outputs());
    ops::run_backward(placed.plan, inputs, placed.output.view(), placed.log_sum.view(),
                      placed.grad_output.view(), placed.gradients());
    placed.fetch();
    expect_matches_reference(run);
  }
}

/// As in layers: one matrix is both, and both at once may be brought from it.
TEST_P(NarrowGatV2Kernels, ValuesThatAreTheSources) {
  const Graph wide = testing::random_graph(210, 190, 4000, 38, false);
  const Graph hub = testing::star_graph(5000);
  for_instruction_sets([&](const std::string& kernel) {
    for (const Graph& graph : {wide, hub}) {
      check_values_that_are_sources<Bfloat16>(kernel, graph);
      if (on_cpu(kernel)) continue;
      check_values_that_are_sources<Float16>(kernel, graph);
      check_values_that_are_sources<float>(kernel, graph);
    }
  });
}

/// Pairs of rows of 0 to 20 edges, an odd number of them, beside rows that are cut: halves of a
/// warp end at different times, and either may have nothing to do.
TEST_P(NarrowGatV2Kernels, NeighboursOfOtherLengths) {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  constexpr VertexId num_rows = 143, num_columns = 9000;
  for (VertexId row = 0; row < num_rows; ++row) {
    const VertexId degree = row == 60 ? 9000 : row == 81 ? 700 : row * row % 21;
    for (VertexId k = 0; k < degree; ++k) columns.push_back(k * (num_columns / degree));
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  const Graph graph(num_rows, num_columns, SharedArray<EdgeOffset>(std::move(offsets)),
                    SharedArray<VertexId>(std::move(columns)));
  for_instruction_sets([&](const std::string& kernel) {
    for (const std::int64_t width : {32, 64, 128}) {
      if (!takes<Bfloat16>(kernel, 3, width)) continue;
      SCOPED_TRACE("width " + std::to_string(width));
      AttentionCase<Bfloat16> run =
          modest_case<Bfloat16>(graph, options_of(kernel, AttentionForm::gatv2, 3, width, 0), 3690);
      run.run_all();
      expect_matches_reference(run);
    }
  });
}

/// More rows than a GPU has warps for, of up to `most` edges, with a stretch of empty ones and some
/// long ones among them.
Graph graph_of_many_rows(VertexId most) {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  constexpr VertexId num_rows = 40000, num_columns = 3001;
  for (VertexId row = 0; row < num_rows; ++row) {
    const VertexId degree = row > 9000 && row < 9100 ? 0
                            : row % 4999 == 7        ? 300
                                                     : row * 7 % (most + 1);
    for (VertexId k = 0; k < degree; ++k) columns.push_back(row % 37 + k * 9);
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  return Graph(num_rows, num_columns, SharedArray<EdgeOffset>(std::move(offsets)),
               SharedArray<VertexId>(std::move(columns)));
}

/// A warp takes many rows one after another, what belongs to the next while these are computed.
TEST_P(NarrowGatV2Kernels, ManyRowsOfAWarp) {
  for (const auto& [most, width] : {std::pair{8, 32}, std::pair{8, 64}, std::pair{19, 64}}) {
    const Graph graph = graph_of_many_rows(most);
    for_instruction_sets([&, width = width](const std::string& kernel) {
      SCOPED_TRACE("width " + std::to_string(width));
      const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 1, width, 0);
      AttentionCase<Bfloat16> run = modest_case<Bfloat16>(graph, options, 3695);
      run.run_all();
      expect_matches_reference(run);
    });
  }
}

TEST_P(NarrowGatV2Kernels, HubsOnBothSides) {
  const Graph graph = testing::star_graph(20000);
  for_instruction_sets([&](const std::string& kernel) {
    for (const std::int64_t width : {32, 64}) {
      if (!takes<Bfloat16>(kernel, 1, width)) continue;
      SCOPED_TRACE("width " + std::to_string(width));
      const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 1, width, 0);
      AttentionCase<Bfloat16> run = modest_case<Bfloat16>(graph, options, 3600);
      run.run_all();
      expect_matches_reference(run);
    }
  });
}

TEST_P(NarrowGatV2Kernels, ManySmallWeights) {
  for_instruction_sets([](const std::string& kernel) {
    for (const std::int64_t width : {32, 64, 128}) {
      check_small_weights<Bfloat16>(kernel, AttentionForm::gatv2, width);
      if (!on_cpu(kernel)) check_small_weights<Float16>(kernel, AttentionForm::gatv2, width);
    }
  });
}

/// Where a number that is not finite may reach, feature 9 of one operand: over windows every row
/// that uses a source of which it is, or the row of the target itself; of V all rows of a window of
/// 16 of which one uses it.
struct OddFeature {
  enum Operand { source, target, value };
  Operand operand;
  VertexId vertex;
  std::int64_t feature = 9;

  bool may_reach(const Graph& graph, VertexId row, std::int64_t of_result) const {
    if (operand == target) return row == vertex;
    if (operand == source) return uses(graph, row);
    if (of_result != feature) return false;
    const VertexId first = row / 16 * 16;
    for (VertexId i = first; i < std::min<VertexId>(first + 16, graph.num_rows()); ++i) {
      if (uses(graph, i)) return true;
    }
    return false;
  }

 private:
  bool uses(const Graph& graph, VertexId row) const {
    const auto neighbours = graph.neighbours(row);
    return std::find(neighbours.begin(), neighbours.end(), vertex) != neighbours.end();
  }
};

/// A number that is not finite makes no result a wrong number, and reaches no further than it may:
/// kernels that are exact have others where the reference has them, and nowhere else.
TEST_P(NarrowGatV2Kernels, NonFiniteFeaturesMakeNoWrongNumber) {
  const Graph graph = testing::random_graph(200, 300, 3000, 36, false);
  constexpr float inf = std::numeric_limits<float>::infinity();
  for_instruction_sets([&](const std::string& kernel) {
    const bool exact = testing::kernel_info(kernel).exact_nonfinite;
    for (const float number : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
      for (const OddFeature& odd :
           {OddFeature{OddFeature::source, 150}, OddFeature{OddFeature::target, 20},
            OddFeature{OddFeature::value, 150}}) {
        SCOPED_TRACE(std::to_string(number) + " in operand " + std::to_string(odd.operand));
        const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 1, 64, 0);
        AttentionCase<Bfloat16> run = modest_case<Bfloat16>(graph, options, 3700);
        Matrix<Bfloat16>& operand = odd.operand == OddFeature::source   ? run.source
                                    : odd.operand == OddFeature::target ? run.target
                                                                        : run.value;
        operand(odd.vertex, odd.feature) = static_cast<Bfloat16>(number);
        run.run_all();
        const AttentionCase<double> expected = reference_of(run);
        for (VertexId i = 0; i < graph.num_rows(); ++i) {
          for (std::int64_t f = 0; f < run.output.cols(); ++f) {
            const auto computed = static_cast<float>(run.output(i, f));
            const auto right = static_cast<float>(expected.output(i, f));
            const bool may_differ = exact ? !std::isfinite(right) : odd.may_reach(graph, i, f);
            if (!std::isfinite(computed) && may_differ) continue;
            ASSERT_NEAR(computed, right, 0.02f * (1 + std::abs(right))) << i << ", " << f;
          }
        }
      }
    }
  });
}

/// Whatever else is wanted.
TEST_P(NarrowGatV2Kernels, EachGradientAloneIsTheSame) {
  const Graph graph = testing::random_graph(150, 140, 2000, 37, false);
  for_instruction_sets([&](const std::string& kernel) {
    const AttentionOptions options = options_of(kernel, AttentionForm::gatv2, 2, 64, 0);
    AttentionCase<Bfloat16> all = modest_case<Bfloat16>(graph, options, 3800);
    all.run_all();
    for (int wanted = 0; wanted < 4; ++wanted) {
      SCOPED_TRACE("gradient " + std::to_string(wanted));
      AttentionCase<Bfloat16> one = modest_case<Bfloat16>(graph, options, 3800);
      PlacedAttention<Bfloat16> placed(one);
      placed.run_forward();
      const ops::AttentionGradOutputs whole = placed.gradients();
      ops::AttentionGradOutputs part;
      if (wanted == 0) part.target = whole.target;
      if (wanted == 1) part.source = whole.source;
      if (wanted == 2) part.value = whole.value;
      if (wanted == 3) part.vector = whole.vector;
      placed.run_backward(part);
      placed.fetch();
      const auto close = [](const Matrix<Bfloat16>& a, const Matrix<Bfloat16>& b) {
        return largest_difference(a, to_double(b)) < 1e-2;
      };
      EXPECT_TRUE(wanted != 0 || close(one.grad_target, all.grad_target));
      EXPECT_TRUE(wanted != 1 || close(one.grad_source, all.grad_source));
      EXPECT_TRUE(wanted != 2 || close(one.grad_value, all.grad_value));
      EXPECT_TRUE(wanted != 3 || close(one.grad_vector, all.grad_vector));
      EXPECT_EQ(std::isnan(static_cast<float>(one.grad_target(0, 0))), wanted != 0);
      EXPECT_EQ(std::isnan(static_cast<float>(one.grad_value(0, 0))), wanted != 2);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, NarrowGatV2Kernels, ::testing::ValuesIn(narrow_kernels()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
