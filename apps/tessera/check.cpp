// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/suite.hpp"
#include "describe.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct CheckArguments {
  DataOptions data;
  std::string device = "cpu";
  std::vector<std::int64_t> features;
  std::int64_t sample = 0;
  std::int64_t max_edges = 0;
  bool details = false;
};

/// One kernel on one problem, and how it did.
struct Outcome {
  std::string op;
  std::string kernel;
  std::int64_t features = 0;
  Precision precision = Precision::fp32;
  bench::Gate gate;
  std::string unsupported;  ///< why it could not run, if so
};

/// The kernels of a suite by name; an op without a registry has the one it runs.
std::vector<std::string> kernels_of(const bench::Suite& suite, DeviceKind device) {
  return suite.registry_ops.empty() ? std::vector<std::string>{""}
                                    : bench::kernel_names(suite, device);
}

std::vector<std::int64_t> widths_for(const bench::Suite& suite, const CheckArguments& arguments) {
  if (!arguments.features.empty()) return arguments.features;
  return suite.features.empty() ? std::vector<std::int64_t>{1, 16, 33, 64} : suite.features;
}

Outcome check_one(const bench::Suite& suite, const bench::Problem& problem) {
  Outcome outcome{suite.op, problem.kernel, problem.features, problem.precision, {}, {}};
  try {
    const std::unique_ptr<bench::Trial> trial = suite.prepare(problem);
    outcome.kernel = trial->kernel();
    outcome.gate = trial->check();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    outcome.unsupported = error.what();
  }
  return outcome;
}

std::vector<Outcome> check_all(Session& session, const CheckArguments& arguments,
                               const Dataset& dataset) {
  std::vector<Outcome> outcomes;
  std::int64_t done = 0;
  const Device device = parse_device(arguments.device);
  require_available(device);
  const bool too_large = arguments.max_edges > 0 && dataset.graph.num_edges() > arguments.max_edges;
  const Graph graph =
      too_large ? bench::sample_blocks(dataset.graph, arguments.max_edges).graph : dataset.graph;
  const auto total = static_cast<std::int64_t>(bench::suites().size());
  for (const bench::Suite& suite : bench::suites()) {
    if (suite.on_request) continue;
    session.progress()("checking " + suite.op, done++, total);
    for (const std::string& kernel : kernels_of(suite, device.kind)) {
      for (const Precision precision : bench::precisions_on(suite, device.kind)) {
        for (const std::int64_t features : widths_for(suite, arguments)) {
          bench::Problem problem{
              graph,  dataset.name,  features, precision, bench::default_heads(suite, features),
              kernel, session.seed()};
          problem.device = device;
          problem.check_edges = arguments.sample;
          problem.plans.exact_nonfinite =
              parse_nonfinite(arguments.data.nonfinite) == Nonfinite::allow;
          outcomes.push_back(check_one(suite, problem));
        }
      }
    }
  }
  return outcomes;
}

std::string verdict(const Outcome& outcome) {
  if (!outcome.unsupported.empty()) return "unsupported";
  return outcome.gate.passed() ? "ok" : "FAILED";
}

bool failed(const Outcome& outcome) { return verdict(outcome) == "FAILED"; }

/// What a line of the table stands for: an op, or with details one kernel of it in one precision.
bool same_line(const Outcome& a, const Outcome& b, bool details) {
  return a.op == b.op && (!details || (a.kernel == b.kernel && a.precision == b.precision));
}

/// How near to its bound an error came.
double nearness(const Outcome& outcome) {
  return outcome.gate.bound > 0 ? outcome.gate.max_error / outcome.gate.bound : 0;
}

/// The one that a line shows: the failed or least exact of its cases.
const Outcome& worst_of(std::span<const Outcome> line) {
  return *std::max_element(line.begin(), line.end(), [](const Outcome& a, const Outcome& b) {
    return std::pair(failed(a), nearness(a)) < std::pair(failed(b), nearness(b));
  });
}

/// What the cases of a line have of something, each once.
template <class Name>
std::string each_once(std::span<const Outcome> line, Name&& name) {
  std::vector<std::string> names;
  for (const Outcome& outcome : line) {
    const std::string one = name(outcome);
    if (std::find(names.begin(), names.end(), one) == names.end()) names.push_back(one);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string to_text(const Dataset& dataset, std::span<const Outcome> outcomes, bool details) {
  Table table("lllrrrll");
  table.add({"op", "features", "precision", "rows", "error", "allowed", "", "kernel"});
  for (std::size_t begin = 0, end = 0; begin < outcomes.size(); begin = end) {
    // What failed is shown in detail in any case.
    const auto line_details = [&] {
      return details || std::any_of(outcomes.begin(), outcomes.end(), [&](const Outcome& one) {
               return one.op == outcomes[begin].op && failed(one);
             });
    }();
    while (end < outcomes.size() && same_line(outcomes[begin], outcomes[end], line_details)) ++end;
    const auto line = outcomes.subspan(begin, end - begin);
    const Outcome& worst = worst_of(line);
    table.add({worst.op,
               each_once(line, [](const Outcome& one) { return std::to_string(one.features); }),
               each_once(line, [](const Outcome& one) { return to_string(one.precision); }),
               grouped(worst.gate.rows_checked), fmt::format("{:.1e}", worst.gate.max_error),
               fmt::format("{:.1e}", worst.gate.bound), verdict(worst), worst.kernel});
  }
  const auto failures = std::count_if(outcomes.begin(), outcomes.end(), failed);
  const auto unsupported = std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome& one) {
    return !one.unsupported.empty();
  });
  const auto run = static_cast<std::ptrdiff_t>(outcomes.size()) - unsupported;
  std::string summary = failures == 0 ? fmt::format("all {} checks passed", run)
                                      : fmt::format("{} of {} checks FAILED", failures, run);
  if (unsupported > 0) summary += fmt::format("; {} unsupported cases left out", unsupported);
  return headline(dataset) + "\n" + table.text() + summary + "\n";
}

Json to_json(const Dataset& dataset, const std::vector<Outcome>& outcomes) {
  Json checks = Json::array();
  bool passed = true;
  for (const Outcome& outcome : outcomes) {
    passed = passed && !failed(outcome);
    checks.push_back({{"op", outcome.op},
                      {"kernel", outcome.kernel},
                      {"features", outcome.features},
                      {"precision", to_string(outcome.precision)},
                      {"rows_checked", outcome.gate.rows_checked},
                      {"rows", outcome.gate.rows_total},
                      {"max_error", outcome.gate.max_error},
                      {"bound", outcome.gate.bound},
                      {"verdict", verdict(outcome)}});
    if (!outcome.unsupported.empty()) checks.back()["reason"] = outcome.unsupported;
  }
  Json json{{"verb", "check"}};
  json.update(brief_json(dataset));
  json["passed"] = passed;
  json["checks"] = checks;
  return json;
}

ExitCode run_check(Session& session, const CheckArguments& arguments) {
  const LoadedData data = load(session, arguments.data);
  const std::vector<Outcome> outcomes = check_all(session, arguments, data.dataset);
  session.deliver(to_text(data.dataset, outcomes, arguments.details),
                  to_json(data.dataset, outcomes));
  for (const Outcome& outcome : outcomes) {
    if (failed(outcome)) return ExitCode::check_failed;
  }
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<CheckArguments>();
  add_data_options(app, arguments->data);
  add_nonfinite_option(app, arguments->data.nonfinite);
  app.add_option("--device", arguments->device, "cpu, cuda or cuda:N (default cpu)")
      ->type_name("DEVICE")
      ->check(offers({"cpu", "cuda"}));
  app.add_option("--features", arguments->features,
                 "widths of the features to try (default 1,16,33,64)")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(between(std::int64_t{0}, std::int64_t{1} << 20));
  app.add_option("--sample", arguments->sample,
                 "compare rows with about this many edges (default: a million, fewer on a GPU)")
      ->type_name("EDGES")
      ->check(between(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()));
  app.add_option("--max-edges", arguments->max_edges,
                 "of a larger graph, check blocks of 256 rows with about this many edges")
      ->type_name("EDGES")
      ->check(between(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()));
  app.add_flag("--details", arguments->details,
               "a line for every kernel in every precision, instead of one per op");
  return {[arguments](Session& session) { return run_check(session, *arguments); },
          [arguments] { return std::vector{source_file(arguments->data.source)}; }};
}

}  // namespace

const Verb check_verb{"check", "check every kernel against the reference on your graph",
                      "[options] SOURCE",
                      "tessera check embedded:citation\n"
                      "tessera check --data graph.npz --features 7,128 --json -",
                      setup};

}  // namespace tessera::app
