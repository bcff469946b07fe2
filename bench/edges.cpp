// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/graph/coo.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/spmm.hpp"

#include "bench/compare_rows.hpp"
#include "bench/laid_edges.hpp"
#include "bench/ops.hpp"
#include "bench/prepare.hpp"

/// GCN's aggregation from edges in no order, in both forms: what a pass takes, and all that comes
/// before the first one.
namespace tessera::bench {
namespace {

enum class Form { scatter, reduce };
enum class Pass { forward, backward };

template <class T>
class EdgesTrial : public Trial {
 public:
  EdgesTrial(const Problem& problem, Form form, Pass pass)
      : problem_(problem),
        form_(form),
        pass_(pass),
        graph_(problem.graph.with_values({}).with_scales({}, {})) {
    if (!graph_.is_square()) {
      throw Error(ErrorCode::unsupported, "GCN needs a square graph", problem.graph_name,
                  "use another graph");
    }
    laid_ = std::make_unique<LaidEdges>(graph_, problem.seed, problem.device);
    plan_ = planned();
    x_.emplace(random_placed<T>(graph_.num_rows(), problem.features, problem.seed, problem.device));
    y_.emplace(graph_.num_rows(), problem.features, problem.device);
  }

  Gate check() override {
    run({});
    BorrowedCoo edges;
    const LaidEdges here(graph_, problem_.seed, {});
    edges.rows = here.targets.span();
    edges.cols = here.sources.span();
    const Graph all =
        borrow_coo(graph_.num_rows(), graph_.num_rows(), edges).with_rule(EdgeRule::gcn).graph();
    const Graph matrix = pass_ == Pass::forward ? all : transposed(all);
    return compare_rows(sample_rows(matrix, problem_.seed, sample_size(problem_)),
                        ops::Reduction::sum, *x_, *y_, problem_.precision, kernel());
  }

  void run(Stream stream) override {
    if (pass_ == Pass::forward) {
      ops::run(plan_, {*x_}, {*y_}, stream);
    } else {
      ops::run_backward(plan_, {*x_}, {*y_}, stream);
    }
  }

  std::optional<Timing> timed(const MeasureOptions& options) override {
    std::vector<double> samples;
    for (int i = 0; i < std::max(3, options.repeats / 4); ++i) {
      const Stopwatch watch;
      const ops::SpmmPlan plan = planned();
      synchronise(problem_.device);
      samples.push_back(watch.seconds());
    }
    figures_ = {{"making_us", summarise(std::move(samples)).median_us * 1e6}};
    return std::nullopt;
  }

  std::int64_t bytes() const override {
    return 2 * static_cast<std::int64_t>(sizeof(VertexId)) * graph_.num_edges() + x_->bytes() +
           y_->bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }
  std::vector<Figure> figures() const override { return figures_; }

 private:
  /// All that a graph that is new needs before its first pass.
  ops::SpmmPlan planned() const {
    BorrowedCoo edges;
    edges.rows = laid_->targets.span();
    edges.cols = laid_->sources.span();
    BorrowOptions where;
    where.device = problem_.device;
    const Coo coo = borrow_coo(graph_.num_rows(), graph_.num_rows(), edges, where);
    ops::SpmmOptions options;
    set_plan_options(problem_, options);
    options.precision = problem_.precision;
    options.features = problem_.features;
    options.backward = pass_ == Pass::backward;
    options.edge_values_at_run = options.edge_value_gradient = false;
    if (form_ == Form::scatter) {
      options.kernel =
          problem_.device.kind == DeviceKind::cpu ? "spmm/cpu/scatter" : "spmm/cuda/scatter";
    }
    return ops::plan_spmm(coo.with_rule(EdgeRule::gcn), options);
  }

  Problem problem_;
  Form form_;
  Pass pass_;
  Graph graph_;
  std::unique_ptr<LaidEdges> laid_;
  ops::SpmmPlan plan_;
  std::optional<Placed<T>> x_, y_;
  std::vector<Figure> figures_;
};

Suite suite_of(const char* name, const char* summary, Form form, Pass pass) {
  Suite suite{name,
              summary,
              {},
              {Precision::fp32, Precision::fp64, Precision::bf16},
              0,
              [form, pass](const Problem& problem) {
                return prepare_stored<EdgesTrial>(problem, form, pass);
              },
              {16, 64}};
  suite.on_request = true;
  return suite;
}

}  // namespace

std::vector<Suite> edges_suites() {
  return {suite_of("edges_scatter", "GCN's sum over edges in no order, each added to its target",
                   Form::scatter, Pass::forward),
          suite_of("edges_scatter_backward", "its gradient", Form::scatter, Pass::backward),
          suite_of("edges_reduce", "the same sum by rows that are made of the edges", Form::reduce,
                   Pass::forward),
          suite_of("edges_reduce_backward", "its gradient", Form::reduce, Pass::backward)};
}

}  // namespace tessera::bench
