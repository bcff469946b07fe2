// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/edge_softmax.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "ops/edge_softmax/reference.hpp"

namespace tessera::bench {
namespace {

/// The weights of every edge; the width of a problem is its number of heads.
template <class T>
class EdgeSoftmax : public Trial {
 public:
  explicit EdgeSoftmax(const Problem& problem)
      : plan_(ops::plan_edge_softmax(problem.graph, options_of(problem))),
        seed_(problem.seed),
        sample_size_(sample_size(problem)),
        scores_(random_placed<T>(problem.graph.num_edges(), problem.features, problem.seed,
                                 problem.device)),
        weights_(problem.graph.num_edges(), problem.features, problem.device) {}

  Gate check() override {
    // Beside the sum, the exponential rounds.
    constexpr double exponential = 1e-6;
    run({});
    const RowSample sample = sample_rows(plan_.graph(), seed_, sample_size_);
    const Matrix<double> scores = scores_.input_rows(sample.edges);
    const Matrix<double> computed = weights_.result_rows(sample.edges);
    Matrix<double> expected(scores.rows(), scores.cols());
    ops::reference::edge_softmax(sample.graph, scores, expected);
    const Precision precision = plan_.options().precision;
    const ErrorMeasure measure({.stored = precision,
                                .terms = longest_row(sample.graph),
                                .more = precision == Precision::fp64 ? 0 : exponential});
    return {measure.largest_error(computed.view(), expected, expected), measure.bound(),
            sample.graph.num_rows(), plan_.graph().num_rows()};
  }
  void run(Stream stream) override { ops::run(plan_, scores_, weights_, stream); }
  std::int64_t bytes() const override {
    const auto offsets = static_cast<std::int64_t>(sizeof(EdgeOffset));
    return offsets * plan_.graph().row_offsets().size() + scores_.bytes() + weights_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  static ops::EdgeSoftmaxOptions options_of(const Problem& problem) {
    ops::EdgeSoftmaxOptions options;
    set_run_options(problem, options);
    options.precision = problem.precision;
    options.heads = features_as_heads(problem);
    return options;
  }

  ops::EdgeSoftmaxPlan plan_;
  std::uint64_t seed_;
  SampleSize sample_size_;
  Placed<T> scores_, weights_;
};

}  // namespace

std::vector<Suite> edge_softmax_suites() {
  Suite suite{"edge_softmax",
              "weights of every edge that sum to 1 for each target; features are heads",
              {"edge_softmax"},
              {Precision::fp32, Precision::fp64, Precision::bf16},
              0,
              [](const Problem& problem) { return prepare_stored<EdgeSoftmax>(problem); },
              {1, 8}};
  return {suite};
}

}  // namespace tessera::bench
