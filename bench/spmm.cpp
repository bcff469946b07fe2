// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/spmm.hpp"

#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"

#include "bench/compare_rows.hpp"
#include "bench/cusparse.hpp"
#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"

namespace tessera::bench {
namespace {

using ops::Reduction;

/// Where the values of edges come from.
enum class Values { graph, drawn, of_runs };

ops::SpmmOptions options_of(const Problem& problem, Reduction reduction,
                            Values values = Values::graph) {
  ops::SpmmOptions options;
  options.edge_values_expected = values == Values::of_runs;
  set_run_options(problem, options);
  options.reduction = reduction;
  options.precision = problem.precision;
  options.features = problem.features;
  return options;
}

/// The problem's graph with these numbers for values.
template <class T>
Graph with_values(const Graph& graph, const Matrix<T>& drawn) {
  Buffer<float> values(graph.num_edges());
  parallel_for(values.size(), 1 << 14,
               [&](std::int64_t e) { values[e] = static_cast<float>(drawn.data()[e]); });
  return graph.with_values(std::move(values));
}

template <class T>
class Forward : public Trial {
 public:
  Forward(const Problem& problem, Reduction reduction, Values values)
      : seed_(problem.seed),
        sample_size_(sample_size(problem)),
        edge_values_(random_placed<T>(values == Values::graph ? 0 : problem.graph.num_edges(), 1,
                                      problem.seed + 1, problem.device)),
        weighted_(values == Values::graph ? problem.graph
                                          : with_values(problem.graph, edge_values_.host())),
        plan_(ops::plan_spmm(values == Values::drawn ? weighted_ : problem.graph,
                             options_of(problem, reduction, values))),
        x_(random_placed<T>(problem.graph.num_cols(), problem.features, problem.seed,
                            problem.device)),
        y_(problem.graph.num_rows(), problem.features, problem.device) {
    if (values == Values::of_runs) inputs_.edge_values = edge_values_;
    inputs_.x = x_;
  }

  Gate check() override {
    run({});
    return compare_rows(sample_rows(weighted_, seed_, sample_size_), plan_.options().reduction, x_,
                        y_, plan_.options().precision, kernel());
  }
  void run(Stream stream) override { ops::run(plan_, inputs_, {y_}, stream); }
  std::int64_t bytes() const override {
    const bool of_runs = !inputs_.edge_values.absent();
    return structure_bytes(plan_.graph(), plan_.options().device) + weight_bytes(plan_.graph()) +
           x_.bytes() + y_.bytes() + (of_runs ? edge_values_.bytes() : 0);
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  std::uint64_t seed_;
  SampleSize sample_size_;
  Placed<T> edge_values_;
  Graph weighted_;  ///< what the plan multiplies by, whoever brings the values
  ops::SpmmPlan plan_;
  Placed<T> x_, y_;
  ops::SpmmInputs inputs_;
};

/// dX = A^T dY.
template <class T>
class Backward : public Trial {
 public:
  explicit Backward(const Problem& problem)
      : plan_(ops::plan_spmm(problem.graph, backward_options(problem))),
        seed_(problem.seed),
        sample_size_(sample_size(problem)),
        grad_y_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed,
                                 problem.device)),
        grad_x_(problem.graph.num_cols(), problem.features, problem.device) {}

  Gate check() override {
    run({});
    return compare_rows(sample_rows(transposed(plan_.graph()), seed_, sample_size_), Reduction::sum,
                        grad_y_, grad_x_, plan_.options().precision, kernel());
  }
  void run(Stream stream) override { ops::run_backward(plan_, {grad_y_}, {grad_x_}, stream); }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + weight_bytes(plan_.graph()) +
           grad_x_.bytes() + grad_y_.bytes();
  }
  std::string kernel() const override {
    for (const ops::Candidate& candidate : explanation().candidates) {
      if (candidate.verdict == "chosen") return candidate.kernel;
    }
    return plan_.options().backward_kernel;
  }
  std::string plan() const override { return explanation().summary; }

 private:
  static ops::SpmmOptions backward_options(const Problem& problem) {
    ops::SpmmOptions options = options_of(problem, Reduction::sum);
    options.backward = true;
    options.edge_value_gradient = false;
    std::swap(options.kernel, options.backward_kernel);
    return options;
  }
  ops::Explanation explanation() const { return *find_child(plan_.explain(), "backward"); }

  ops::SpmmPlan plan_;
  std::uint64_t seed_;
  SampleSize sample_size_;
  Placed<T> grad_y_, grad_x_;
};

Suite forward_suite(const char* name, const char* summary, Reduction reduction,
                    Values values = Values::graph) {
  return {name,
          summary,
          {"spmm"},
          {Precision::fp32, Precision::fp64, Precision::bf16},
          0,
          [reduction, values](const Problem& problem) {
            return is_cusparse(problem.kernel)
                       ? prepare_cusparse(problem, false)
                       : prepare_stored<Forward>(problem, reduction, values);
          }};
}

Suite on_request(Suite suite) {
  suite.on_request = true;
  return suite;
}

}  // namespace

std::vector<Suite> spmm_suites() {
  return {
      forward_suite("spmm", "A X, the sum over each target's sources", Reduction::sum),
      forward_suite("spmm_mean", "the mean over each target's sources", Reduction::mean),
      forward_suite("spmm_max", "the maximum over each target's sources", Reduction::max),
      forward_suite("spmm_min", "the minimum over each target's sources", Reduction::min),
      on_request(forward_suite("spmm_weighted", "the sum with a value drawn for every edge",
                               Reduction::sum, Values::drawn)),
      on_request(forward_suite("spmm_edge_values", "the same, values brought by every run",
                               Reduction::sum, Values::of_runs)),
      {"spmm_backward",
       "A^T dY, the gradient of the sum",
       {"spmm", "spmm_backward"},
       {Precision::fp32, Precision::fp64, Precision::bf16},
       0,
       [](const Problem& problem) {
         return is_cusparse(problem.kernel) ? prepare_cusparse(problem, true)
                                            : prepare_stored<Backward>(problem);
       }},
  };
}

}  // namespace tessera::bench
