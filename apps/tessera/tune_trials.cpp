// SPDX-License-Identifier: Apache-2.0
#include "tune_trials.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "option_errors.hpp"
#include "tessera/core/error.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/trainer.hpp"
#include "tune_space.hpp"

namespace tessera::app {
namespace {

/// At the best of so many first epochs of each run.
train::Evaluation mean_score(const train::TrainReport& report, std::int64_t epochs,
                             train::StopBy by) {
  train::Evaluation mean;
  const auto runs = static_cast<double>(report.runs.size());
  for (const train::RunReport& run : report.runs) {
    const train::Evaluation* best = nullptr;
    for (const train::EpochRecord& record : run.curve) {
      if (record.epoch > epochs || !record.evaluated) continue;
      if (best == nullptr || better(record.evaluation, *best, by, report.metric))
        best = &record.evaluation;
    }
    mean.validation += best->validation / runs;
    mean.validation_loss += best->validation_loss / runs;
  }
  return mean;
}

/// A share of the epochs, with an evaluation at its end.
std::int64_t epochs_of(const train::TrainOptions& options, std::int64_t divisor) {
  const std::int64_t share = (options.epochs + divisor - 1) / divisor;
  const std::int64_t every = options.evaluate_every;
  return std::min(options.epochs, (share + every - 1) / every * every);
}

/// Says how far all trials together are.
class TuningProgress {
 public:
  TuningProgress(Session& session, const std::vector<HalvingStage>& stages,
                 const std::vector<Trial>& trials)
      : session_(session), trials_(std::ssize(trials)) {
    const train::TrainOptions& options = trials.front().plan.options;
    std::int64_t until = 0;
    for (const HalvingStage& stage : stages) {
      const std::int64_t before = std::exchange(until, epochs_of(options, stage.divisor));
      all_ += stage.trials * (until - before) * options.runs;
    }
  }

  void begin(Trial& trial, std::int64_t divisor) {
    before_ += last_;
    last_ = part(trial, divisor);
    trial.plan.options.on_epoch = [this, number = trial.number, runs = trial.plan.options.runs,
                                   count =
                                       std::int64_t{0}](const train::EpochRecord& record) mutable {
      const std::string run = runs > 1 ? fmt::format("run {}/{}  ", record.run + 1, runs) : "";
      session_.progress()(
          fmt::format("trial {}/{}  {}epoch {}", number, trials_, run, record.epoch),
          std::min(before_ + std::min(++count, last_), all_), all_);
    };
  }

 private:
  /// Epochs of a trial between two stages.
  static std::int64_t part(const Trial& trial, std::int64_t divisor) {
    const std::int64_t until = epochs_of(trial.plan.options, divisor);
    return std::max<std::int64_t>(until - trial.epochs, 0) * trial.plan.options.runs;
  }

  Session& session_;
  std::int64_t trials_;
  std::int64_t all_ = 0, before_ = 0, last_ = 0;
};

/// What a checkpoint of another search says is about this one's folder.
Error about_state(const Error& error, const std::string& path) {
  if (error.where() != path || error.code() != ErrorCode::invalid_argument) return error;
  return Error(error.code(), problem_of(error), path,
               "resume with the same data, options and seed, or name another folder with --state");
}

void train_until(const Dataset& dataset, Trial& trial, std::int64_t epochs) {
  trial.plan.options.pause_at = epochs;
  try {
    trial.report = train::fit(dataset, trial.plan.config, trial.plan.options);
    trial.score = mean_score(trial.report, epochs, trial.plan.options.stop_by);
  } catch (const train::Diverged&) {
    trial.diverged = true;
  } catch (const Error& error) {
    throw about_state(error, trial.path);
  }
  trial.epochs = epochs;
}

bool is_better(const Trial& a, const Trial& b) {
  if (a.diverged != b.diverged) return b.diverged;
  if (a.diverged) return false;
  return better(a.score, b.score, a.plan.options.stop_by, a.report.metric);
}

}  // namespace

std::vector<Trial> planned_trials(const Arguments& app, const TuneArguments& arguments,
                                  const Dataset& dataset, std::uint64_t seed) {
  const TrialPlanner planner(app, arguments.train, dataset, seed);
  const std::vector<SearchedOption> search = parse_search(arguments.searched());
  require_searchable(app, search);
  planner.plan({});
  require_sense(search, planner);
  std::vector<Trial> trials;
  for (TrialSettings& settings : drawn_settings(search, arguments.trials, seed)) {
    FittingSettings fitting = planner.fitting(std::move(settings));
    Trial& trial = trials.emplace_back();
    trial.number = std::ssize(trials);
    trial.settings = std::move(fitting.settings);
    trial.plan = std::move(fitting.plan);
    trial.path = fmt::format("{}/trial-{}.tsr", arguments.state, trial.number);
    trial.plan.options.checkpoint.path = trial.path;
  }
  return trials;
}

std::vector<std::string> notes_on_unused(const std::vector<SearchedOption>& search,
                                         const std::vector<Trial>& trials) {
  std::vector<std::string> notes;
  for (const SearchedOption& option : search) {
    const auto has = [&](const Trial& trial) {
      return std::any_of(trial.settings.begin(), trial.settings.end(),
                         [&](const auto& setting) { return setting.first == option.name; });
    };
    if (std::any_of(trials.begin(), trials.end(), has)) continue;
    notes.push_back(
        fmt::format("no trial has {} of --search, which does not go with the other "
                    "settings that were drawn; more --trials may draw others",
                    option.name));
  }
  return notes;
}

void train_trials(Session& session, const Dataset& dataset, std::vector<Trial>& trials) {
  const std::vector<HalvingStage> stages = halving_stages(std::ssize(trials));
  TuningProgress progress(session, stages, trials);
  for (const HalvingStage& stage : stages) {
    const auto end = trials.begin() + stage.trials;
    std::for_each(trials.begin(), end, [&](Trial& trial) {
      progress.begin(trial, stage.divisor);
      if (!trial.diverged) {
        train_until(dataset, trial, epochs_of(trial.plan.options, stage.divisor));
      }
      ++trial.stages;
    });
    std::stable_sort(trials.begin(), end, is_better);
  }
}

}  // namespace tessera::app
