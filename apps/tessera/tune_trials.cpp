// SPDX-License-Identifier: Apache-2.0
#include "tune_trials.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "suggest.hpp"
#include "tessera/core/error.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::app {
namespace {

/// Options whose values cannot differ from trial to trial.
bool is_fixed(const std::string& name) { return name == "epochs" || name == "partition"; }

void require_searchable(const Arguments& given, const Arguments& known, const std::string& name) {
  const auto reject = [&](const std::string& problem, const std::string& fix) {
    throw Error(ErrorCode::invalid_argument, problem, "--search", fix);
  };
  const Option* const option = known.find("--" + name);
  const bool is_setting =
      option != nullptr && (option->group() == model_group || option->group() == training_group);
  if (!is_setting || is_fixed(name)) {
    std::vector<std::string> names;
    for (const auto& one : known.options()) {
      if (one->group() == model_group || one->group() == training_group) {
        names.push_back(one->names().back().substr(2));
      }
    }
    const std::string near_name = suggestion(name, names);
    reject(fmt::format("'{}' is no setting that can be searched", name),
           near_name.empty() ? "use options of the model and of the training, as lr or hidden"
                             : near_name);
  }
  if (given.is_given("--" + name)) {
    reject(fmt::format("'{}' is given and searched for", name),
           fmt::format("leave out --{}, or its part of --search", name));
  }
}

/// The plan of a training with these settings, as if they stood on its command line.
TrainPlan plan_with(const Arguments& given, const TuneArguments& arguments,
                    const TrialSettings& settings, const std::string& path, const Dataset& dataset,
                    std::uint64_t seed) {
  TrainArguments train = arguments.train;
  Arguments app("", "train");
  add_training_settings(app, train);
  std::vector<std::string> words = {"train"};
  for (const auto& [name, value] : settings) {
    require_searchable(given, app, name);
    words.push_back(fmt::format("--{}={}", name, value));
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  app.parse(static_cast<int>(pointers.size()), pointers.data());
  train.checkpoint = path;
  train.resume = true;
  require_sense(train);
  TrainPlan plan = plan_training(train, dataset, seed);
  reject_useless_options(given, train, dataset, plan);
  reject_useless_options(app, train, dataset, plan);
  nn::validate(plan.config);
  train::validate(plan.options);
  return plan;
}

/// Settings that were left out of trials where they do nothing beside the others, as heads of a
/// model without attention, and what is wrong with each.
using LeftOut = std::map<std::string, Error>;

/// Plans a trial, with those of its settings that do something.
template <class Plan>
void plan_what_counts(Trial& trial, LeftOut& left_out, Plan&& plan) {
  while (true) {
    try {
      trial.plan = plan(trial.settings);
      return;
    } catch (const Error& error) {
      const auto useless =
          std::find_if(trial.settings.begin(), trial.settings.end(),
                       [&](const auto& setting) { return "--" + setting.first == error.where(); });
      if (useless == trial.settings.end()) throw;
      left_out.emplace(useless->first, error);
      trial.settings.erase(useless);
    }
  }
}

/// Searching for what no trial has is a mistake.
void require_some_use(const std::vector<Trial>& trials, const LeftOut& left_out) {
  for (const auto& [name, error] : left_out) {
    const auto has = [&, &searched = name](const Trial& trial) {
      return std::any_of(trial.settings.begin(), trial.settings.end(),
                         [&](const auto& setting) { return setting.first == searched; });
    };
    if (std::none_of(trials.begin(), trials.end(), has)) throw error;
  }
}

/// At the best of so many first epochs of each run.
train::Evaluation mean_score(const train::TrainReport& report, std::int64_t epochs,
                             train::StopBy by) {
  train::Evaluation mean;
  const auto runs = static_cast<double>(report.runs.size());
  for (const train::RunReport& run : report.runs) {
    const train::Evaluation* best = nullptr;
    for (const train::EpochRecord& record : run.curve) {
      if (record.epoch > epochs || !record.evaluated) continue;
      if (best == nullptr || better(record.evaluation, *best, by)) best = &record.evaluation;
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
  if (error.where() != path) return error;
  return Error(error.code(), error.what(), "--state",
               "resume with the same data and options, or name another folder");
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
  return better(a.score, b.score, a.plan.options.stop_by);
}

}  // namespace

std::vector<Trial> planned_trials(const Arguments& app, const TuneArguments& arguments,
                                  const Dataset& dataset, std::uint64_t seed) {
  std::vector<Trial> trials;
  LeftOut left_out;
  const std::vector<SearchedOption> search = parse_search(arguments.searched());
  for (TrialSettings& settings : drawn_settings(search, arguments.trials, seed)) {
    Trial& trial = trials.emplace_back();
    trial.number = std::ssize(trials);
    trial.settings = std::move(settings);
    trial.path = fmt::format("{}/trial-{}.tsr", arguments.state, trial.number);
    plan_what_counts(trial, left_out, [&](const TrialSettings& counting) {
      return plan_with(app, arguments, counting, trial.path, dataset, seed);
    });
  }
  require_some_use(trials, left_out);
  return trials;
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
