// SPDX-License-Identifier: Apache-2.0
#include "train_relational.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "class_report.hpp"
#include "describe_relational.hpp"
#include "numbers.hpp"
#include "picture/training_plot.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/train/class_report.hpp"
#include "tessera/train/relational.hpp"
#include "train_report.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

constexpr const char* where = "for a folder of kinds of vertices";

/// Of the options of `train`.
const std::vector<const char*>& training_options() {
  static const std::vector<const char*> all = [] {
    std::vector<const char*> options{"--task",
                                     "--model",
                                     "--layers",
                                     "--hidden",
                                     "--heads",
                                     "--dropout",
                                     "--blocks",
                                     "--bases",
                                     "--epochs",
                                     "--lr",
                                     "--weight-decay",
                                     "--optimiser",
                                     "--momentum",
                                     "--schedule",
                                     "--decay-every",
                                     "--decay-factor",
                                     "--warm-up",
                                     "--clip-gradients",
                                     "--average-weights",
                                     "--label-smoothing",
                                     "--class-weights",
                                     "--evaluate-every",
                                     "--early-stopping",
                                     "--stop-by",
                                     "--split",
                                     "--split-index",
                                     "--folds",
                                     "--runs",
                                     "--parallel-runs",
                                     "--metric",
                                     "--normalise",
                                     "--device",
                                     "--precision",
                                     "--checkpoint",
                                     "--curve",
                                     "--plot",
                                     "--report"};
    options.insert(options.end(), relational_reading.begin(), relational_reading.end());
    return options;
  }();
  return all;
}

nn::RelationalModelOptions model_of(const Arguments& app, const TrainArguments& a,
                                    const TripleArguments& weights) {
  nn::RelationalModelOptions model;
  if (app.is_given("--model")) model.kind = nn::parse_relational_kind(a.model);
  const bool is_rgcn = model.kind == nn::RelationalKind::rgcn;
  const std::string of_model = fmt::format("for {}", nn::to_string(model.kind));
  reject_useless(app, {{"--heads", model.kind != nn::RelationalKind::gat, of_model, "use gat"},
                       {"--blocks", !is_rgcn, of_model, "use rgcn"},
                       {"--bases", !is_rgcn, of_model, "use rgcn"}});
  override_with(a.layers, model.layers);
  override_with(a.hidden, model.hidden);
  override_with(a.heads, model.heads);
  override_with(a.dropout, model.dropout);
  override_with(weights.blocks, model.blocks);
  override_with(weights.bases, model.bases);
  return model;
}

train::RelationalOptions options_of(const Session& session, const Arguments& app,
                                    const TrainArguments& a, const TripleArguments& weights) {
  const train::Task task = train::parse_task(a.task);
  if (task != train::Task::automatic && task != train::Task::node) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} are not learned in a graph with kinds of vertices", a.task),
                "--task", "leave it out: classes of the kind that has labels are learned");
  }
  train::RelationalOptions options = train::relational_options();
  options.model = model_of(app, a, weights);
  apply_training_options(a, options.training);
  options.training.checkpoint = {};
  options.training.seed = session.seed();
  options.training.placement.memory = &default_memory(checked_device(a.device));
  return options;
}

Json beginning(const TrainArguments& a, const RelationalData& data,
               const train::RelationalOptions& options) {
  Json json{{"verb", "train"}, {"source", a.data.source}};
  json.update(brief_json(data));
  json["learned"] = data.graph.kinds()[static_cast<std::size_t>(labelled_kind(data))].name;
  json["model"] = nn::to_string(options.model.kind);
  json["device"] = to_string(options.training.placement.device());
  json["threads"] = num_threads();
  const nn::RelationalModelOptions& model = options.model;
  Json config = training_settings_json(options.training);
  config["model"] = {{"kind", nn::to_string(model.kind)},
                     {"layers", model.layers},
                     {"hidden", model.hidden},
                     {"heads", model.heads},
                     {"blocks", model.blocks},
                     {"bases", model.bases},
                     {"dropout", model.dropout}};
  json["config"] = config;
  return json;
}

/// Of the weights that are best of all runs, on what their run was tested on.
void write_reports(const std::vector<std::string>& paths, const RelationalData& data,
                   const train::RelationalCheckpoint& kept, const step::Placement& placement) {
  const bool tested = !kept.split.test.empty();
  write_class_reports({data.name, train::describe(kept.model),
                       tested ? "the test part" : "the validation part, for want of a test part",
                       train::report_on(train::predict(kept, data, placement),
                                        tested ? kept.split.test : kept.split.validation)},
                      paths);
}

}  // namespace

ExitCode train_relational(Session& session, const Arguments& app, const TrainArguments& arguments,
                          const TripleArguments& weights,
                          const std::function<void(const train::EpochRecord&)>& on_epoch) {
  allow_options(app, training_options(), where);
  picture::require_picture_ending(arguments.plot, "--plot");
  require_report_endings(arguments.reports);
  train::RelationalOptions options = options_of(session, app, arguments, weights);
  options.training.progress = session.progress();
  options.training.on_epoch = on_epoch;
  const RelationalData data = load_relational(session, arguments.data);
  const Json first = beginning(arguments, data, options);
  session.stage("preparing");
  reset_host_memory_peak();
  train::RelationalCheckpoint kept;
  const train::TrainReport report = train::fit_relational(data, options, &kept);
  session.results_are_complete();
  session.add_notes(report.notes);
  if (!arguments.checkpoint.empty()) train::save(kept, arguments.checkpoint);
  if (!arguments.plot.empty()) {
    picture::write(picture::training_plot(
                       fmt::format("{} on {}", train::describe(options.model), data.name), report),
                   arguments.plot);
  }
  if (!arguments.reports.empty()) {
    write_reports(arguments.reports, data, kept, options.training.placement);
  }
  session.deliver(train_text(arguments, headline(data), options.training, report),
                  train_json(arguments, first, report));
  return ExitCode::ok;
}

}  // namespace tessera::app
