// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <algorithm>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "ops/spmm/reference.hpp"

namespace tessera::bench {
namespace {

using ops::Reduction;

ops::SpmmOptions options_of(const Problem& problem, Reduction reduction) {
  ops::SpmmOptions options;
  set_plan_options(problem, options);
  options.reduction = reduction;
  options.precision = problem.precision;
  options.features = problem.features;
  return options;
}

RowSample sample_of(const Graph& graph, const ops::SpmmOptions& options, std::uint64_t seed) {
  return sample_rows(graph, seed, SampleSize::on(options.device, options.features));
}

double bound_of(const std::string& kernel, Precision precision) {
  const std::vector<ops::KernelInfo> kernels = ops::kernels("spmm");
  const auto named = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const ops::KernelInfo& info) { return info.name == kernel; });
  return error_bound(precision, named == kernels.end() || named->strict);
}

/// Compares the sampled rows of a sum over `sample` with the reference.
template <class T>
Gate compare_rows(const RowSample& sample, Reduction reduction, const Placed<T>& x, Placed<T>& y,
                  double bound) {
  const Matrix<double> sources = x.input_rows(sample.cols);
  const Matrix<double> computed = y.result_rows(sample.rows);
  Matrix<double> expected(computed.rows(), computed.cols());
  Matrix<double> magnitude(computed.rows(), computed.cols());
  // Features have nothing to do with each other: each thread takes some.
  constexpr std::int64_t slice = 16;
  parallel_ranges(computed.cols(), slice, [&](std::int64_t begin, std::int64_t end) {
    const auto some = [&](auto view) {
      return decltype(view)(view.data + begin, view.rows, end - begin, view.stride);
    };
    ops::reference::spmm(sample.graph, reduction, some(sources.view()), {}, some(expected.view()));
    ops::reference::spmm_magnitude(sample.graph, reduction, some(sources.view()), {},
                                   some(magnitude.view()));
  });
  return {largest_error(computed.view(), expected, magnitude), bound, computed.rows(), y.rows()};
}

template <class T>
class Forward : public Trial {
 public:
  Forward(const Problem& problem, Reduction reduction)
      : plan_(ops::plan_spmm(problem.graph, options_of(problem, reduction))),
        seed_(problem.seed),
        x_(random_placed<T>(problem.graph.num_cols(), problem.features, problem.seed,
                            problem.device)),
        y_(problem.graph.num_rows(), problem.features, problem.device) {}

  Gate check() override {
    run({});
    return compare_rows(sample_of(plan_.graph(), plan_.options(), seed_), plan_.options().reduction,
                        x_, y_, bound_of(kernel(), plan_.options().precision));
  }
  void run(Stream stream) override { ops::run(plan_, {x_}, {y_}, stream); }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + weight_bytes(plan_.graph()) +
           x_.bytes() + y_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  ops::SpmmPlan plan_;
  std::uint64_t seed_;
  Placed<T> x_, y_;
};

/// dX = A^T dY.
template <class T>
class Backward : public Trial {
 public:
  explicit Backward(const Problem& problem)
      : plan_(ops::plan_spmm_backward(problem.graph, options_of(problem, Reduction::sum))),
        seed_(problem.seed),
        grad_y_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed,
                                 problem.device)),
        grad_x_(problem.graph.num_cols(), problem.features, problem.device) {}

  Gate check() override {
    run({});
    return compare_rows(sample_of(transposed(plan_.graph()), plan_.options(), seed_),
                        Reduction::sum, grad_y_, grad_x_,
                        bound_of(kernel(), plan_.options().precision));
  }
  void run(Stream stream) override { ops::run(plan_, {grad_y_}, {grad_x_}, stream); }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + weight_bytes(plan_.graph()) +
           grad_x_.bytes() + grad_y_.bytes();
  }
  std::string kernel() const override {
    for (const ops::Candidate& candidate : plan_.explain().candidates) {
      if (candidate.verdict == "chosen") return candidate.kernel;
    }
    return plan_.options().kernel;
  }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  ops::SpmmBackwardPlan plan_;
  std::uint64_t seed_;
  Placed<T> grad_y_, grad_x_;
};

Suite forward_suite(const char* name, const char* summary, Reduction reduction) {
  return {
      name,
      summary,
      {"spmm"},
      {Precision::fp32, Precision::fp64, Precision::bf16},
      false,
      [reduction](const Problem& problem) { return prepare_stored<Forward>(problem, reduction); }};
}

}  // namespace

std::vector<Suite> spmm_suites() {
  return {
      forward_suite("spmm", "A X, the sum over each target's sources", Reduction::sum),
      forward_suite("spmm_mean", "the mean over each target's sources", Reduction::mean),
      forward_suite("spmm_max", "the maximum over each target's sources", Reduction::max),
      forward_suite("spmm_min", "the minimum over each target's sources", Reduction::min),
      {"spmm_backward",
       "A^T dY, the gradient of the sum",
       {"spmm", "spmm_backward"},
       {Precision::fp32, Precision::fp64, Precision::bf16},
       false,
       [](const Problem& problem) { return prepare_stored<Backward>(problem); }},
  };
}

}  // namespace tessera::bench
