// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>

#include <fmt/format.h>

#include "bench/workloads.hpp"
#include "bench_cases.hpp"
#include "bench_compare.hpp"
#include "bench_records.hpp"
#include "interrupt.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "start_device.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/printable.hpp"
#include "useless.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

/// Everything measured so far, as a table and as JSON.
class Report {
 public:
  Report() {
    table_.add({"op", "graph", "features", "precision", "threads", "median", "min", "worst",
                "of floor", "error", "kernel"});
  }

  void add(const Case& one, const bench::Result& result) {
    const Measurement& record = result.record;
    std::vector<std::string> cells = {record.op, record.graph, std::to_string(record.features),
                                      record.precision, std::to_string(record.threads)};
    if (result.gate.passed()) {
      ++measured_;
      records_.push_back(to_json(result, one.problem.heads));
      if (one.baseline) records_.back()["baseline"] = true;
      note(record, result.figures);
      for (const double us : {record.median_us, record.min_us, record.worst_us}) {
        cells.push_back(human_microseconds(us));
      }
      cells.push_back(record.floor_us > 0
                          ? fmt::format("{:.0f} %", 100 * record.floor_us / record.median_us)
                          : "-");
    } else {
      cells.insert(cells.end(), {"FAILED", "", "", ""});
      failures_.push_back({{"op", record.op},
                           {"graph", record.graph},
                           {"features", record.features},
                           {"precision", record.precision},
                           {"threads", record.threads},
                           {"kernel", record.kernel},
                           {"max_error", record.max_error},
                           {"bound", result.gate.bound}});
      failure_notes_ +=
          fmt::format("FAILED: {} on {}: error {:.1e}, allowed {:.1e}; not measured\n",
                      record.kernel, printable(record.graph), record.max_error, result.gate.bound);
    }
    cells.push_back(fmt::format("{:.1e}", record.max_error));
    cells.push_back(record.kernel + (one.baseline ? " (baseline)" : ""));
    table_.add(std::move(cells));
  }

  /// Something that no kernel of the device can do; noted once for all widths and graphs.
  void skip(const Case& one, const std::string& reason) {
    const std::string precision = to_string(one.problem.precision);
    const std::string what = fmt::format("{} in {}", one.suite->op, precision);
    for (const auto& [known, why] : skips_) {
      if (known == what) return;
    }
    skips_.emplace_back(what, reason);
    skipped_.push_back({{"op", one.suite->op},
                        {"graph", one.problem.graph_name},
                        {"features", one.problem.features},
                        {"precision", precision},
                        {"reason", reason}});
  }

  bool failed() const { return !failure_notes_.empty(); }
  std::int64_t measured() const { return measured_; }
  const Json& records() const { return records_; }
  const Json& failures() const { return failures_; }
  const Json& skipped() const { return skipped_; }
  /// Why the first of what was skipped was.
  const std::string& first_reason() const { return skips_.front().second; }

  std::string text() const {
    std::string text = table_.text() + notes_;
    text += failure_notes_;
    for (const auto& [what, why] : skips_)
      text += fmt::format("skipped: {}: {}\n", what, printable(why));
    return text;
  }

 private:
  /// What a measurement has beside its times, in a line below the table.
  void note(const Measurement& record, const std::vector<bench::Figure>& figures) {
    if (figures.empty()) return;
    notes_ += fmt::format("{} on {}:", record.op, printable(record.graph));
    for (const bench::Figure& figure : figures) {
      notes_ += fmt::format(" {} {:.4g}", figure.name, figure.value);
    }
    notes_ += "\n";
  }

  std::string notes_;
  std::string failure_notes_;
  std::vector<std::pair<std::string, std::string>> skips_;  ///< what, and why
  Table table_{"llrlrrrrrrl"};
  Json records_ = Json::array();
  Json failures_ = Json::array();
  Json skipped_ = Json::array();
  std::int64_t measured_ = 0;
};

bench::Workload workload_of(const BenchArguments& arguments) {
  bench::Workload workload = arguments.full ? bench::full_workload() : bench::quick_workload();
  const bool quick_timing = arguments.sources.empty() ? !arguments.full : arguments.quick;
  if (!arguments.sources.empty()) {
    workload.sources = arguments.sources;
    // On data of the user's own the time is spent on figures worth keeping, unless told not to.
    if (!quick_timing) workload.timing = bench::full_workload().timing;
    workload.features = bench::full_workload().features;
  }
  if (!arguments.features.empty()) workload.features = arguments.features;
  if (parse_device(arguments.device).kind == DeviceKind::cuda) {
    workload.timing = bench::gpu_timing(quick_timing);
  }
  return workload;
}

std::string commit_of(const BenchArguments& arguments) {
  if (!arguments.commit.empty()) return arguments.commit;
  const char* const commit = std::getenv("TESSERA_COMMIT");
  return commit == nullptr ? "" : commit;
}

void measure_source(Session& session, const BenchArguments& arguments,
                    const bench::Workload& workload, const std::string& source, Report& report) {
  const LoadedData data = load(session, {.source = source, .nonfinite = arguments.nonfinite});
  const std::vector<Case> cases =
      cases_on(arguments, data.dataset, workload.features, session.seed());
  std::int64_t done = 0;
  const auto total = static_cast<std::int64_t>(cases.size() * arguments.threads.size());
  for (const int threads : arguments.threads) {
    set_num_threads(threads);
    for (const Case& one : cases) {
      session.progress()(fmt::format("{} on {}", one.suite->op, data.dataset.name), done++, total);
      try {
        report.add(one, bench::run_suite(*one.suite, one.problem, workload.timing));
        if (report.measured() > 0) session.has_results_to_keep();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
        // With all kernels, those that cannot run this problem are passed over.
        if (arguments.kernel == "all" || one.baseline) continue;
        if (one.problem.device.kind == DeviceKind::cpu) throw;
        report.skip(one, error.what());
      }
    }
  }
}

/// What an exception says for the results that came before it.
std::string message_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

/// Whether an exception comes of what was given, so that it says nothing of the device.
bool comes_of_input(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error.code() == ErrorCode::bad_data || error.code() == ErrorCode::io ||
           error.code() == ErrorCode::invalid_argument;
  } catch (...) {
    return false;
  }
}

ExitCode run_bench(Session& session, BenchArguments arguments) {
  check_arguments(arguments);
  open_plans(arguments.planning);
  const Device device = parse_device(arguments.device);
  require_available(device);
  const auto started = started_meanwhile(device);
  const bench::Workload workload = workload_of(arguments);
  const int threads_before = num_threads();
  Report report;
  // What was measured took its time, and is as good as if nothing had been left to do.
  bool interrupted = false;
  std::exception_ptr failure;
  try {
    for (const std::string& source : workload.sources) {
      measure_source(session, arguments, workload, source, report);
    }
  } catch (const Interrupted&) {
    if (report.measured() == 0) throw;
    interrupted = true;
  } catch (...) {
    if (report.measured() == 0) throw;
    failure = std::current_exception();
  }
  if (report.measured() > 0) session.results_are_complete();
  Json json = bench_header(commit_of(arguments));
  if (failure) json["error"] = message_of(failure);
  if (failure && !comes_of_input(failure)) {
    // A device that failed may do nothing more.
    json["copy_bytes_per_second"] = Json::object();
  } else {
    save_plans(arguments.planning);
    json["copy_bytes_per_second"] = bandwidth_json(arguments.threads, device);
  }
  set_num_threads(threads_before);
  json["epochs"] = arguments.epochs;
  json["records"] = report.records();
  json["failures"] = report.failures();
  json["skipped"] = report.skipped();
  if (report.measured() == 0 && !report.failed()) {
    if (!report.skipped().items().empty()) {
      throw Error(ErrorCode::unsupported, report.first_reason());
    }
    throw Error(ErrorCode::invalid_argument, "nothing to measure with these options", "",
                "see 'tessera doctor' for kernels, or leave out --kernel and --precision");
  }
  if (interrupted) json["interrupted"] = true;
  session.deliver(report.text() + (interrupted ? "interrupted: the rest was not measured\n" : ""),
                  json);
  if (failure) std::rethrow_exception(failure);
  if (interrupted) return ExitCode::interrupted;
  return report.failed() ? ExitCode::check_failed : ExitCode::ok;
}

bool compares(const BenchArguments& arguments) {
  return !arguments.words.empty() && arguments.words[0] == "compare";
}

bool trains_models(const BenchArguments& arguments) {
  const auto suites = chosen_suites(arguments);
  return std::any_of(suites.begin(), suites.end(),
                     [](const bench::Suite* suite) { return suite->has_shape; });
}

bool has_heads(const BenchArguments& arguments) {
  const std::vector<const bench::Suite*> suites = chosen_suites(arguments);
  return std::any_of(suites.begin(), suites.end(),
                     [](const bench::Suite* suite) { return suite->usual_heads > 0; });
}

bool cuts_batches(const BenchArguments& arguments) {
  const std::vector<const bench::Suite*> suites = chosen_suites(arguments);
  return std::any_of(suites.begin(), suites.end(),
                     [](const bench::Suite* suite) { return suite->op.starts_with("batches_"); });
}

void reject_useless_options(const Arguments& app, const BenchArguments& arguments) {
  const bool comparing = compares(arguments);
  std::vector<Useless> options{
      {"--fail-under", !comparing, "but for compare", "use tessera bench compare A.json B.json"},
      {"--by-position", !comparing, "but for compare", "use tessera bench compare A.json B.json"},
      {"--heads", !comparing && !has_heads(arguments), "for these ops",
       "measure an op with heads, such as attention_gat"}};
  for (const char* name : {"--data",
                           "--nonfinite",
                           "--features",
                           "--device",
                           "--precision",
                           "--threads",
                           "--heads",
                           "--kernel",
                           "--baseline",
                           "--tune",
                           "--plans",
                           "--strict",
                           "--exact-nonfinite",
                           "--allow-nondeterministic",
                           "--epochs",
                           "--quick",
                           "--full",
                           "--commit",
                           "--hidden",
                           "--classes",
                           "--dropout"}) {
    options.push_back({name, comparing, "for compare", ""});
  }
  const bool trains = !comparing && trains_models(arguments);
  for (const char* name : {"--hidden", "--classes", "--dropout"}) {
    options.push_back({name, !trains, "where no model is trained", "measure step or epoch"});
  }
  const bool cuts = !comparing && cuts_batches(arguments);
  for (const char* name : {"--parts", "--partition"}) {
    options.push_back({name, !cuts, "for these ops", "measure batches_gcn or batches_gin"});
  }
  options.push_back({"--parts", !arguments.partition_file.empty(), "with --partition", ""});
  reject_useless(app, options);
}

ExitCode route(Session& session, const Arguments& app, const BenchArguments& arguments) {
  reject_useless_options(app, arguments);
  if (!compares(arguments)) return run_bench(session, arguments);
  if (arguments.words.size() != 3) {
    throw Error(ErrorCode::invalid_argument, "compare needs two files", "",
                "use tessera bench compare BEFORE.json AFTER.json");
  }
  return compare_records(session, arguments.words[1], arguments.words[2], arguments.fail_under,
                         arguments.by_position);
}

std::vector<FileUse> files_of(const BenchArguments& arguments) {
  std::vector<FileUse> files{plans_file(arguments.planning),
                             {"--partition", arguments.partition_file, FileRole::input}};
  for (const std::string& source : arguments.sources) files.push_back(source_file(source));
  if (!compares(arguments)) return files;
  for (std::size_t i = 1; i < arguments.words.size(); ++i) {
    files.push_back({"compare", arguments.words[i], FileRole::input});
  }
  return files;
}

std::string op_names() {
  std::string names;
  for (const bench::Suite& suite : bench::suites()) {
    if (!suite.on_request) names += (names.empty() ? "" : ", ") + suite.op;
  }
  return names;
}

/// For completion: every op, the names of groups of them, and the other thing this verb does.
std::vector<std::string> all_words() {
  std::vector<std::string> words{"compare",   "layer",    "step",  "epoch",
                                 "inductive", "clusters", "graphs"};
  for (const bench::Suite& suite : bench::suites()) words.push_back(suite.op);
  return words;
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<BenchArguments>();
  app.add_option(
         "OP", arguments->words,
         "what to measure; without it: " + op_names() +
             ". Only when named: layer, step and epoch, for every model or one as in epoch_gcn, "
             "with the data's own features; inductive, a step whose graph is processed and planned "
             "anew; clusters and graphs, a step on one of 16 parts of a "
             "graph or on 128 graphs; spmm_weighted and spmm_edge_values, sums with a weight for "
             "every edge, fixed or new in each run; attention_cosine, AGNN's attention; translate, "
             "making tiles; process and planning, "
             "making graphs of edges and plans of graphs; batches, inference over parts of a "
             "graph, in bits too as in batches_gcn_4. "
             "Or: compare A.json B.json")
      ->type_name("OP")
      ->check(offers(all_words()));
  app.add_option("-d,--data", arguments->sources, "data to measure on; may be given several times")
      ->type_name("SOURCE")
      ->repeatable();
  add_nonfinite_option(app, arguments->nonfinite);
  app.add_option("--features", arguments->features, "widths of the features, such as 16,64,256")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(between(std::int64_t{0}, std::int64_t{1} << 20));
  app.add_option("--device", arguments->device, "cpu, cuda or cuda:N (default cpu)")
      ->type_name("DEVICE")
      ->check(offers({"cpu", "cuda"}));
  app.add_option(
         "--precision", arguments->precisions,
         "fp32, fp64, bf16, of training steps tf32 or, on a GPU, fp16, or several (default fp32); "
         "fp16@128 means at that width alone")
      ->type_name("NAMES")
      ->check(offers({"fp32", "fp64", "tf32", "bf16", "fp16"}))
      ->delimiter(',');
  app.add_option("--threads", arguments->threads,
                 "numbers of threads, such as 1,2; 0, the default, is one per core")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(between(std::int64_t{0}, std::int64_t{4096}))
      ->group("Common options");
  app.add_option("--heads", arguments->heads, "heads of attention (default: 8 where they fit)")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{4096}));
  app.add_option("--parts", arguments->parts,
                 "parts of the graph that batches_* are cut from (default: of about 100 vertices, "
                 "1500 at most)")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{1} << 30));
  app.add_option("--partition", arguments->partition_file,
                 "read the parts of batches_* from this file: line i holds the part of vertex i")
      ->type_name("FILE");
  const std::string shape = "Shape of a trained model (default: as in its paper)";
  app.add_option("--hidden", arguments->shape.hidden,
                 "width between two layers, all heads together")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{1} << 20))
      ->group(shape);
  app.add_option("--classes", arguments->shape.classes,
                 "number of classes; labels are drawn at random")
      ->type_name("N")
      ->check(between(std::int64_t{2}, std::int64_t{1} << 20))
      ->group(shape);
  app.add_option(
         "--dropout", arguments->shape.dropout,
         "dropout on features, between layers and on attention (default 0 where a shape is given)")
      ->type_name("SHARE")
      ->group(shape);
  app.add_option("--kernel", arguments->kernel,
                 "run this kernel instead of the plan's choice, or the fastest of a group such as "
                 "'spmm/cuda/rows*'; all runs each of them")
      ->type_name("NAME");
  app.add_option("--baseline", arguments->baseline,
                 "also measure this kernel, or the fastest of this group, to compare with")
      ->type_name("NAME");
  add_planning_options(app, arguments->planning);
  app.add_option("--epochs", arguments->epochs,
                 "how often plans will be used (default 100); where that makes up for the time, "
                 "plans on a GPU also look for another order of rows")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{1} << 40))
      ->group("Plans");
  auto* const quick = app.add_flag("--quick", arguments->quick,
                                   "small graphs and few repeats (the default without --data)");
  app.add_flag("--full", arguments->full, "more graphs, five widths, more repeats")
      ->excludes(quick);
  app.add_option(
         "--commit", arguments->commit,
         "name of the version to note in the results (default: TESSERA_COMMIT in the environment)")
      ->type_name("ID");
  app.add_option("--fail-under", arguments->fail_under,
                 "compare: exit with 7 where B is less than RATIO times as fast as A")
      ->type_name("RATIO")
      ->check(between(0.0, 1e6));
  app.add_flag("--by-position", arguments->by_position,
               "compare: take the first graph of A for the first of B and so on, whatever their "
               "names, as before and after reordering");
  return {[&app, arguments](Session& session) { return route(session, app, *arguments); },
          [arguments] {
            take_data(*arguments);
            return files_of(*arguments);
          }};
}

}  // namespace

const Verb bench_verb{"bench", "measure kernels, each checked first, or compare two results",
                      "[OP ...] [options] [SOURCE ...] | compare A.json B.json [options]",
                      "tessera bench --quick\n"
                      "tessera bench spmm --data graph.npz --features 16,64 --threads 1,2\n"
                      "tessera bench epoch_gcn epoch_gat --data graph.npz\n"
                      "tessera bench spmm --full --json after.json --commit 1a2b3c\n"
                      "tessera bench spmm sddmm --device cuda --precision fp32,bf16 --data a.npz\n"
                      "tessera bench compare before.json after.json --fail-under 0.95\n"
                      "tessera bench compare given.json reordered.json --by-position",
                      setup};

}  // namespace tessera::app
