// SPDX-License-Identifier: Apache-2.0
#include "tune_report.hpp"

#include <array>

#include <fmt/format.h>

#include "describe.hpp"
#include "metric_text.hpp"
#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/parallel.hpp"
#include "train_report.hpp"

namespace tessera::app {
namespace {

/// A word of a command line, between quotes where a shell would read more into it.
std::string shell_word(const std::string& text) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char letter : text)
    quoted += letter == '\'' ? std::string("'\\''") : std::string{letter};
  return quoted + "'";
}

/// What `train` does not have, and what is for this run alone.
bool is_of_tuning(const std::string& name) {
  static constexpr std::array names{"--search", "--trials", "--state", "--resume", "--checkpoint",
                                    "--json",   "--force",  "--quiet", "--color",  "--help"};
  for (const char* const one : names) {
    if (name == one) return true;
  }
  return false;
}

std::string validation_text(const Trial& trial) {
  if (trial.diverged) return "diverged";
  // The mean over epochs of earlier stages has no deviation in the report.
  return metric_text(trial.report.metric, trial.score.validation);
}

/// The value that a trial has of a searched option.
std::string value_in(const Trial& trial, const std::string& name) {
  if (trial.number == 1) return "as given";
  for (const auto& [searched, value] : trial.settings) {
    if (searched == name) return value;
  }
  return "-";
}

std::string trials_table(const std::vector<SearchedOption>& search,
                         const std::vector<Trial>& trials) {
  Table table("rrrr" + std::string(search.size(), 'r'));
  std::vector<std::string> header = {"trial", "epochs", "validation", "loss"};
  for (const SearchedOption& option : search) header.push_back(option.name);
  table.add(header);
  for (const Trial& trial : trials) {
    std::vector<std::string> row = {
        fmt::format("{}", trial.number), grouped(trial.epochs), validation_text(trial),
        trial.diverged ? "" : fmt::format("{:.4f}", trial.score.validation_loss)};
    for (const SearchedOption& option : search) row.push_back(value_in(trial, option.name));
    table.add(row);
  }
  return table.text();
}

Json trial_json(const Trial& trial) {
  Json settings = Json::object();
  for (const auto& [name, value] : trial.settings) settings[name] = value;
  const bool has_score = !trial.diverged;
  return {{"trial", trial.number},
          {"settings", settings},
          {"epochs", trial.epochs},
          {"diverged", trial.diverged},
          {"validation", has_score ? Json(trial.score.validation) : Json()},
          {"validation_loss", has_score ? Json(trial.score.validation_loss) : Json()}};
}

}  // namespace

std::string train_command(const Arguments& app, const Trial& trial) {
  std::string command = "tessera train";
  for (const auto& option : app.options()) {
    const std::vector<std::string> names = option->names();
    if (!option->is_given() || names.empty() || is_of_tuning(names.back())) continue;
    for (const std::string& value : option->values()) {
      command += " " + names.back();
      if (!option->placeholder().empty()) command += " " + shell_word(value);
    }
  }
  for (const auto& [name, value] : trial.settings) {
    const bool is_flag = app.find("--" + name)->placeholder().empty();
    command += fmt::format(" --{}{}{}", name, is_flag ? '=' : ' ', shell_word(value));
  }
  return command;
}

std::string tune_text(const TuneArguments& arguments, const Dataset& dataset,
                      const std::vector<Trial>& trials, const std::string& command) {
  const Trial& best = trials.front();
  const train::TrainReport& report = best.report;
  const std::size_t runs = report.runs.size();
  const std::string metric = train::to_string(report.metric);
  Table table("ll");
  table.add({"best", fmt::format("trial {} of {}: {}", best.number, trials.size(), report.model)});
  table.add({"validation " + metric, human_metric(report.validation, runs, report.metric)});
  if (report.tested) table.add({"test " + metric, human_metric(report.test, runs, report.metric)});
  table.add({"train with", command});
  table.add({"trials", arguments.state});
  if (!arguments.checkpoint.empty()) table.add({"checkpoint", arguments.checkpoint});
  return headline(dataset) + "\n" + table.text() + "\n" +
         trials_table(parse_search(arguments.searched()), trials);
}

Json tune_json(const TuneArguments& arguments, const Dataset& dataset,
               const std::vector<Trial>& trials, const std::string& command) {
  const Trial& best = trials.front();
  const train::TrainReport& report = best.report;
  const auto deviation = [&](const train::Summary& summary) {
    return report.runs.size() > 1 ? Json(summary.deviation) : Json();
  };
  Json json{{"verb", "tune"}, {"source", arguments.train.data.source}};
  json.update(brief_json(dataset));
  json["device"] = to_string(best.plan.options.placement.device());
  json["threads"] = num_threads();
  json["search"] = arguments.searched();
  json["state"] = arguments.state;
  json["metric"] = train::to_string(report.metric);
  json["best"] = {{"trial", best.number},
                  {"layers", report.model},
                  {"command", command},
                  {"runs", report.runs.size()},
                  {"validation", report.validation.mean},
                  {"validation_std", deviation(report.validation)},
                  {"test", report.tested ? Json(report.test.mean) : Json()},
                  {"test_std", report.tested ? deviation(report.test) : Json()}};
  json["trials"] = Json::array();
  for (const Trial& trial : trials) json["trials"].push_back(trial_json(trial));
  if (!arguments.checkpoint.empty()) json["checkpoint"] = arguments.checkpoint;
  return json;
}

}  // namespace tessera::app
