// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device_work.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/graph/process.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/spmm.hpp"

#include "bench/inputs.hpp"
#include "bench/laid_edges.hpp"
#include "bench/ops.hpp"

/// Graph processing, the phase before planning: what every iteration pays whose graph is new, and
/// all others pay once. The edges lie on the device, in no order.
namespace tessera::bench {
namespace {

class Processing : public Trial {
 public:
  Processing(const Problem& problem, EdgeRule rule)
      : problem_(problem), graph_(problem.graph.with_values({}).with_scales({}, {})) {
    if (!graph_.is_square()) {
      throw Error(ErrorCode::unsupported, "processing needs a square graph", problem.graph_name,
                  "use another graph");
    }
    options_.rule = rule;
    options_.device = problem.device;
    options_.duplicates = Duplicates::keep;
    laid_ = std::make_unique<LaidEdges>(graph_, problem.seed, problem.device);
  }

  /// The same bits as on the CPU.
  Gate check() override {
    ProcessOptions here = options_;
    here.device = {};
    const LaidEdges edges(graph_, problem_.seed, {});
    const Graph expected =
        process_edges(graph_.num_rows(), edges.sources.span(), edges.targets.span(), {}, here);
    num_edges_ = expected.num_edges();
    const bool same = processed() == expected;
    return {same ? 0.0 : 1.0, 0, graph_.num_rows(), graph_.num_rows()};
  }

  void run(Stream) override { processed(); }
  bool only_queues() const override { return false; }

  std::optional<Timing> timed(const MeasureOptions& options) override {
    const Timing timing = measure([&] { processed(); }, options);
    figures_.clear();
    note_planning(options);
    const CopyWatch watch;
    const DeviceWork before = device_work();
    const Graph graph = processed();
    const DeviceWork work = device_work().since(before);
    for (const auto& [name, count] :
         {std::pair{"waits", work.waits}, std::pair{"allocations", work.allocations},
          std::pair{"copies", work.copies}, std::pair{"bytes_to_host", work.bytes_to_host}}) {
      figures_.push_back({name, static_cast<double>(count)});
    }
    return timing;
  }

  /// The edges once, and the result by rows and by columns.
  std::int64_t bytes() const override {
    const auto edges = static_cast<std::int64_t>(2 * sizeof(VertexId)) * graph_.num_edges();
    return edges + 2 * static_cast<std::int64_t>(sizeof(VertexId)) *
                       (num_edges_ + std::int64_t{graph_.num_rows()} + 1);
  }
  std::string kernel() const override { return std::string("process/") + to_string(options_.rule); }
  std::vector<Figure> figures() const override { return figures_; }

 private:
  Graph processed() const {
    return process_edges(graph_.num_rows(), laid_->sources.span(), laid_->targets.span(), {},
                         options_);
  }

  /// What else an iteration with a new graph has to do before it can compute.
  void note_planning(const MeasureOptions& options) {
    std::vector<double> samples;
    for (int i = 0; i < std::max(3, options.repeats / 4); ++i) {
      const Graph graph = processed();
      synchronise(problem_.device);
      const Stopwatch watch;
      plan_passes(graph);
      samples.push_back(watch.seconds());
    }
    figures_.push_back({"planning_us", summarise(std::move(samples)).median_us * 1e6});
  }

  void plan_passes(const Graph& graph) const {
    if (options_.rule == EdgeRule::looped) {
      ops::AttentionOptions attention;
      set_plan_options(problem_, attention);
      attention.backward = true;
      attention.form = ops::AttentionForm::gat;
      attention.heads = problem_.heads;
      attention.features = problem_.features;
      ops::plan_attention(graph, attention);
      return;
    }
    ops::SpmmOptions spmm;
    set_plan_options(problem_, spmm);
    spmm.backward = true;
    spmm.edge_values_at_run = spmm.edge_value_gradient = false;
    spmm.features = problem_.features;
    ops::plan_spmm(graph, spmm);
  }

  Problem problem_;
  Graph graph_;
  ProcessOptions options_;
  std::unique_ptr<LaidEdges> laid_;
  EdgeOffset num_edges_ = 0;
  std::vector<Figure> figures_;
};

Suite suite_of(const char* name, const char* summary, EdgeRule rule) {
  Suite suite{
      name,
      summary,
      {},
      {Precision::fp32},
      rule == EdgeRule::looped ? 8 : 0,
      [rule](const Problem& problem) { return std::make_unique<Processing>(problem, rule); },
      {64}};
  suite.on_request = true;
  return suite;
}

}  // namespace

std::vector<Suite> processing_suites() {
  return {suite_of("process_plain", "edges in no order to rows and columns", EdgeRule::plain),
          suite_of("process_gcn", "the same with self loops and GCN's weights", EdgeRule::gcn),
          suite_of("process_gat", "the same with self loops", EdgeRule::looped)};
}

}  // namespace tessera::bench
