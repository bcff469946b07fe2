// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"
#include "support/kernel_names.hpp"
#include "support/odd_graphs.hpp"
#include "support/slopes.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/ops/attention.hpp"

/// What every kernel of attention does in every form, type and shape of heads that it has ways of
/// its own for: gradients are those of its own forward pass, recordings read inputs that have
/// changed, long rows are right. attention_cosine_test.cpp has cosines.
namespace tessera::test {
namespace {

struct Heads {
  std::int64_t count, width;
};

/// Kernels over windows have some of these widths alone.
constexpr Heads shapes[] = {{2, 3}, {8, 8}, {8, 16}, {4, 32}, {1, 64}, {2, 128}};

class AttentionPaths : public AttentionKernelTest {
 protected:
  /// body.operator()<T>(options), for all that the kernel takes.
  template <class Body>
  void for_paths(Body&& body) {
    for (const AttentionForm form : all_forms) {
      for (const Heads& heads : shapes) {
        const AttentionOptions options = options_of(GetParam(), form, heads.count, heads.width, 0);
        with_type<float>(options, body);
        with_type<Bfloat16>(options, body);
        if (!on_cpu(GetParam())) with_type<Float16>(options, body);
      }
    }
  }

 private:
  template <class T, class Body>
  static void with_type(AttentionOptions options, Body&& body) {
    options.precision = ops::PrecisionOf<T>::value;
    if (!supports(options.kernel, options)) return testing::note_declined(describe(options));
    SCOPED_TRACE(describe(options) + ", " + to_string(options.precision));
    body.template operator()<T>(options);
  }
};

template <class T, class Function>
void for_elements(Matrix<T>& matrix, Function&& function) {
  for (T& element : matrix.span()) {
    const double changed = function(static_cast<double>(static_cast<float>(element)));
    element = static_cast<T>(static_cast<float>(changed));
  }
}

/// Numbers of few digits, so that types of 16 bits hold them and what stands a step beside them.
/// Sums of a target and a source are odd multiples of 1/8: no step crosses the bend of leaky_relu.
template <class T>
void make_steps_possible(AttentionCase<T>& run) {
  const auto multiple_of = [](double unit, double more = 0) {
    return [unit, more](double x) {
      return unit * std::round(std::clamp(x, -1.5, 1.5) / unit) + more;
    };
  };
  for_elements(run.target, multiple_of(0x1p-2));
  for_elements(run.source, multiple_of(0x1p-2, 0x1p-3));
  for_elements(run.value, multiple_of(0x1p-2));
  const auto width = static_cast<double>(run.options.features / run.options.heads);
  for_elements(run.vector, [&](double x) { return multiple_of(0x1p-5)(x / std::sqrt(width)); });
}

template <class T>
Loss loss_of(AttentionCase<T>& run, const ops::AttentionPlan& plan) {
  PlacedAttention<T> placed(run, plan);
  placed.run_forward();
  placed.output.fetch();
  return loss_between(run.output, run.grad_output);
}

TEST_P(AttentionPaths, GradientsAreSlopesOfTheForwardPass) {
  const Graph graph = testing::random_graph(150, 130, 900, 61, false);
  for_paths([&]<class T>(const AttentionOptions& options) {
    AttentionCase<T> run(graph, options, 4000);
    make_steps_possible(run);
    run.run_all();
    const ops::AttentionPlan plan = ops::plan_attention(graph, run.options);
    // Steps of many features together move a score further.
    const double of_score = options.form == AttentionForm::gat ? 0x1p-3 : 0x1p-6;
    const auto of_target = numbers_of(run.grad_target), of_source = numbers_of(run.grad_source);
    const auto of_value = numbers_of(run.grad_value), of_vector = numbers_of(run.grad_vector);
    const auto loss = [&] { return loss_of(run, plan); };
    expect_slope(loss, run.target, of_target, of_score, "target");
    expect_slope(loss, run.source, of_source, of_score, "source");
    expect_slope(loss, run.value, of_value, 0x1p-3, "value");
    if (options.form == AttentionForm::gatv2) {
      expect_slope(loss, run.vector, of_vector, 0x1p-6, "vector");
    }
  });
}

template <class T>
void take_operands(AttentionCase<T>& to, const AttentionCase<T>& from) {
  const auto copy = [](Matrix<T>& into, const Matrix<T>& of) {
    std::copy(of.span().begin(), of.span().end(), into.span().begin());
  };
  copy(to.target, from.target);
  copy(to.source, from.source);
  copy(to.value, from.value);
  copy(to.vector, from.vector);
  copy(to.grad_output, from.grad_output);
}

TEST_P(AttentionPaths, RecordingsReadWhatHasChanged) {
  if (on_cpu(GetParam())) GTEST_SKIP() << "only a GPU records; tools/gpu.sh test runs it";
  const std::vector<Graph> graphs = {testing::random_graph(300, 200, 2500, 62, false),
                                     testing::hub_graph(40, 3000, 63)};
  for_paths([&]<class T>(const AttentionOptions& options) {
    for (const Graph& graph : graphs) {
      AttentionCase<T> run(graph, options, 4100), other(graph, options, 4200);
      PlacedAttention<T> placed(run);
      const auto work = [&](Stream stream) {
        placed.run_forward(stream);
        placed.run_backward(placed.gradients(), stream);
      };
      work({});
      const Recording recording = Recording::of(placed.device, work);
      recording.replay();
      take_operands(run, other);
      placed.send();
      recording.replay();
      placed.fetch();
      other.run_all();
      expect_same_results(run, other);
    }
  });
}

TEST_P(AttentionPaths, HubsOnBothSidesOfWindows) {
  if (!forms_of(GetParam()).empty()) {
    GTEST_SKIP() << "AttentionKernels.HubsOnBothSides runs kernels that take heads of any width";
  }
  // Forty pieces and two hundred, more than a warp has lanes. References of long rows take their
  // time: one width of both shapes of heads, and the larger star for one of them.
  const Graph star = testing::star_graph(20000), large_star = testing::star_graph(100000);
  for_paths([&]<class T>(const AttentionOptions& options) {
    if (options.features != 64 || std::is_same_v<T, Float16>) return;
    const bool is_large = options.heads == 1 && std::is_same_v<T, Bfloat16>;
    AttentionCase<T> run(is_large ? large_star : star, options, 4300);
    make_steps_possible(run);
    run.run_all();
    expect_matches_reference(run);
  });
}

INSTANTIATE_TEST_SUITE_P(All, AttentionPaths, ::testing::ValuesIn(kernels_without_terms()),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::test
