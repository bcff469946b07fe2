// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/graph/borrow.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/spmm.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "core/device_work.hpp"
#include "core/parts_clock.hpp"
#include "ops/attention/reference.hpp"
#include "ops/spmm/reference.hpp"

/// What it takes to plan both passes of a layer on a graph that nobody has seen before: a
/// mini-batch whose CSR lies on the device.
namespace tessera::bench {
namespace {

/// The arrays of a mini-batch as a sampler leaves them on the device, self loops included.
class LaidCsr {
 public:
  LaidCsr(const Graph& graph, Device device)
      : num_rows_(graph.num_rows()),
        num_cols_(graph.num_cols()),
        device_(device),
        offsets_(std::int64_t{num_rows_} + 1, default_memory(device)),
        columns_(graph.num_edges(), default_memory(device)) {
    const std::vector<std::int32_t> narrow(graph.row_offsets().begin(), graph.row_offsets().end());
    lay(offsets_, narrow.data());
    lay(columns_, graph.col_indices().data());
    synchronise(device);
  }

  /// A graph of its own over the same arrays.
  Graph graph() const {
    BorrowOptions options;
    options.device = device_;
    options.row_order = RowOrder::promised;
    return borrow_csr(num_rows_, num_cols_, {offsets_.span(), columns_.span()}, options);
  }

 private:
  template <class T>
  void lay(Buffer<T>& there, const T* values) {
    copy_bytes(there.data(), values, static_cast<std::size_t>(there.size()) * sizeof(T), device_);
  }

  VertexId num_rows_, num_cols_;
  Device device_;
  Buffer<std::int32_t> offsets_;
  Buffer<VertexId> columns_;
};

/// The layers that a mini-batch is planned for.
struct Layers {
  bool gcn = false;
  bool gat = false;
};

struct Plans {
  std::optional<ops::SpmmPlan> gcn;
  std::optional<ops::AttentionPlan> gat;
};

class Planning : public Trial {
 public:
  Planning(const Problem& problem, Layers layers)
      : problem_(problem),
        layers_(layers),
        host_(with_self_loops(problem.graph.with_values({}).with_scales({}, {}))),
        laid_(host_, problem.device) {}

  /// The plans run once, each pass, against the reference.
  Gate check() override {
    const Plans plans = planned(laid_.graph());
    Gate gate;
    gate.bound = 1;  // errors are shares of their bounds
    gate.rows_checked = gate.rows_total = host_.num_rows();
    if (plans.gcn) gate.max_error = std::max(gate.max_error, gcn_error(*plans.gcn));
    if (plans.gat) gate.max_error = std::max(gate.max_error, gat_error(*plans.gat));
    kernel_ = plans.gcn ? plans.gcn->kernel().name : "";
    if (plans.gat) kernel_ += (kernel_.empty() ? "" : ", ") + plans.gat->kernel().name;
    return gate;
  }

  void run(Stream) override { planned(laid_.graph()); }
  bool only_queues() const override { return false; }

  /// Until the plans exist; that they and the graph go again is not counted.
  std::optional<Timing> timed(const MeasureOptions& options) override {
    for (int i = 0; i < std::max(2, options.warmups); ++i) planned(laid_.graph());
    std::vector<double> samples;
    std::vector<std::vector<PartsClock::Part>> parts;
    double seconds = 0;
    while (std::ssize(samples) < options.repeats ||
           (seconds < options.min_seconds && seconds < options.max_seconds)) {
      samples.push_back(timed_once());
      seconds += samples.back() * 1e-6;
    }
    // Once more with clocks and counters inside, which take time of their own.
    const std::size_t repeats = std::max<std::size_t>(samples.size() / 4, 3);
    for (std::size_t i = 0; i < repeats; ++i) {
      parts.push_back(timed_parts());
    }
    note(parts);
    return summarise(std::move(samples));
  }

  std::int64_t bytes() const override { return structure_bytes(host_, problem_.device); }
  std::string kernel() const override { return kernel_; }
  std::vector<Figure> figures() const override { return figures_; }

 private:
  /// A graph that nobody has planned for, with nothing under way on the device.
  Graph fresh_graph() const {
    Graph graph = laid_.graph();
    synchronise(problem_.device);
    return graph;
  }

  double timed_once() const {
    using Clock = std::chrono::steady_clock;
    const Graph graph = fresh_graph();
    const Clock::time_point begin = Clock::now();
    const Plans plans = planned(graph);
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }
  std::vector<PartsClock::Part> timed_parts() const {
    const Graph graph = fresh_graph();
    const PartsClock clock;
    const Plans plans = planned(graph);
    return clock.parts();
  }

  /// With the weights that GCN gives the graph.
  Plans planned(const Graph& graph) const {
    Plans plans;
    if (layers_.gcn) {
      const auto normalised = [&] {
        const TimedPart part("normalising");
        return gcn_normalised(graph, false);
      };
      ops::SpmmOptions options;
      set_plan_options(problem_, options);
      options.backward = true;
      options.edge_value_gradient = false;  // the weights are not learned
      options.precision = problem_.precision;
      options.features = problem_.features;
      const Graph weighted = normalised();
      const TimedPart part("planning spmm");
      plans.gcn = ops::plan_spmm(weighted, options);
    }
    if (layers_.gat) {
      const TimedPart part("planning attention");
      plans.gat = ops::plan_attention(graph, attention_options());
    }
    return plans;
  }

  ops::AttentionOptions attention_options() const {
    ops::AttentionOptions options;
    set_plan_options(problem_, options);
    options.backward = true;
    options.form = ops::AttentionForm::gat;
    options.precision = problem_.precision;
    options.heads = problem_.heads;
    options.features = problem_.features;
    return options;
  }

  /// Medians of the parts, and what one planning asked of the GPU.
  void note(const std::vector<std::vector<PartsClock::Part>>& runs) {
    figures_.clear();
    for (const PartsClock::Part& part : runs.back()) {
      std::vector<double> times;
      for (const auto& run : runs) {
        for (const PartsClock::Part& other : run) {
          if (other.name == part.name) times.push_back(other.microseconds);
        }
      }
      figures_.push_back({std::string(part.name) + "_us", summarise(std::move(times)).median_us});
    }
    if (problem_.device.kind == DeviceKind::cpu) return;
    const Graph graph = fresh_graph();
    const CopyWatch watch;
    const DeviceWork before = device_work();
    const Plans plans = planned(graph);
    const DeviceWork work = device_work().since(before);
    const auto add = [&](const char* name, std::int64_t count) {
      figures_.push_back({name, static_cast<double>(count)});
    };
    add("waits", work.waits);
    add("allocations", work.allocations);
    add("copies", work.copies);
    add("copies_to_host", work.copies_to_host);
    add("bytes_to_host", work.bytes_to_host);
    add("largest_to_host", work.largest_to_host);
  }

  Placed<float> drawn(std::int64_t rows, std::int64_t cols, std::uint64_t number) const {
    return random_placed<float>(rows, cols, problem_.seed + number, problem_.device);
  }
  Placed<float> empty(std::int64_t rows, std::int64_t cols) const {
    return Placed<float>(rows, cols, problem_.device);
  }

  static Matrix<double> wide(const Matrix<float>& narrow) {
    Matrix<double> result(narrow.rows(), narrow.cols());
    std::copy(narrow.span().begin(), narrow.span().end(), result.data());
    return result;
  }

  /// The largest error as a share of what it may be.
  double share_of_bound(Placed<float>& computed, const Matrix<double>& expected,
                        const Matrix<double>& magnitude, bool strict, double more,
                        EdgeOffset terms) const {
    const ErrorMeasure measure(
        {.stored = Precision::fp32, .strict = strict, .terms = terms, .more = more});
    return measure.largest_error(computed.fetch().view(), expected, magnitude) / measure.bound();
  }

  double gcn_error(const ops::SpmmPlan& plan) const {
    Placed<float> x = drawn(host_.num_cols(), problem_.features, 0),
                  dy = drawn(host_.num_rows(), problem_.features, 1);
    Placed<float> y = empty(host_.num_rows(), problem_.features),
                  dx = empty(host_.num_cols(), problem_.features);
    ops::run(plan, {.x = x}, {.y = y});
    ops::run_backward(plan, {.grad_y = dy}, {.grad_x = dx});
    const Graph weighted = gcn_normalised(host_, false);
    const auto worst = [&](const Graph& matrix, const Placed<float>& in, Placed<float>& out) {
      const Matrix<double> given = wide(in.host());
      Matrix<double> expected(out.rows(), out.cols()), magnitude(out.rows(), out.cols());
      ops::reference::spmm(matrix, ops::Reduction::sum, given, {}, expected);
      ops::reference::spmm_magnitude(matrix, ops::Reduction::sum, given, {}, magnitude);
      return share_of_bound(out, expected, magnitude, false, 0, longest_row(matrix));
    };
    return std::max(worst(weighted, x, y), worst(transposed(weighted), dy, dx));
  }

  double gat_error(const ops::AttentionPlan& plan) const {
    const std::int64_t rows = host_.num_rows(), cols = host_.num_cols();
    const std::int64_t heads = problem_.heads, features = problem_.features;
    Placed<float> target = drawn(rows, heads, 2), source = drawn(cols, heads, 3);
    Placed<float> value = drawn(cols, features, 4), grad = drawn(rows, features, 5);
    Placed<float> output = empty(rows, features), log_sum = empty(rows, heads);
    Placed<float> grad_target = empty(rows, heads), grad_source = empty(cols, heads),
                  grad_value = empty(cols, features);
    const ops::AttentionInputs inputs{target, source, value, {}, 1.0, Random(0)};
    ops::run(plan, inputs, {output, log_sum});
    ops::run_backward(plan, inputs, output, log_sum, grad,
                      {grad_target, grad_source, grad_value, {}, nullptr});

    const Matrix<double> t = wide(target.host()), s = wide(source.host()), v = wide(value.host());
    const Matrix<double> positive = absolute(wide(value.host()));
    Matrix<double> expected(rows, features), magnitude(rows, features);
    const ops::AttentionOptions options = attention_options();
    ops::reference::attention(host_, options, {t, s, v, {}, 1.0, Random(0)}, {expected});
    ops::reference::attention(host_, options, {t, s, positive, {}, 1.0, Random(0)}, {magnitude});
    constexpr double exponents = 16 * 0x1p-24;
    const double of_output =
        share_of_bound(output, expected, magnitude, false, exponents, longest_row(host_));

    const Matrix<double> g = wide(grad.host()), positive_g = absolute(wide(grad.host()));
    const auto gradient = [&](const Matrix<double>& of_grad) {
      Matrix<double> result(cols, features);
      ops::reference::attention_backward(host_, options, {t, s, v, {}, 1.0, Random(0)}, of_grad,
                                         {{}, {}, result, {}, nullptr});
      return result;
    };
    // A gradient has passed through about four times as many roundings as the output.
    return std::max(of_output, share_of_bound(grad_value, gradient(g), gradient(positive_g), false,
                                              exponents, longest_row(host_)) /
                                   4);
  }

  Problem problem_;
  Layers layers_;
  Graph host_;
  LaidCsr laid_;
  std::string kernel_;
  std::vector<Figure> figures_;
};

Suite suite_of(const char* name, const char* layers_text, Layers layers) {
  Suite suite{
      name,
      fmt::format("planning both passes of {} on a mini-batch that lies on the device",
                  layers_text),
      {},
      {Precision::fp32},
      layers.gat ? 8 : 0,
      [layers](const Problem& problem) { return std::make_unique<Planning>(problem, layers); },
      {64}};
  suite.on_request = true;
  return suite;
}

}  // namespace

std::vector<Suite> planning_suites() {
  return {suite_of("planning_gcn", "GCN", {.gcn = true}),
          suite_of("planning_gat", "GAT", {.gat = true}),
          suite_of("planning_both", "GCN and GAT", {.gcn = true, .gat = true})};
}

}  // namespace tessera::bench
