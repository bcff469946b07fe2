// SPDX-License-Identifier: Apache-2.0
#include "bench_cases.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "options.hpp"
#include "partition_file.hpp"
#include "tessera/core/error.hpp"

namespace tessera::app {
namespace {

/// An entry of `--precision`: "bf16", or "fp16@128" for one width alone.
struct PrecisionChoice {
  Precision precision = Precision::fp32;
  std::int64_t width = -1;  ///< -1: all

  explicit PrecisionChoice(const std::string& text) {
    const std::size_t at = text.find('@');
    precision = parse_precision(text.substr(0, at));
    if (at == std::string::npos) return;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + at + 1, end, width);
    if (problem != std::errc() || stop != end || width < 0) {
      throw Error(ErrorCode::invalid_argument, "no width after @ in '" + text + "'", "",
                  "write it as in fp16@128");
    }
  }
};

/// True for "spmm/cuda/rows*".
bool is_group(const std::string& kernel) { return kernel.ends_with('*'); }

/// Those of the names that belong to a group.
std::vector<std::string> group_of(std::vector<std::string> names, const std::string& group) {
  const std::string beginning = group.substr(0, group.size() - 1);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(beginning); });
  return names;
}

/// The kernels to run a suite with: the plan's choice, the one asked for, or all there are. None
/// where the one asked for belongs to another op.
std::vector<std::string> chosen_kernels(const bench::Suite& suite, const std::string& wish,
                                        DeviceKind device) {
  if (wish.empty()) return {""};
  std::vector<std::string> names = bench::kernel_names(suite, device);
  if (wish == "all") return names;
  const std::vector<std::string> baselines = bench::baseline_names(suite, device);
  names.insert(names.end(), baselines.begin(), baselines.end());
  if (is_group(wish)) {
    return group_of(names, wish).empty() ? std::vector<std::string>() : std::vector{wish};
  }
  std::erase_if(names, [&](const std::string& name) { return name != wish; });
  return names;
}

bool supports(const bench::Suite& suite, Precision precision, DeviceKind device) {
  const std::vector<Precision> all = bench::precisions_on(suite, device);
  return std::find(all.begin(), all.end(), precision) != all.end();
}

/// What is common to all cases of one data set.
bench::Problem problem_on(const BenchArguments& arguments, const Dataset& dataset,
                          std::uint64_t seed) {
  bench::Problem problem;
  problem.graph = dataset.graph;
  problem.graph_name = dataset.name;
  problem.seed = seed;
  problem.dataset = std::make_shared<const Dataset>(dataset);
  problem.device = parse_device(arguments.device);
  problem.plans = arguments.planning.options();
  problem.plans.epochs = arguments.epochs;
  problem.shape = arguments.shape;
  problem.parts = arguments.parts;
  if (!arguments.partition_file.empty()) {
    problem.partition = std::make_shared<const Partition>(
        read_partition_file(arguments.partition_file, dataset.graph.num_rows(), arguments.parts));
  }
  if (arguments.heads > 0) problem.shape.heads = arguments.heads;
  if (parse_nonfinite(arguments.nonfinite) == Nonfinite::allow) {
    problem.plans.exact_nonfinite = true;
  }
  return problem;
}

/// The kernels of a suite, and after them those of the baseline.
std::vector<std::pair<std::string, bool>> kernels_and_baseline(const BenchArguments& arguments,
                                                               const bench::Suite& suite,
                                                               DeviceKind device) {
  std::vector<std::pair<std::string, bool>> kernels;
  for (const std::string& kernel : chosen_kernels(suite, arguments.kernel, device)) {
    kernels.emplace_back(kernel, false);
  }
  if (arguments.baseline.empty()) return kernels;
  for (const std::string& kernel : chosen_kernels(suite, arguments.baseline, device)) {
    kernels.emplace_back(kernel, true);
  }
  return kernels;
}

}  // namespace

void take_data(BenchArguments& arguments) {
  if (!arguments.words.empty() && arguments.words[0] == "compare") return;
  // No op has any of these in its name.
  const auto data = std::stable_partition(
      arguments.words.begin(), arguments.words.end(),
      [](const std::string& word) { return word.find_first_of(":./") == std::string::npos; });
  arguments.sources.insert(arguments.sources.end(), data, arguments.words.end());
  arguments.words.erase(data, arguments.words.end());
}

std::vector<const bench::Suite*> chosen_suites(const BenchArguments& arguments) {
  std::vector<const bench::Suite*> chosen;
  for (const std::string& word : arguments.words) {
    const auto named = bench::find_suites(word);
    chosen.insert(chosen.end(), named.begin(), named.end());
  }
  if (!arguments.words.empty()) return chosen;
  for (const bench::Suite& suite : bench::suites()) {
    if (!suite.on_request) chosen.push_back(&suite);
  }
  return chosen;
}

void check_arguments(const BenchArguments& arguments) {
  chosen_suites(arguments);
  ops::parse_tune(arguments.planning.tune);
  parse_device(arguments.device);
  for (const std::string& entry : arguments.precisions) PrecisionChoice{entry};
}

std::vector<Case> cases_on(const BenchArguments& arguments, const Dataset& dataset,
                           const std::vector<std::int64_t>& widths, std::uint64_t seed) {
  std::vector<Case> cases;
  bench::Problem problem = problem_on(arguments, dataset, seed);
  for (const bench::Suite* suite : chosen_suites(arguments)) {
    const bool own_widths = arguments.features.empty() && !suite->features.empty();
    for (const std::string& entry : arguments.precisions) {
      const PrecisionChoice choice(entry);
      problem.precision = choice.precision;
      if (!supports(*suite, problem.precision, problem.device.kind)) continue;
      for (const std::int64_t features : own_widths ? suite->features : widths) {
        if (choice.width >= 0 && choice.width != features) continue;
        problem.features = features;
        problem.heads = arguments.heads > 0 && suite->usual_heads > 0
                            ? arguments.heads
                            : bench::default_heads(*suite, features);
        for (const auto& [kernel, baseline] :
             kernels_and_baseline(arguments, *suite, problem.device.kind)) {
          problem.kernel = kernel;
          cases.push_back({suite, problem, baseline});
        }
      }
    }
  }
  return cases;
}

}  // namespace tessera::app
