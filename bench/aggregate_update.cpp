// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/aggregate_update.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "core/number_limits.hpp"
#include "ops/gemm/reference.hpp"
#include "ops/spmm/reference.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::bench {
namespace {

using ops::Reduction;
using ops::Transpose;

/// As many features out as in, and the target's own features as of GIN where the graph is square.
ops::AggregateUpdateOptions options_of(const Problem& problem) {
  ops::AggregateUpdateOptions options;
  set_run_options(problem, options);
  options.precision = problem.precision;
  options.in = options.out = problem.features;
  options.self = problem.graph.num_rows() == problem.graph.num_cols();
  return options;
}

/// A number that is `distance` nearer to another, or that one. What is not finite stays.
double towards(double from, double to, double distance) {
  if (!std::isfinite(from) || !std::isfinite(to)) return from;
  const double apart = from - to;
  return std::abs(apart) <= distance ? to : from - std::copysign(distance, apart);
}

/// Compares rows of (A X + X) op(W) with the reference.
template <class T>
Gate compare(const RowSample& sample, const ops::AggregateUpdateOptions& options,
             Transpose transpose, const Placed<T>& x, const Placed<T>& weight, Placed<T>& y) {
  const Matrix<double> sources = x.input_rows(sample.cols);
  const Matrix<double> computed = y.result_rows(sample.rows);
  const Matrix<double> factors =
      gather(weight.host().view(), spread_rows(weight.rows(), weight.rows()));
  Matrix<double> sums(computed.rows(), x.cols()), sizes(computed.rows(), x.cols());
  ops::reference::spmm(sample.graph, Reduction::sum, sources, {}, sums);
  ops::reference::spmm_magnitude(sample.graph, Reduction::sum, sources, {}, sizes);
  if (options.self) {
    const Matrix<double> own = x.input_rows(sample.rows);
    for (std::int64_t i = 0; i < sums.size(); ++i) {
      sums.data()[i] += own.data()[i];
      sizes.data()[i] += own.data()[i] < 0 ? -own.data()[i] : own.data()[i];
    }
  }
  Matrix<double> expected(computed.rows(), computed.cols());
  Matrix<double> magnitude(computed.rows(), computed.cols());
  ops::reference::gemm(Transpose::no, transpose, 1, sums, factors, 0, expected);
  ops::reference::gemm(
      Transpose::no, transpose, 1, sizes,
      absolute(gather(weight.host().view(), spread_rows(weight.rows(), weight.rows()))), 0,
      magnitude);
  // A matrix between two stages is rounded as its features are.
  const bool narrow = bytes_per_element(options.precision) == 2;
  const ErrorMeasure measure({.stored = options.precision,
                              .strict = false,
                              .terms = longest_row(sample.graph) + x.cols(),
                              .more = narrow ? 0x1p-8 : 0});
  // What the smallest numbers lose before they meet the weights: where sums are stored between two
  // stages, or are cut into planes of bf16.
  const NumberLimits stored = limits_of(options.precision);
  const double lost =
      options.precision == Precision::fp64
          ? 0
          : std::max(stored.smallest_step, limits_of(Precision::bf16).smallest_step);
  double worst = 0;
  for (std::int64_t i = 0; i < computed.rows(); ++i) {
    // Sums that pass the end of their type may have come up on the way.
    const double* const of_row = sizes.row(i);
    const bool passes = std::any_of(of_row, of_row + sizes.cols(),
                                    [&](double size) { return size >= stored.largest; });
    for (std::int64_t j = 0; j < computed.cols(); ++j) {
      double weights = 0;
      for (std::int64_t k = 0; k < sizes.cols(); ++k) {
        weights += std::abs(transpose == Transpose::yes ? factors(j, k) : factors(k, j));
      }
      if (passes && !std::isfinite(computed(i, j))) continue;
      const double nearer = towards(computed(i, j), expected(i, j), lost * weights);
      worst = std::max(worst, measure.error_of(nearer, expected(i, j), magnitude(i, j)));
    }
  }
  return {worst, measure.bound(), computed.rows(), y.rows()};
}

/// Y = (A X + X) W^T.
template <class T>
class UpdateForward : public Trial {
 public:
  UpdateForward(const Problem& problem, bool keeps)
      : plan_(ops::plan_aggregate_update(problem.graph, forward_options(problem, keeps))),
        seed_(problem.seed),
        sample_size_(sample_size(problem)),
        x_(random_placed<T>(problem.graph.num_cols(), problem.features, problem.seed,
                            problem.device)),
        weight_(
            random_placed<T>(problem.features, problem.features, problem.seed + 1, problem.device)),
        y_(problem.graph.num_rows(), problem.features, problem.device),
        aggregated_(keeps ? problem.graph.num_rows() : 0, keeps ? problem.features : 0,
                    problem.device),
        products_(problem.device) {
    outputs_.y = y_;
    if (keeps) outputs_.aggregated = aggregated_;
  }

  Gate check() override {
    run({});
    return compare(sample_rows(plan_.graph(), seed_, sample_size_), plan_.options(), Transpose::yes,
                   x_, weight_, y_);
  }
  void run(Stream stream) override {
    ops::run(plan_, {x_, weight_}, outputs_, stream, {}, &products_);
  }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + weight_bytes(plan_.graph()) +
           x_.bytes() + weight_.bytes() + y_.bytes() + aggregated_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  static ops::AggregateUpdateOptions forward_options(const Problem& problem, bool keeps) {
    ops::AggregateUpdateOptions options = options_of(problem);
    options.keep_aggregated = keeps;
    return options;
  }

  ops::AggregateUpdatePlan plan_;
  std::uint64_t seed_;
  SampleSize sample_size_;
  Placed<T> x_, weight_, y_, aggregated_;
  ops::DenseWorkspace products_;
  ops::AggregateUpdateOutputs outputs_;
};

/// dX = (A^T dY + dY) W, and dW = dY^T Z.
template <class T>
class UpdateBackward : public Trial {
 public:
  explicit UpdateBackward(const Problem& problem)
      : plan_(ops::plan_aggregate_update(problem.graph, backward_options(problem))),
        seed_(problem.seed),
        sample_size_(sample_size(problem)),
        grad_y_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed,
                                 problem.device)),
        aggregated_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed + 2,
                                     problem.device)),
        weight_(
            random_placed<T>(problem.features, problem.features, problem.seed + 1, problem.device)),
        grad_x_(problem.graph.num_cols(), problem.features, problem.device),
        grad_weight_(problem.features, problem.features, problem.device),
        products_(problem.device) {
    inputs_.grad_y = grad_y_;
    inputs_.weight = weight_;
    inputs_.aggregated = aggregated_;
  }

  Gate check() override {
    run({});
    return compare(sample_rows(transposed(plan_.graph()), seed_, sample_size_), plan_.options(),
                   Transpose::no, grad_y_, weight_, grad_x_);
  }
  void run(Stream stream) override {
    ops::run_backward(plan_, inputs_, {grad_x_, grad_weight_}, stream, {}, &products_);
  }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + weight_bytes(plan_.graph()) +
           grad_y_.bytes() + aggregated_.bytes() + weight_.bytes() + grad_x_.bytes() +
           grad_weight_.bytes();
  }
  std::string kernel() const override {
    for (const ops::Candidate& candidate : explanation().candidates) {
      if (candidate.verdict == "chosen") return candidate.kernel;
    }
    return plan_.options().backward_kernel;
  }
  std::string plan() const override { return explanation().summary; }

 private:
  static ops::AggregateUpdateOptions backward_options(const Problem& problem) {
    ops::AggregateUpdateOptions options = options_of(problem);
    options.backward = true;
    std::swap(options.kernel, options.backward_kernel);
    return options;
  }
  ops::Explanation explanation() const { return *find_child(plan_.explain(), "backward"); }

  ops::AggregateUpdatePlan plan_;
  std::uint64_t seed_;
  SampleSize sample_size_;
  Placed<T> grad_y_, aggregated_, weight_, grad_x_, grad_weight_;
  ops::DenseWorkspace products_;
  ops::AggregateUpdateGradInputs inputs_;
};

Suite suite_of(const char* name, const char* summary,
               std::function<std::unique_ptr<Trial>(const Problem&)> prepare) {
  return {name,
          summary,
          {"aggregate_update"},
          {Precision::fp32, Precision::fp64, Precision::bf16},
          0,
          std::move(prepare)};
}

}  // namespace

std::vector<Suite> aggregate_update_suites() {
  return {
      suite_of(
          "aggregate_update", "(A X + X) W, sums and product in one op",
          [](const Problem& problem) { return prepare_stored<UpdateForward>(problem, false); }),
      suite_of("aggregate_update_kept", "the same, with the sums kept for a backward pass",
               [](const Problem& problem) { return prepare_stored<UpdateForward>(problem, true); }),
      suite_of("aggregate_update_backward",
               "its gradients: (A^T dY + dY) W, and that of the weight",
               [](const Problem& problem) { return prepare_stored<UpdateBackward>(problem); }),
  };
}

}  // namespace tessera::bench
