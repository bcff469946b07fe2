// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/core/dtype.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/ops/kernels.hpp"

#include "bench/gate.hpp"
#include "bench/sample.hpp"

/// What `tessera bench` measures and `tessera check` checks.
namespace tessera::bench {

/// The shape of a model of two propagations. What is not given is as in the model's paper, but
/// where anything is given, nothing drops out unless `dropout` says so.
struct ModelShape {
  std::optional<std::int64_t> hidden = {};   ///< the width between layers, all heads together
  std::optional<std::int64_t> classes = {};  ///< of the labels
  std::optional<std::int64_t> heads = {};
  std::optional<double> dropout = {};  ///< on features, between layers and on attention

  bool is_given() const { return hidden || classes || heads || dropout; }
};

/// One thing to compute.
struct Problem {
  Graph graph = {};
  std::string graph_name = {};
  std::int64_t features = 0;
  Precision precision = Precision::fp32;
  std::int64_t heads = 1;
  std::string kernel = {};  ///< empty: the plan chooses
  std::uint64_t seed = 1;
  /// Where the graph came from: models use its features and labels. May be null.
  std::shared_ptr<const Dataset> dataset = {};
  Device device = {};
  /// Edges of the rows that a check compares; 0: as many as the device makes worth while.
  EdgeOffset check_edges = 0;
  ops::PlanOptions plans = {};  ///< how plans are made, device and kernel apart
  ModelShape shape = {};        ///< of a model that is trained
  std::int32_t parts = 0;  ///< that batches are cut from; 0: of about 100 vertices, 1500 at most
  std::shared_ptr<const Partition> partition = {};  ///< instead of parts made for the graph
};

/// How many rows the check of a problem compares.
SampleSize sample_size(const Problem& problem);

/// The heads of an op whose features they are.
std::int64_t features_as_heads(const Problem& problem);

/// The part of a plan's options that every op has.
inline void set_plan_options(const Problem& problem, ops::PlanOptions& options) {
  options = problem.plans;
  options.device = problem.device;
  options.kernel = problem.kernel;
}

/// Where runs of this process are measured. Runs on another stream than a plan's own also mark that
/// they use its memory, by an event of about 0.7 microseconds.
Stream measured_stream(Device device);

/// The same for plans whose runs are measured: they are made on the stream of the measurement.
inline void set_run_options(const Problem& problem, ops::PlanOptions& options) {
  set_plan_options(problem, options);
  options.stream = measured_stream(problem.device);
}

/// A number that a measurement has beside its times.
struct Figure {
  std::string name;
  double value = 0;
};

/// A problem made ready: inputs drawn, plan made, outputs allocated.
class Trial {
 public:
  virtual ~Trial() = default;

  /// Runs once and compares with the reference: every row of a small graph, sampled rows and all
  /// hubs of a large one.
  virtual Gate check() = 0;

  /// What is timed: queues the work on a stream of the problem's device.
  virtual void run(Stream stream) = 0;

  /// False where the host works too and waits, as in a training step: then its clock counts.
  virtual bool only_queues() const { return true; }

  /// The times of a trial that takes them itself, as where only a part of a run counts.
  virtual std::optional<Timing> timed(const MeasureOptions&) { return std::nullopt; }

  /// What else was measured; known when the times are.
  virtual std::vector<Figure> figures() const { return {}; }

  /// Bytes that any implementation must read and write: each operand once.
  virtual std::int64_t bytes() const = 0;

  /// The width that is noted; -1: the problem's.
  virtual std::int64_t features() const { return -1; }

  virtual std::string kernel() const = 0;
  virtual std::string plan() const { return {}; }
};

/// One op, or one form of it.
struct Suite {
  std::string op;       ///< the name in records: "spmm", "spmm_max"
  std::string summary;  ///< one line
  /// Ops of the registry whose kernels can run this; empty for ops without plans.
  std::vector<std::string> registry_ops;
  std::vector<Precision> precisions;
  /// Heads where the user names none and they divide the width; 0: heads do not matter.
  std::int64_t usual_heads = 0;
  std::function<std::unique_ptr<Trial>(const Problem&)> prepare;
  /// Widths to use where the user names none; empty: those of the workload.
  std::vector<std::int64_t> features = {};
  /// Runs only where it is named.
  bool on_request = false;
  /// True when a model is trained, whose shape can be given.
  bool has_shape = false;
};

/// All of them, in the order they are listed and run.
const std::vector<Suite>& suites();

/// The names of the registered kernels of a kind of device that can run a suite.
std::vector<std::string> kernel_names(const Suite& suite, DeviceKind device = DeviceKind::cpu);

/// What else a suite can be measured with there, to compare with: cuSPARSE's sums.
std::vector<std::string> baseline_names(const Suite& suite, DeviceKind device);

/// The precisions of a suite there: sparse ops store fp16 on a GPU, and nothing has fp64 on it.
std::vector<Precision> precisions_on(const Suite& suite, DeviceKind device);

/// Throws `invalid_argument` with the names there are.
const Suite& find_suite(const std::string& op);

/// The suite of that name, or all whose names begin with it: "epoch" means "epoch_gcn", …
std::vector<const Suite*> find_suites(const std::string& name);

/// Heads that a suite uses where the user named none: the usual ones if they divide the width.
std::int64_t default_heads(const Suite& suite, std::int64_t features);

/// Checks, then measures. The record's `max_error` is above the gate's bound where the check
/// failed, and then there are no times in it.
struct Result {
  Gate gate;
  Measurement record;
  std::int64_t bytes = 0;
  std::int64_t repeats = 0;
  std::vector<Figure> figures = {};
};
Result run_suite(const Suite& suite, const Problem& problem, const MeasureOptions& timing);

}  // namespace tessera::bench
