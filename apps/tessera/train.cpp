// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "class_report.hpp"
#include "explain_step.hpp"
#include "labels_needed.hpp"
#include "metric_text.hpp"
#include "options.hpp"
#include "picture/training_plot.hpp"
#include "start_device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/io/relational.hpp"
#include "tessera/io/triples.hpp"
#include "tessera/io/writing.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/memory.hpp"
#include "tessera/train/predict.hpp"
#include "tessera/train/relational.hpp"
#include "train_options.hpp"
#include "train_relational.hpp"
#include "train_report.hpp"
#include "train_triples.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

/// The live line: where the training is and how it does.
std::function<void(const train::EpochRecord&)> epoch_line(Session& session,
                                                          const train::TrainOptions& options,
                                                          train::Metric metric) {
  return [&session, metric, runs = options.runs,
          epochs = options.epochs](const train::EpochRecord& record) {
    std::int64_t total = 0;
    const bool too_many = __builtin_mul_overflow(runs, epochs, &total);
    const std::int64_t done = too_many ? 0 : record.run * epochs + record.epoch;
    if (too_many) total = 0;
    const std::string run = runs > 1 ? fmt::format("run {}/{}  ", record.run + 1, runs) : "";
    const std::string validation =
        record.evaluated ? "  validation " + metric_text(metric, record.evaluation.validation, 1)
                         : "";
    session.progress()(
        fmt::format("{}epoch {}  loss {:.3f}{}", run, record.epoch, record.loss, validation), done,
        total);
  };
}

/// What tells a share from a number on the live line.
train::Metric live_metric(const train::TrainOptions& options) {
  return options.task == train::Task::numbers && options.metric == train::Metric::automatic
             ? train::Metric::rmse
             : options.metric;
}

ExitCode predict_memory(Session& session, const TrainArguments& arguments, const Dataset& dataset,
                        const TrainPlan& plan) {
  nn::validate(plan.config);
  TrainPlan shape_only = plan;
  shape_only.config.precomputed = false;
  shape_only.options.pattern = {};
  session.stage("planning");
  const train::Problem problem = train::prepare(dataset, shape_only.config, shape_only.options);
  const train::TrainingMemory memory = train::predict_memory(problem, plan.config, plan.options);
  session.add_notes(problem.notes);
  session.deliver(dry_run_text(dataset, plan, memory),
                  dry_run_json(arguments, dataset, plan, memory));
  return ExitCode::ok;
}

ExitCode explain_step(Session& session, const TrainArguments& arguments, const Dataset& dataset,
                      const TrainPlan& plan) {
  nn::validate(plan.config);
  session.stage("planning");
  const train::Problem problem = train::prepare(dataset, plan.config, plan.options);
  const nn::StepExplanation step = train::explain_step(problem, plan.config, plan.options);
  const Device device = plan.options.placement.device();
  session.add_notes(problem.notes);
  Json json = training_beginning(arguments, dataset, plan);
  json["step"] = explained_step_json(step, device);
  session.deliver(training_headline(dataset, plan) + explained_step_text(step, device), json);
  return ExitCode::ok;
}

/// Whether two models compute the same but for their bits.
bool have_same_layers(const nn::ModelConfig& left, const nn::ModelConfig& right) {
  return left.kind == right.kind && left.layers == right.layers && left.hidden == right.hidden &&
         left.activation == right.activation && left.batch_norm == right.batch_norm &&
         left.residual == right.residual && left.readout == right.readout;
}

/// What the same model reaches with all bits.
double full_test_of(const std::string& path, const Dataset& dataset, const TrainPlan& plan) {
  const auto reject = [&](const char* problem) {
    throw Error(ErrorCode::invalid_argument, problem, path,
                "train the same model on the same data without --bits, with --checkpoint");
  };
  const train::Checkpoint baseline = train::load_checkpoint(path);
  if (!baseline.model.bits.empty()) reject("the baseline has few bits itself");
  if (!have_same_layers(baseline.model, plan.config)) {
    reject("the baseline is of another model, or has other layers");
  }
  if (baseline.split.test.empty()) reject("the split of the baseline has no test part");
  if (train::test_items(baseline, dataset).empty()) {
    reject("the baseline was not trained on this graph");
  }
  const train::BestEpoch best = train::best_epoch(baseline);
  if (best.run < 0) reject("the baseline was never evaluated");
  return best.evaluation.test;
}

/// Of the weights that are best of all runs, on what their run was tested on.
void write_reports(const TrainArguments& arguments, const Dataset& dataset, const TrainPlan& plan,
                   const train::Checkpoint& kept) {
  train::PredictOptions options;
  options.placement = plan.options.placement;
  options.plans = plan.options.plans;
  options.integers = false;
  const train::Prediction prediction = train::predict(kept, dataset, options);
  const bool tested = !kept.split.test.empty();
  const std::int64_t run = train::best_epoch(kept).run;
  const std::string of_run =
      plan.options.runs > 1 ? fmt::format(" of run {}, the best on validation", run + 1) : "";
  write_class_reports(
      {dataset.name, nn::describe(kept.model),
       (tested ? "the test part" : "the validation part, for want of a test part") + of_run,
       train::report_on(prediction, tested ? kept.split.test : kept.split.validation)},
      arguments.reports);
}

/// What Ctrl-C leaves of a training.
std::function<std::string()> what_is_kept(const TrainArguments& arguments) {
  return [path = arguments.checkpoint, resumed = arguments.resume,
          before = io::files_written()]() -> std::string {
    if (path.empty()) return "nothing is kept; with --checkpoint FILE a training can go on later";
    std::error_code ignored;
    const bool is_there =
        io::files_written() > before || (resumed && std::filesystem::exists(path, ignored));
    return is_there ? path + " keeps the training so far; --resume goes on from there"
                    : "nothing is kept, no epoch was finished";
  };
}

/// What training of links does not say of itself.
void reject_for_links(const TrainArguments& arguments) {
  for (const auto& [given, name] : {std::pair(arguments.dry_run, "--dry-run"),
                                    std::pair(!arguments.explain.empty(), "--explain")}) {
    if (!given) continue;
    throw Error(ErrorCode::unsupported, "is not known of a training of links", name,
                "leave it out, or train a few epochs and look at the peak memory of the report");
  }
}

ExitCode run_train(Session& session, const Arguments& app, TrainArguments arguments) {
  reject_triple_options(app);
  require_sense(arguments);
  if (arguments.data.format.empty() && io::holds_triples(arguments.data.source)) {
    throw Error(ErrorCode::invalid_argument, "is a folder of triples", arguments.data.source,
                "learn them with --task triples (docs/relations.md)");
  }
  if (train::parse_task(arguments.task) == train::Task::links) reject_for_links(arguments);
  read_for_task(arguments);
  open_plans(arguments.planning);
  const auto started = started_meanwhile(parse_device(arguments.device));
  const LoadedData data = load(session, arguments.data);
  require_labels(arguments.data, arguments.task, data.dataset);
  TrainPlan plan = plan_training(arguments, data.dataset, session.seed());
  reject_useless_options(app, arguments, data.dataset, plan);
  plan.options.progress = session.progress();
  if (!arguments.explain.empty()) {
    return explain_step(session, arguments, data.dataset, plan);
  }
  if (arguments.dry_run) return predict_memory(session, arguments, data.dataset, plan);
  session.stage("preparing");
  if (!arguments.baseline.empty()) {
    plan.options.checkpoint.full_test = full_test_of(arguments.baseline, data.dataset, plan);
  }
  plan.options.on_epoch = epoch_line(session, plan.options, live_metric(plan.options));
  if (!arguments.reports.empty()) {
    plan.options.checkpoint.kept = std::make_shared<train::Checkpoint>();
  }
  reset_host_memory_peak();
  session.files_are_progress();
  session.on_interrupt(what_is_kept(arguments));
  const train::TrainReport report = train::fit(data.dataset, plan.config, plan.options);
  session.results_are_complete();
  session.add_notes(report.notes);
  save_plans(arguments.planning);
  save(session, {arguments.saved_data}, data.dataset);
  if (!arguments.plot.empty()) {
    session.stage("drawing");
    picture::write(
        picture::training_plot(
            fmt::format("{} on {}", nn::describe(plan.config), data.dataset.name), report),
        arguments.plot);
  }
  if (!arguments.reports.empty()) {
    session.stage("reporting");
    write_reports(arguments, data.dataset, plan, *plan.options.checkpoint.kept);
  }
  session.deliver(train_text(arguments, data.dataset, plan, report),
                  train_json(arguments, data.dataset, plan, report));
  return ExitCode::ok;
}

bool is_relational(const DataOptions& data) {
  return data.format.empty() && io::holds_relational(data.source);
}

ExitCode run_relational(Session& session, const Arguments& app, const TrainArguments& arguments,
                        const TripleArguments& triples) {
  train::TrainOptions shown = train::relational_options().training;
  if (arguments.epochs) shown.epochs = *arguments.epochs;
  shown.runs = arguments.runs.value_or(1);
  return train_relational(session, app, arguments, triples,
                          epoch_line(session, shown, train::parse_metric(arguments.metric)));
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<TrainArguments>();
  auto triples = std::make_shared<TripleArguments>();
  add_train_options(app, *arguments);
  add_triple_options(app, *triples);
  return {[&app, arguments, triples](Session& session) {
            if (arguments->task == "triples") {
              return train_triples(session, app, *arguments, *triples);
            }
            if (is_relational(arguments->data)) {
              return run_relational(session, app, *arguments, *triples);
            }
            return run_train(session, app, *arguments);
          },
          [arguments] { return files_of(*arguments); }};
}

}  // namespace

const Verb train_verb{"train", "train a model and report its accuracy",
                      "[options] SOURCE [--model NAME]",
                      "tessera train embedded:citation --model gcn --plot gcn.svg\n"
                      "tessera train --data cora.npz --model gat --runs 10 --json gat.json\n"
                      "tessera train --data graph.npz --model sage --batch clusters --parts 50\n"
                      "tessera train --data graph.npz --checkpoint run.tsr --resume\n"
                      "tessera train edges.csv --nodes users.csv --label churn -c model.tsr\n"
                      "tessera train follows.csv --task links --checkpoint follows.tsr\n"
                      "tessera train edges.csv --nodes houses.csv --task numbers --label price\n"
                      "tessera train facts/ --task triples --model rgcn\n"
                      "tessera train shop/ --symmetrise --checkpoint shop.tsr",
                      setup};

}  // namespace tessera::app
