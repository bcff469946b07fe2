// SPDX-License-Identifier: Apache-2.0
#include "train_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "curve.hpp"
#include "describe.hpp"
#include "link_report.hpp"
#include "metric_text.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::app {
namespace {

std::string short_real(double value) { return fmt::format("{:.3f}", value); }

std::string training_line(const train::TrainOptions& options) {
  const auto settings = train::settings_of(options);
  std::string text = fmt::format("{}, learning rate {}, weight decay {}, at most {} epochs",
                                 settings.front().value, options.optimiser.learning_rate,
                                 options.optimiser.weight_decay, options.epochs);
  if (options.evaluate_every > 1) {
    text += fmt::format(", evaluated every {}", options.evaluate_every);
  }
  if (options.placement.precision != Precision::fp32) {
    text += fmt::format(", {}", to_string(options.placement.precision));
  }
  if (options.schedule != train::Schedule::constant) {
    text += fmt::format(", {} schedule", train::to_string(options.schedule));
  }
  if (options.warm_up > 0) text += fmt::format(", warm-up {}", options.warm_up);
  if (options.clip_gradients > 0) text += fmt::format(", gradients to {}", options.clip_gradients);
  if (options.average_weights > 0) {
    text += fmt::format(", weights averaged {}", options.average_weights);
  }
  if (!options.class_weights.none()) {
    text += fmt::format(", class weights {}", train::to_string(options.class_weights));
  }
  if (options.task == train::Task::numbers) {
    text += fmt::format(", {} loss of {} targets", ops::to_string(options.numbers.loss),
                        options.numbers.standardise ? "standardised" : "raw");
  }
  if (options.label_smoothing > 0) text += fmt::format(", smoothing {}", options.label_smoothing);
  if (options.patience > 0) text += fmt::format(", early stopping after {}", options.patience);
  return text + fmt::format(", {} batch", train::to_string(options.batching));
}

std::string shares_of_time(const train::PhaseTimes& times) {
  std::vector<std::pair<double, std::string>> shares;
  const double total = times.total();
  for (std::size_t i = 0; i < train::num_phases; ++i) {
    const auto phase = static_cast<train::Phase>(i);
    if (total > 0 && times[phase] / total >= 0.005) {
      shares.emplace_back(times[phase] / total, train::to_string(phase));
    }
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [share, name] : shares) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, share * 100);
  }
  return text;
}

struct NamedSeconds {
  const char* name;
  double seconds;
};

std::array<NamedSeconds, 6> parts_of(const train::FirstStep& first) {
  return {{{"start", first.start},
           {"upload", first.upload},
           {"build", first.build},
           {"plan", first.plan},
           {"step", first.step},
           {"capture", first.capture}}};
}

std::string first_step_line(const train::FirstStep& first) {
  std::string text = human_seconds(first.total()) + ":";
  for (const NamedSeconds& part : parts_of(first)) {
    if (part.seconds == 0) continue;
    text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", part.name,
                        human_seconds(part.seconds));
  }
  return text;
}

std::string epochs_line(const train::TrainReport& report) {
  const auto& run = report.runs.back();
  if (report.runs.size() == 1) {
    return fmt::format("best {} of {}{}", run.best_epoch, run.epochs,
                       run.stopped_early ? ", stopped early" : "");
  }
  std::int64_t sum = 0, early = 0;
  for (const train::RunReport& each : report.runs) {
    sum += each.epochs;
    early += each.stopped_early ? 1 : 0;
  }
  return fmt::format("{} in all{}", grouped(sum),
                     early > 0 ? fmt::format(", {} runs stopped early", early) : "");
}

/// How many runs the mean is of, and on how many splits or folds.
std::string runs_text(const train::TrainReport& report) {
  if (report.runs.size() < 2) return {};
  std::set<std::int64_t> splits, folds;
  for (const train::RunReport& run : report.runs) {
    if (run.split) splits.insert(*run.split);
    if (run.fold) folds.insert(*run.fold);
  }
  const bool folded = folds.size() > 1;
  const std::size_t parts = folded ? folds.size() : splits.size();
  return fmt::format(", {} runs", report.runs.size()) +
         (parts > 1 ? fmt::format(" on {} {}", parts, folded ? "folds" : "splits") : "");
}

/// Of cross-validation and of several splits: a line for each run.
std::string runs_table(const train::TrainReport& report) {
  const train::RunReport& first = report.runs.front();
  if (report.runs.size() < 2 || (!first.fold && !first.split)) return {};
  Table table("rrrrr");
  table.add({"run", first.fold ? "fold" : "split", "best epoch", "validation",
             report.tested ? "test" : ""});
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const train::RunReport& run = report.runs[i];
    table.add({grouped(static_cast<std::int64_t>(i) + 1),
               grouped(run.fold ? *run.fold : run.split.value_or(0)), grouped(run.best_epoch),
               metric_text(report.metric, run.best.validation, 1),
               report.tested ? metric_text(report.metric, run.best.test, 1) : ""});
  }
  return "\n" + table.text();
}

std::string curves(const train::TrainReport& report) {
  const auto& curve = report.runs.back().curve;
  std::vector<double> loss, validation;
  for (const train::EpochRecord& record : curve) {
    loss.push_back(record.loss);
    if (record.evaluated) validation.push_back(record.evaluation.validation);
  }
  const std::string last = fmt::format("epoch {}", curve.size());
  const std::string title = fmt::format("validation {}", train::to_string(report.metric));
  return "\n" + draw({"training loss", loss, short_real, "1", last}) + "\n" +
         draw({title, validation,
               [&](double value) { return metric_text(report.metric, value, 1); }, "1", last});
}

/// Settings are text; JSON has types.
Json typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (text == "none") return nullptr;
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return text;
  const auto whole = static_cast<std::int64_t>(number);
  const bool is_whole = text.find_first_not_of("0123456789") == std::string::npos;
  return is_whole ? Json(whole) : Json(number);
}

Json settings_json(const std::vector<train::Setting>& settings) {
  Json json = Json::object();
  for (const auto& [name, value] : settings) {
    const std::size_t dot = name.find('.');
    json[name.substr(0, dot)][name.substr(dot + 1)] = typed(value);
  }
  return json;
}

Json config_json(const TrainPlan& plan) {
  Json json = settings_json(train::settings_of(plan.config));
  json.update(training_settings_json(plan.options));
  return json;
}

/// A single run says nothing about how far runs differ.
Json deviation_json(const train::TrainReport& report, const train::Summary& summary) {
  return report.runs.size() > 1 ? Json(summary.deviation) : Json();
}

Json runs_json(const train::TrainReport& report) {
  Json runs = Json::array();
  for (const train::RunReport& run : report.runs) {
    runs.push_back({{"seed", run.seed},
                    {"epochs", run.epochs},
                    {"best_epoch", run.best_epoch},
                    {"train", run.best.train},
                    {"validation", run.best.validation},
                    {"test", report.tested ? Json(run.best.test) : Json()},
                    {"validation_loss", run.best.validation_loss},
                    {"stopped_early", run.stopped_early}});
    if (run.split) runs.back()["split"] = *run.split;
    if (run.fold) runs.back()["fold"] = *run.fold;
  }
  return runs;
}

Json curve_json(const train::TrainReport& report) {
  Json curve = Json::array();
  for (const train::EpochRecord& record : report.runs.back().curve) {
    Json point{{"epoch", record.epoch}, {"loss", record.loss}};
    if (record.evaluated) {
      point["train"] = record.evaluation.train;
      point["validation"] = record.evaluation.validation;
      if (report.tested) point["test"] = record.evaluation.test;
      point["validation_loss"] = record.evaluation.validation_loss;
    }
    curve.push_back(std::move(point));
  }
  return curve;
}

}  // namespace

Json training_settings_json(const train::TrainOptions& options) {
  return settings_json(train::settings_of(options));
}

std::string training_headline(const Dataset& dataset, const TrainPlan& plan) {
  return fmt::format("{}\n{}\n", headline(dataset), nn::describe(plan.config));
}

Json training_beginning(const TrainArguments& arguments, const Dataset& dataset,
                        const TrainPlan& plan) {
  Json json{{"verb", "train"}, {"source", arguments.data.source}};
  json.update(brief_json(dataset));
  json["model"] = nn::to_string(plan.config.kind);
  json["device"] = to_string(plan.options.placement.device());
  json["config"] = config_json(plan);
  json["threads"] = num_threads();
  return json;
}

std::string human_metric(const train::Summary& summary, std::size_t runs, train::Metric metric) {
  if (runs < 2) return metric_text(metric, summary.mean);
  if (train::is_of_numbers(metric)) {
    return fmt::format("{:.4g} {} {:.2g}", summary.mean, utf8_output() ? "±" : "+-",
                       summary.deviation);
  }
  return fmt::format("{:.2f} {} {:.2f} %", summary.mean * 100, utf8_output() ? "±" : "+-",
                     summary.deviation * 100);
}

std::string train_text(const TrainArguments& arguments, const Dataset& dataset,
                       const TrainPlan& plan, const train::TrainReport& report) {
  return train_text(arguments, headline(dataset), plan.options, report);
}

std::string train_text(const TrainArguments& arguments, const std::string& headline,
                       const train::TrainOptions& options, const train::TrainReport& report) {
  const std::string metric = train::to_string(report.metric);
  const std::size_t runs = report.runs.size();
  Table table("ll");
  table.add({"model", report.model});
  table.add({"parameters", grouped(report.parameters)});
  table.add({"training", training_line(options)});
  const std::string at = " at the best validation epoch" + runs_text(report);
  if (report.tested) {
    table.add({"test " + metric, human_metric(report.test, runs, report.metric) + at});
    add_links(report, table);
    table.add({"validation", human_metric(report.validation, runs, report.metric)});
  } else {
    table.add({"validation " + metric, human_metric(report.validation, runs, report.metric) + at});
  }
  if (report.lost) {
    table.add({"lost", fmt::format("{:.2f} points of {} against {}", *report.lost * 100, metric,
                                   arguments.baseline.empty() ? "all bits" : arguments.baseline)});
  }
  table.add({"epochs", epochs_line(report)});
  if (report.epochs > 0) {
    table.add({"time per epoch",
               fmt::format("{}, {} of it the training step", human_seconds(report.epoch_ms / 1e3),
                           human_seconds(report.step_ms / 1e3))});
    table.add({"first step", first_step_line(report.first_step)});
    table.add({"time spent on", shares_of_time(report.times)});
  }
  table.add({"peak memory", human_bytes(report.peak_memory_bytes)});
  if (!arguments.checkpoint.empty()) table.add({"checkpoint", arguments.checkpoint});
  if (!arguments.saved_data.empty()) table.add({"data", arguments.saved_data});
  if (!arguments.plot.empty()) table.add({"plot", arguments.plot});
  for (const std::string& path : arguments.reports) table.add({"report", path});
  std::string text = headline + "\n" + table.text() + runs_table(report);
  if (arguments.curve && !report.runs.back().curve.empty()) text += curves(report);
  return text;
}

Json train_json(const TrainArguments& arguments, const Dataset& dataset, const TrainPlan& plan,
                const train::TrainReport& report) {
  return train_json(arguments, training_beginning(arguments, dataset, plan), report);
}

Json train_json(const TrainArguments& arguments, Json json, const train::TrainReport& report) {
  json["layers"] = report.model;
  json["parameters"] = report.parameters;
  json["test"] = {{"metric", train::to_string(report.metric)},
                  {"mean", report.tested ? Json(report.test.mean) : Json()},
                  {"std", report.tested ? deviation_json(report, report.test) : Json()},
                  {"runs", report.runs.size()}};
  json["validation"] = {{"mean", report.validation.mean},
                        {"std", deviation_json(report, report.validation)}};
  add_links(report, json);
  if (report.lost) json["lost"] = *report.lost;
  // A training that was resumed when it was finished has no times.
  json["step_ms"] = report.epochs > 0 ? Json(report.step_ms) : Json();
  json["epoch_ms"] = report.epochs > 0 ? Json(report.epoch_ms) : Json();
  for (const NamedSeconds& part : parts_of(report.first_step)) {
    json["first_step_ms"][part.name] = part.seconds * 1e3;
  }
  json["epochs"] = report.epochs;
  for (std::size_t i = 0; i < train::num_phases; ++i) {
    const auto phase = static_cast<train::Phase>(i);
    json["seconds"][train::to_string(phase)] = report.times[phase];
  }
  json["peak_memory_bytes"] = report.peak_memory_bytes;
  json["runs"] = runs_json(report);
  json["curve"] = curve_json(report);
  if (!arguments.checkpoint.empty()) json["checkpoint"] = arguments.checkpoint;
  if (!arguments.saved_data.empty()) json["saved_data"] = arguments.saved_data;
  if (!arguments.plot.empty()) json["plot"] = arguments.plot;
  if (!arguments.reports.empty()) json["reports"] = arguments.reports;
  return json;
}

std::string dry_run_text(const Dataset& dataset, const TrainPlan& plan,
                         const train::TrainingMemory& memory) {
  Table table("lr");
  table.add({"parameters", human_bytes(memory.parameters)});
  table.add({"activations", human_bytes(memory.activations)});
  // On a CPU both are trained on where they were read to.
  if (memory.graph > 0) table.add({"graph", human_bytes(memory.graph)});
  if (memory.features > 0) table.add({"features", human_bytes(memory.features)});
  table.add({"rest", human_bytes(memory.rest)});
  if (memory.data > 0) table.add({"data", human_bytes(memory.data)});
  table.add({"together", human_bytes(memory.total())});
  return training_headline(dataset, plan) + "training it would take about\n" + table.text();
}

Json dry_run_json(const TrainArguments& arguments, const Dataset& dataset, const TrainPlan& plan,
                  const train::TrainingMemory& memory) {
  Json json = training_beginning(arguments, dataset, plan);
  json["dry_run"] = true;
  json["predicted_memory_bytes"] = {{"parameters", memory.parameters},
                                    {"activations", memory.activations},
                                    {"graph", memory.graph},
                                    {"features", memory.features},
                                    {"rest", memory.rest},
                                    {"data", memory.data},
                                    {"total", memory.total()}};
  return json;
}

}  // namespace tessera::app
