// SPDX-License-Identifier: Apache-2.0
#include "bench/suite.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/cuda_timing.hpp"
#include "core/side_stream.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "bench/cusparse.hpp"
#include "bench/ops.hpp"

namespace tessera::bench {
namespace {

Timing time_trial(Trial& trial, Device device, const MeasureOptions& options) {
  if (const auto own = trial.timed(options)) return *own;
  if (trial.only_queues()) {
    return measure_on_stream(
        device, measured_stream(device), [&](Stream stream) { trial.run(stream); }, options);
  }
  const auto whole_run = [&] {
    trial.run({});
    synchronise(device);
  };
  return measure(whole_run, options);
}

}  // namespace

Stream measured_stream(Device device) {
  // Never released: graphs keep what plans made on it.
  static std::mutex mutex;
  static auto& streams = *new std::map<int, SideStream>();
  if (device.kind == DeviceKind::cpu) return {};
  const std::scoped_lock lock(mutex);
  return streams.try_emplace(device.index, device).first->second;
}

SampleSize sample_size(const Problem& problem) {
  SampleSize size = SampleSize::on(problem.device, problem.features);
  if (problem.check_edges == 0) return size;
  constexpr std::int64_t fewest_rows = 64;  // of all places in a window
  return {std::min<std::int64_t>(size.rows, problem.check_edges), problem.check_edges, fewest_rows};
}

const std::vector<Suite>& suites() {
  static const std::vector<Suite> all = [] {
    std::vector<Suite> list;
    for (const auto& of_one_file :
         {spmm_suites(), sddmm_suites(), edge_softmax_suites(), messages_suites(),
          attention_suites(), aggregate_update_suites(), gemm_suites(), bit_suites(),
          layer_suites(), model_layer_suites(), model_suites(), batch_suites(), translate_suites(),
          processing_suites(), edges_suites(), planning_suites()}) {
      list.insert(list.end(), of_one_file.begin(), of_one_file.end());
    }
    return list;
  }();
  return all;
}

const Suite& find_suite(const std::string& op) {
  std::string names;
  for (const Suite& suite : suites()) {
    if (suite.op == op) return suite;
    names += (names.empty() ? "" : ", ") + suite.op;
  }
  throw Error(ErrorCode::invalid_argument, "no op is called '" + op + "'", "",
              "use " + names + ", or name data with --data");
}

std::vector<std::string> kernel_names(const Suite& suite, DeviceKind device) {
  std::vector<std::string> names;
  for (const std::string& op : suite.registry_ops) {
    for (const ops::KernelInfo& info : ops::kernels(op)) {
      if (info.device == device) names.push_back(info.name);
    }
  }
  return names;
}

std::vector<std::string> baseline_names(const Suite& suite, DeviceKind device) {
  const bool is_sum = suite.op == "spmm" || suite.op == "spmm_backward";
  return is_sum && device == DeviceKind::cuda ? cusparse_names() : std::vector<std::string>();
}

std::vector<Precision> precisions_on(const Suite& suite, DeviceKind device) {
  if (device == DeviceKind::cpu) return suite.precisions;
  std::vector<Precision> precisions;
  for (const Precision precision : suite.precisions) {
    if (precision == Precision::fp64) continue;
    precisions.push_back(precision);
    if (precision == Precision::bf16) precisions.push_back(Precision::fp16);
  }
  return precisions;
}

std::vector<const Suite*> find_suites(const std::string& name) {
  std::vector<const Suite*> found;
  for (const Suite& suite : suites()) {
    if (suite.op.starts_with(name + "_")) found.push_back(&suite);
  }
  const bool is_group = std::none_of(suites().begin(), suites().end(),
                                     [&](const Suite& suite) { return suite.op == name; });
  if (is_group && !found.empty()) return found;
  return {&find_suite(name)};
}

std::int64_t default_heads(const Suite& suite, std::int64_t features) {
  const std::int64_t usual = suite.usual_heads;
  return usual > 0 && features > 0 && features % usual == 0 ? usual : 1;
}

std::int64_t features_as_heads(const Problem& problem) {
  if (problem.features > 0) return problem.features;
  throw Error(ErrorCode::unsupported, "no heads", problem.graph_name, "use at least one feature");
}

Result run_suite(const Suite& suite, const Problem& problem, const MeasureOptions& timing) {
  const std::unique_ptr<Trial> trial = suite.prepare(problem);
  Result result;
  result.gate = trial->check();
  result.bytes = trial->bytes();
  Measurement& record = result.record;
  record.op = suite.op;
  record.graph = problem.graph_name;
  record.features = trial->features() >= 0 ? trial->features() : problem.features;
  record.precision = to_string(problem.precision);
  record.device = to_string(problem.device);
  record.threads = num_threads();
  record.kernel = trial->kernel();
  record.plan = trial->plan();
  record.max_error = result.gate.max_error;
  if (!result.gate.passed()) return result;
  const Timing times = time_trial(*trial, problem.device, timing);
  record.median_us = times.median_us;
  record.min_us = times.min_us;
  record.worst_us = times.worst_us;
  record.chain_us = times.chain_us;
  result.repeats = times.repeats;
  // Before the bandwidth of the device is measured, which takes memory that is not the trial's.
  result.figures = trial->figures();
  record.floor_us = floor_us(result.bytes, problem.device);
  return result;
}

}  // namespace tessera::bench
