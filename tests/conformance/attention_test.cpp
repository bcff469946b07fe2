// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/attention.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/attention_weights.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/kernel_names.hpp"
#include "support/many_rows.hpp"
#include "support/odd_graphs.hpp"
#include "support/placed.hpp"

/// Every registered attention kernel against the reference.
namespace tessera::test {
namespace {

class AttentionKernels : public AttentionKernelTest {};

template <class T>
void check(const Graph& graph, AttentionOptions options, std::uint64_t seed) {
  options.precision = ops::PrecisionOf<T>::value;
  if (!supports(options.kernel, options)) return testing::note_declined(describe(options));
  SCOPED_TRACE(describe(options) + ", " + to_string(ops::PrecisionOf<T>::value) + ", seed " +
               std::to_string(seed));
  AttentionCase<T> run(graph, options, seed);
  run.run_all();
  expect_matches_reference(run);
}

void check_all_precisions(const Graph& graph, const AttentionOptions& options, std::uint64_t seed) {
  check<float>(graph, options, seed);
  check<Bfloat16>(graph, options, seed);
  if (on_cpu(options.kernel)) {
    check<double>(graph, options, seed);
  } else {
    check<Float16>(graph, options, seed);
  }
}

TEST_P(AttentionKernels, OddGraphs) {
  must_compare();
  for_instruction_sets([](const std::string& kernel) {
    for (const testing::NamedGraph& odd : testing::odd_patterns()) {
      SCOPED_TRACE(odd.name);
      for (const AttentionForm form : forms_of_any(kernel)) {
        check_all_precisions(odd.graph, options_of(kernel, form, 8, 8, 0), 100);
        check_all_precisions(odd.graph, options_of(kernel, form, 3, 7, 0.4), 200);
        check<Bfloat16>(odd.graph, options_of(kernel, form, 2, 32, 0), 150);
        check<Bfloat16>(odd.graph, options_of(kernel, form, 2, 64, 0), 160);
        if (!on_cpu(kernel)) check<Float16>(odd.graph, options_of(kernel, form, 2, 64, 0), 170);
      }
    }
  });
}

TEST_P(AttentionKernels, AnyNumberOfHeadsAndWidth) {
  const Graph graph = testing::random_graph(33, 21, 250, 5, false);
  const std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {
      {1, 0},  {1, 1},  {1, 7},  {1, 8},  {1, 33},  {1, 64}, {1, 257}, {2, 5},  {2, 16},
      {3, 1},  {3, 8},  {3, 33}, {4, 24}, {5, 3},   {8, 1},  {8, 7},   {8, 33}, {8, 64},
      {12, 4}, {16, 2}, {17, 9}, {33, 1}, {32, 32}, {2, 3},  {8, 3},   {4, 6}};
  for_instruction_sets([&](const std::string& kernel) {
    for (const auto& [heads, width] : shapes) {
      for (const AttentionForm form : forms_of_any(kernel)) {
        check_all_precisions(graph, options_of(kernel, form, heads, width, 0), 300);
        check_all_precisions(graph, options_of(kernel, form, heads, width, 0.6), 400);
      }
    }
  });
}

TEST_P(AttentionKernels, HubsOnBothSides) {
  const Graph graph = testing::star_graph(100000);
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : forms_of_any(kernel)) {
      check<float>(graph, options_of(kernel, form, 2, 4, 0), 500);
      check<float>(graph, options_of(kernel, form, 1, 3, 0.5), 501);
      check<float>(graph, options_of(kernel, form, 2, 3, 0.5), 502);
      check<Bfloat16>(graph, options_of(kernel, form, 2, 8, 0), 503);
    }
  });
}

TEST_P(AttentionKernels, ManyRowsOfDifferentLengths) {
  if (GetParam() != "attention/cuda/rows")
    GTEST_SKIP() << "of attention/cuda/rows alone, where it runs";
  const std::string& kernel = GetParam();
  const Graph graph = testing::many_rows_of_different_lengths(41);
  check<Bfloat16>(graph, options_of(kernel, AttentionForm::gat, 8, 8, 0), 510);
  check<float>(graph, options_of(kernel, AttentionForm::gat, 8, 2, 0.3), 511);
  check<Float16>(graph, options_of(kernel, AttentionForm::gat, 1, 32, 0), 512);
  check<float>(graph, options_of(kernel, AttentionForm::dot, 4, 4, 0), 513);
  check<Bfloat16>(graph, options_of(kernel, AttentionForm::dot, 2, 8, 0.3), 514);
  check<float>(graph, options_of(kernel, AttentionForm::gatv2, 2, 5, 0), 515);
  check<Bfloat16>(graph, options_of(kernel, AttentionForm::gatv2, 1, 16, 0), 516);
}

TEST_P(AttentionKernels, SameBitsForAnyNumberOfThreads) {
  std::vector<testing::NamedGraph> graphs;
  graphs.push_back({"random", testing::random_graph(3000, 2500, 20000, 8, false)});
  graphs.push_back({"star", testing::star_graph(9000)});
  for_instruction_sets([&](const std::string& kernel) {
    for (const testing::NamedGraph& named : graphs) {
      for (const AttentionForm form : forms_of(kernel)) {
        const AttentionOptions options = options_of(kernel, form, 3, 8, 0.3);
        const auto run_with = [&](int threads) {
          const testing::ThreadScope scope(threads);
          AttentionCase<float> run(named.graph, options, 800);
          run.run_all();
          return run;
        };
        const AttentionCase<float> once = run_with(1);
        for (const int threads : {1, 2, 3}) {
          SCOPED_TRACE(named.name + ", " + describe(options) + ", threads " +
                       std::to_string(threads));
          expect_same_results(once, run_with(threads));
        }
      }
    }
  });
}

/// In double precision, on a directed rectangular graph, with dropout.
TEST_P(AttentionKernels, GradientsAgreeWithFiniteDifferences) {
  const Graph graph = testing::random_graph(7, 5, 18, 9, false);
  for_instruction_sets([&](const std::string& kernel) {
    if (!on_cpu(kernel)) return;  // fp64 exists on the CPU only
    for (const AttentionForm form : forms_of(kernel)) {
      SCOPED_TRACE(to_string(form));
      AttentionCase<double> run(graph, options_of(kernel, form, 2, 3, 0.3), 900);
      run.run_all();
      const ops::AttentionPlan plan = ops::plan_attention(graph, run.options);
      Matrix<double> output(graph.num_rows(), run.options.features);
      const auto loss = [&] {
        ops::run(plan, run.inputs(), {output, {}});
        return inner_product(output, run.grad_output);
      };
      expect_gradient(loss, run.target, run.grad_target);
      expect_gradient(loss, run.source, run.grad_source);
      expect_gradient(loss, run.value, run.grad_value);
      if (form == AttentionForm::gatv2) expect_gradient(loss, run.vector, run.grad_vector);
      if (form == AttentionForm::dot) {
        expect_gradient(loss, MatrixView<double>(&run.scale, 1, 1),
                        MatrixView<const double>(&run.grad_scale, 1, 1));
      }
    }
  });
}

TEST_P(AttentionKernels, EachGradientAloneIsTheSame) {
  const Graph graph = testing::random_graph(50, 40, 400, 10, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : forms_of(kernel)) {
      SCOPED_TRACE(to_string(form));
      const AttentionOptions options = options_of(kernel, form, 2, 9, 0.2);
      AttentionCase<float> all(graph, options, 1000);
      all.run_all();
      for (int wanted = 0; wanted < 5; ++wanted) {
        AttentionCase<float> one(graph, options, 1000);
        PlacedAttention<float> placed(one);
        placed.run_forward();
        const ops::AttentionGradOutputs whole = placed.gradients();
        ops::AttentionGradOutputs part;
        if (wanted == 0) part.target = whole.target;
        if (wanted == 1) part.source = whole.source;
        if (wanted == 2) part.value = whole.value;
        if (wanted == 3) part.vector = whole.vector;
        if (wanted == 4) part.scale = whole.scale;
        placed.run_backward(part);
        placed.fetch();
        // Passes that compute less may round differently, by as much as fusing a multiply and an
        // add changes.
        const auto close = [](const Matrix<float>& a, const Matrix<float>& b) {
          return test::largest_difference(a, test::to_double(b)) < 1e-6;
        };
        EXPECT_TRUE(wanted != 0 || close(one.grad_target, all.grad_target));
        EXPECT_TRUE(wanted != 1 || close(one.grad_source, all.grad_source));
        EXPECT_TRUE(wanted != 2 || close(one.grad_value, all.grad_value));
        EXPECT_TRUE(wanted != 3 || whole.vector.absent() ||
                    close(one.grad_vector, all.grad_vector));
        EXPECT_TRUE(wanted != 4 || whole.scale == nullptr ||
                    std::abs(one.grad_scale - all.grad_scale) <
                        1e-6 * (1 + std::abs(all.grad_scale)));
        // What was not asked for is not touched.
        EXPECT_EQ(std::isnan(one.grad_target(0, 0)), wanted != 0);
        EXPECT_EQ(std::isnan(one.grad_value(0, 0)), wanted != 2);
      }
    }
  });
}

/// Runs a case on operands with margins, made by `pad`, which must stay as they are.
template <class T, class Pad>
void run_padded(AttentionCase<T>& run, Pad pad) {
  run.run_all();
  auto target = pad(run.target), source = pad(run.source), value = pad(run.value),
       vector = pad(run.vector), grad_output = pad(run.grad_output);
  auto output = pad(run.output), grad_target = pad(run.target), grad_source = pad(run.source),
       grad_value = pad(run.value);
  auto log_sum = pad(run.log_sum);
  const Device device = run.options.device;
  Placed<T> on_target(target, device), on_source(source, device), on_value(value, device),
      on_vector(vector, device), on_grad_output(grad_output, device);
  Placed<T> on_output(output, device), on_grad_target(grad_target, device),
      on_grad_source(grad_source, device), on_grad_value(grad_value, device);
  Placed on_log_sum(log_sum, device);
  ops::AttentionInputs inputs = run.inputs();
  inputs.target = on_target.view();
  inputs.source = on_source.view();
  inputs.value = on_value.view();
  if (run.options.form == AttentionForm::gatv2) inputs.vector = on_vector.view();
  const ops::AttentionPlan plan = ops::plan_attention(run.graph, run.options);
  ops::run(plan, inputs, {on_output.view(), on_log_sum.view()});
  ops::run_backward(
      plan, inputs, on_output.view(), on_log_sum.view(), on_grad_output.view(),
      {on_grad_target.view(), on_grad_source.view(), on_grad_value.view(), {}, nullptr});
  const auto take = [](auto& placed, auto& padded, auto& to) {
    placed.fetch();
    EXPECT_TRUE(padded.margins_intact());
    to = padded.inner();
  };
  take(on_output, output, run.output);
  take(on_log_sum, log_sum, run.log_sum);
  take(on_grad_target, grad_target, run.grad_target);
  take(on_grad_source, grad_source, run.grad_source);
  take(on_grad_value, grad_value, run.grad_value);
}

TEST_P(AttentionKernels, StridedViews) {
  const Graph graph = testing::random_graph(17, 15, 90, 11, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const auto& [form, width] : forms_and_widths(kernel, {7, 3})) {
      SCOPED_TRACE(std::string(to_string(form)) + ", width " + std::to_string(width));
      AttentionCase<float> run(graph, options_of(kernel, form, 3, width, 0.25), 1100);
      run_padded(run, []<class T>(const Matrix<T>& matrix) { return Padded<T>(matrix); });
      expect_matches_reference(run);
    }
  });
}

/// On boundaries of 16 bytes, as windows want them, and on none, where rows do their work.
TEST_P(AttentionKernels, StridedViewsOf16Bits) {
  const Graph graph = testing::random_graph(37, 45, 300, 19, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : forms_of_any(kernel)) {
      for (const std::int64_t width : {8, 64, 128}) {
        for (const std::int64_t margin : {8, 3}) {
          AttentionOptions options = options_of(kernel, form, 2, width, 0);
          options.precision = Precision::bf16;
          if (!supports(kernel, options)) continue;
          SCOPED_TRACE(describe(options) + ", margin " + std::to_string(margin));
          AttentionCase<Bfloat16> run(graph, options, 1150);
          run_padded(run,
                     [&]<class T>(const Matrix<T>& matrix) { return Padded<T>(matrix, margin); });
          expect_matches_reference(run);
        }
      }
    }
  });
}

template <class T>
void check_filled_rows(const Graph& graph, AttentionOptions options) {
  options.precision = ops::PrecisionOf<T>::value;
  if (!supports(options.kernel, options)) return testing::note_declined(describe(options));
  SCOPED_TRACE(describe(options) + ", " + to_string(options.precision));
  AttentionCase<T> run(graph, options, 1200);
  run_padded(run, []<class U>(const Matrix<U>& matrix) { return Padded<U>::filled(matrix, 8); });
  expect_matches_reference(run);
}

/// Rows begin on boundaries, but their features do not end on one: what lies behind them is no
/// feature, and behind the last row there is nothing.
TEST_P(AttentionKernels, RowsFilledUpToVectors) {
  const Graph graph = testing::random_graph(33, 31, 300, 14, false);
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : forms_of_any(kernel)) {
      for (const std::int64_t width : {9, 17, 22, 41, 67}) {
        check_filled_rows<float>(graph, options_of(kernel, form, 1, width, 0.25));
        check_filled_rows<Bfloat16>(graph, options_of(kernel, form, 1, width, 0));
      }
    }
  });
}

TEST_P(AttentionKernels, WeightsAreThoseOfTheReference) {
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : forms_of_any(kernel)) {
      for (const std::int64_t width : {8, 64}) {
        for (const double dropout : {0.0, 0.5}) {
          const AttentionOptions options = options_of(kernel, form, 3, width, dropout);
          check_weights<float>(options);
          check_weights<Bfloat16>(options);
          check_weights<Float16>(options);
        }
      }
    }
  });
}

TEST_P(AttentionKernels, BackwardDropsWhatItsOwnForwardRunDropped) {
  const Graph graph = testing::random_graph(60, 50, 400, 16, false);
  const std::vector<AttentionForm> forms = forms_of(GetParam());
  if (forms.empty()) GTEST_SKIP() << GetParam() << " takes no dropout; kernels that do run this";
  const AttentionForm form = forms.front();
  for_instruction_sets([&](const std::string& kernel) {
    for (const std::int64_t heads : {1, 3, 8, 11}) {
      SCOPED_TRACE(heads);
      AttentionCase<float> run(graph, options_of(kernel, form, heads, 4, 0.5), 1800);
      PlacedAttention<float> placed(run);
      placed.run_forward();
      AttentionCase<float> other(graph, run.options, 1900);
      other.random = run.random.at_step(run.random.step() + 1);
      PlacedAttention<float> placed_other(other, placed.plan);
      placed_other.run_forward();
      placed.run_backward(placed.gradients());
      placed.fetch();
      expect_matches_reference(run);
    }
  });
}

/// Graphs with so many edges for a row that sums are kept, one of them with a row that is cut; with
/// scores on either side of 0 and on one side alone.
TEST_P(AttentionKernels, GradientsAreRightWhateverTheForwardRunHasKept) {
  const std::vector<AttentionForm> forms = forms_of(GetParam());
  if (forms.empty()) GTEST_SKIP() << GetParam() << " takes no dropout; kernels that do run this";
  std::vector<testing::NamedGraph> graphs;
  graphs.push_back({"random", testing::random_graph(60, 70, 2400, 17, false)});
  graphs.push_back({"hub", testing::hub_graph(60, 20000, 18)});
  for_instruction_sets([&](const std::string& kernel) {
    for (const AttentionForm form : forms) {
      for (const auto& [name, graph] : graphs) {
        for (const bool keeps : {true, false}) {
          for (const float shift : {0.0f, -9.0f, 9.0f}) {
            SCOPED_TRACE(name + (keeps ? ", kept, " : ", not kept, ") + std::to_string(shift));
            AttentionCase<float> run(graph, options_of(kernel, form, 3, 4, 0.3), 1950);
            for (float& score : run.target.span()) score += shift;
            PlacedAttention<float> placed(run);
            placed.keeps = keeps;
            placed.run_forward();
            placed.run_backward(placed.gradients());
            placed.fetch();
            expect_matches_reference(run);
          }
        }
      }
    }
  });
}

TEST(AttentionConformance, RejectsWhatDoesNotFit) {
  const Graph graph = testing::random_graph(6, 5, 12, 15, false);
  AttentionCase<float> run(graph, options_of("", AttentionForm::gat, 2, 3, 0), 1700);
  const ops::AttentionPlan plan = ops::plan_attention(graph, run.options);
  const auto problem_with = [&](auto&& change) {
    ops::AttentionInputs inputs = run.inputs();
    ops::AttentionOutputs outputs{run.output, run.log_sum};
    change(inputs, outputs);
    return argument_problem([&] { ops::run(plan, inputs, outputs); });
  };
  EXPECT_NE(problem_with([&](auto& in, auto&) { in.target = run.source; }).find("5 x 2"),
            std::string::npos);
  EXPECT_NE(problem_with([&](auto& in, auto&) { in.value = {}; }).find("value"), std::string::npos);
  EXPECT_NE(problem_with([&](auto& in, auto&) {
              in.target.type = ElementType::bf16;
            }).find("target is bf16"),
            std::string::npos);
  EXPECT_NE(problem_with([&](auto&, auto& out) { out.log_sum = run.output; }).find("log_sum"),
            std::string::npos);
  EXPECT_NE(argument_problem([&] {
              double scale = 0;
              ops::run_backward(plan, run.inputs(), run.output, run.log_sum, run.grad_output,
                                {.scale = &scale});
            }).find("scale"),
            std::string::npos);
  AttentionOptions options = run.options;
  options.features = 7;
  EXPECT_NE(argument_problem([&] { ops::plan_attention(graph, options); }).find("2 heads"),
            std::string::npos);
  options = run.options;
  options.dropout = 1.5;
  EXPECT_NE(argument_problem([&] { ops::plan_attention(graph, options); }).find("dropout"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionKernels, ::testing::ValuesIn(kernels_without_terms()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
