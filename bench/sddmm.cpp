// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/sddmm.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "ops/sddmm/reference.hpp"

namespace tessera::bench {
namespace {

using ops::EdgeFunction;

template <class T>
class Edges : public Trial {
 public:
  Edges(const Problem& problem, EdgeFunction function)
      : plan_(ops::plan_sddmm(problem.graph, options_of(problem, function))),
        seed_(problem.seed),
        sample_size_(sample_size(problem)),
        u_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed,
                            problem.device)),
        v_(random_placed<T>(problem.graph.num_cols(), problem.features, problem.seed + 1,
                            problem.device)),
        edges_(problem.graph.num_edges(), plan_.options().heads, problem.device) {}

  Gate check() override {
    run({});
    const RowSample sample = sample_rows(plan_.graph(), seed_, sample_size_);
    const Matrix<double> computed = edges_.result_rows(sample.edges);
    Matrix<double> u = u_.input_rows(sample.rows);
    Matrix<double> v = v_.input_rows(sample.cols);
    Matrix<double> expected(computed.rows(), computed.cols());
    Matrix<double> magnitude(computed.rows(), computed.cols());
    const auto run_reference = [&](Matrix<double>& edges) {
      ops::reference::sddmm(sample.graph, plan_.options().function, plan_.options().heads, u, v,
                            edges);
    };
    run_reference(expected);
    u = absolute(std::move(u));
    v = absolute(std::move(v));
    run_reference(magnitude);
    const ErrorMeasure measure(
        {.stored = plan_.options().precision, .strict = plan_.kernel().strict, .terms = u.cols()});
    return {measure.largest_error(computed.view(), expected, magnitude), measure.bound(),
            sample.graph.num_rows(), u_.rows()};
  }
  void run(Stream stream) override { ops::run(plan_, u_, v_, edges_, stream); }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + u_.bytes() + v_.bytes() +
           edges_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  static ops::SddmmOptions options_of(const Problem& problem, EdgeFunction function) {
    ops::SddmmOptions options;
    set_run_options(problem, options);
    options.function = function;
    options.precision = problem.precision;
    options.features = problem.features;
    options.heads = function == EdgeFunction::add ? features_as_heads(problem) : problem.heads;
    return options;
  }

  ops::SddmmPlan plan_;
  std::uint64_t seed_;
  SampleSize sample_size_;
  Placed<T> u_, v_, edges_;
};

Suite suite_of(const char* name, const char* summary, EdgeFunction function,
               std::vector<std::int64_t> widths) {
  return {name,
          summary,
          {"sddmm"},
          {Precision::fp32, Precision::fp64, Precision::bf16},
          function == EdgeFunction::dot ? 1 : 0,
          [function](const Problem& problem) { return prepare_stored<Edges>(problem, function); },
          std::move(widths)};
}

}  // namespace

std::vector<Suite> sddmm_suites() {
  return {
      suite_of("sddmm", "the dot product of both ends of every edge", EdgeFunction::dot, {}),
      suite_of("sddmm_add", "the sum of both ends of every edge; features are heads",
               EdgeFunction::add, {1, 8}),
  };
}

}  // namespace tessera::bench
