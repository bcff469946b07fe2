// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/fit.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/trainer.hpp"

#include "train/settings.hpp"

namespace tessera::train {
namespace {

std::vector<Setting> all_settings(const Problem& problem, const nn::ModelConfig& config,
                                  const TrainOptions& options) {
  std::vector<Setting> settings = settings_of(config);
  const std::vector<Setting> training = settings_of(options);
  settings.insert(settings.end(), training.begin(), training.end());
  const auto add = [&](const char* name, std::int64_t value) {
    settings.push_back({name, fmt::format("{}", value)});
  };
  add("data.vertices", problem.graph.num_rows());
  add("data.edges", problem.graph.num_edges());
  add("data.features", problem.num_features());
  add("data.outputs", problem.outputs);
  add("data.training_items", std::ssize(problem.split.train));
  return settings;
}

/// What may differ between a run and its continuation: how long it goes on.
bool may_differ(const std::string& name) {
  return name == "training.epochs" || name == "training.runs";
}

void require_same(const std::vector<Setting>& then, const std::vector<Setting>& now,
                  const std::string& path) {
  for (const Setting& wanted : now) {
    const std::string& had = setting(then, wanted.name, path);
    if (had != wanted.value && !may_differ(wanted.name)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the checkpoint was made with {} = {}, not {}", wanted.name, had,
                              wanted.value),
                  path, "resume with the options and the data it was made with");
    }
  }
}

/// Times of single steps and epochs, in seconds.
struct Samples {
  std::vector<double> steps;
  std::vector<double> epochs;
  PhaseTimes times;
};

/// All runs of one call of `fit`.
class Fit {
 public:
  Fit(const Problem& problem, const nn::ModelConfig& config, const TrainOptions& options)
      : problem_(problem), config_(config), options_(options) {
    checkpoint_.model = config;
    checkpoint_.settings = all_settings(problem, config, options);
    checkpoint_.features = problem.num_features();
    checkpoint_.outputs = problem.outputs;
    checkpoint_.graph_task = problem.graph_task;
    checkpoint_.multi_label = problem.multi_label();
    checkpoint_.row_normalised = problem.row_normalised;
    checkpoint_.class_values = problem.class_values;
    checkpoint_.metric = problem.metric;
  }

  TrainReport run() {
    report_.metric = problem_.metric;
    report_.notes = problem_.notes;
    resume();
    const std::int64_t first = std::ssize(report_.runs);
    report_.runs.resize(static_cast<std::size_t>(std::max(first, options_.runs)));
    const auto one = [&](std::int64_t i) { train_run(first + i); };
    const std::int64_t left = std::max<std::int64_t>(options_.runs - first, 0);
    if (options_.parallel_runs) {
      parallel_tasks(left, one);
    } else {
      for (std::int64_t i = 0; i < left; ++i) one(i);
    }
    finish();
    return std::move(report_);
  }

 private:
  bool checkpoints() const { return !options_.checkpoint.path.empty(); }
  std::uint64_t seed_of(std::int64_t run) const {
    return options_.seed + static_cast<std::uint64_t>(run);
  }

  void resume() {
    const std::string& path = options_.checkpoint.path;
    if (!checkpoints() || !options_.checkpoint.resume || !std::filesystem::exists(path)) return;
    Checkpoint loaded = load_checkpoint(path);
    require_same(loaded.settings, checkpoint_.settings, path);
    loaded.settings = checkpoint_.settings;
    checkpoint_ = std::move(loaded);
    report_.runs = checkpoint_.finished;
    resumed_ = !checkpoint_.current.empty();
    report_.notes.push_back(fmt::format(
        "resumed after {} finished {} and {} epochs of the next", checkpoint_.finished.size(),
        checkpoint_.finished.size() == 1 ? "run" : "runs", checkpoint_.position.epoch));
  }

  Split split_of(std::int64_t run) const {
    if (options_.folds == 0) return problem_.split;
    return fold_split(problem_.labels, options_.folds, run % options_.folds, options_.seed);
  }

  void train_run(std::int64_t run) {
    Trainer trainer(problem_, split_of(run), config_, options_, seed_of(run));
    RunPosition position;
    position.run = run;
    position.lowest_loss = std::numeric_limits<double>::infinity();
    position.highest_metric = -1;
    std::vector<EpochRecord> curve;
    if (resumed_) {
      resumed_ = false;
      position = checkpoint_.position;
      curve = std::move(checkpoint_.curve);
      for (EpochRecord& record : curve) record.run = run;
      restore(checkpoint_.current, trainer.model().state(), options_.checkpoint.path);
      restore(checkpoint_.moments, trainer.optimiser().state(), options_.checkpoint.path);
      trainer.optimiser().set_steps(position.step);
      trainer.set_position(position.epoch, position.step);
    }
    Samples samples;
    while (position.epoch < options_.epochs && !out_of_patience(position)) {
      curve.push_back(train_epoch(trainer, position, samples));
      const bool last = position.epoch == options_.epochs || out_of_patience(position);
      if (!last && position.epoch % options_.checkpoint.every == 0) {
        write_checkpoint(trainer, position, curve, samples);
      }
      tell(curve.back(), trainer, position, curve, samples);
    }
    samples.times += trainer.times();
    finish_run(trainer, position, std::move(curve), samples);
  }

  bool out_of_patience(const RunPosition& position) const {
    return options_.patience > 0 && position.waited >= options_.patience;
  }

  EpochRecord train_epoch(Trainer& trainer, RunPosition& position, Samples& samples) {
    const Stopwatch watch;
    const std::int64_t first_step = trainer.step();
    const double loss = trainer.train_epoch();
    const std::int64_t steps = std::max<std::int64_t>(trainer.step() - first_step, 1);
    samples.steps.push_back(watch.seconds() / static_cast<double>(steps));
    const Evaluation evaluation = trainer.evaluate();
    samples.epochs.push_back(watch.seconds());
    position.epoch = trainer.epoch();
    position.step = trainer.step();
    if (position.best_epoch == 0 || better(evaluation, position.best)) {
      position.best_epoch = position.epoch;
      position.best = evaluation;
      keep_if_best(trainer, position);
    }
    const bool went_on = evaluation.validation >= position.highest_metric ||
                         evaluation.validation_loss <= position.lowest_loss;
    position.waited = went_on ? 0 : position.waited + 1;
    position.highest_metric = std::max(position.highest_metric, evaluation.validation);
    position.lowest_loss = std::min(position.lowest_loss, evaluation.validation_loss);
    return {position.run, position.epoch, loss, evaluation};
  }

  /// The weights are kept only where they will be written.
  void keep_if_best(Trainer& trainer, const RunPosition& position) {
    if (!checkpoints()) return;
    if (checkpoint_.best_run >= 0 && !better(position.best, checkpoint_.best)) return;
    checkpoint_.best_run = position.run;
    checkpoint_.best_epoch = position.best_epoch;
    checkpoint_.best = position.best;
    checkpoint_.weights = store(trainer.model().state());
  }

  void write_checkpoint(Trainer& trainer, const RunPosition& position,
                        const std::vector<EpochRecord>& curve, Samples& samples) {
    if (!checkpoints()) return;
    const Stopwatch watch;
    checkpoint_.position = position;
    checkpoint_.curve = curve;
    checkpoint_.current = store(trainer.model().state());
    checkpoint_.moments = store(trainer.optimiser().state());
    save(checkpoint_, options_.checkpoint.path);
    samples.times[Phase::checkpoint] += watch.seconds();
  }

  void tell(const EpochRecord& record, Trainer& trainer, const RunPosition& position,
            const std::vector<EpochRecord>& curve, Samples& samples) {
    if (!options_.on_epoch) return;
    try {
      const std::scoped_lock lock(mutex_);
      options_.on_epoch(record);
    } catch (...) {
      write_checkpoint(trainer, position, curve, samples);
      throw;
    }
  }

  void finish_run(Trainer& trainer, const RunPosition& position, std::vector<EpochRecord> curve,
                  const Samples& samples) {
    const std::scoped_lock lock(mutex_);
    RunReport& run = report_.runs[static_cast<std::size_t>(position.run)];
    run.seed = seed_of(position.run);
    run.epochs = position.epoch;
    run.best_epoch = position.best_epoch;
    run.best = position.best;
    run.stopped_early = out_of_patience(position);
    report_.model = trainer.model().describe();
    report_.parameters = trainer.model().num_parameters();
    report_.times += samples.times;
    note_once(trainer.recording_note());
    all_steps_.insert(all_steps_.end(), samples.steps.begin(), samples.steps.end());
    all_epochs_.insert(all_epochs_.end(), samples.epochs.begin(), samples.epochs.end());
    if (checkpoints()) {
      checkpoint_.finished.push_back(run);
      checkpoint_.position = {};
      checkpoint_.position.run = position.run + 1;
      checkpoint_.curve.clear();
      checkpoint_.current.clear();
      checkpoint_.moments.clear();
      save(checkpoint_, options_.checkpoint.path);
    }
    run.curve = std::move(curve);
  }

  void note_once(const std::string& note) {
    std::vector<std::string>& notes = report_.notes;
    if (note.empty() || std::find(notes.begin(), notes.end(), note) != notes.end()) return;
    notes.push_back(note);
  }

  void finish() {
    report_.test = summarise_test(report_.runs);
    report_.validation = summarise_validation(report_.runs);
    report_.epochs = std::ssize(all_epochs_);
    report_.step_ms = summarise(std::move(all_steps_)).median_us * 1e3;
    report_.epoch_ms = summarise(std::move(all_epochs_)).median_us * 1e3;
    report_.peak_memory_bytes = memory_use(options_.placement.device()).peak_bytes;
    if (report_.model.empty()) describe_finished();
  }

  /// Nothing was left to train: the report still says of what model it is.
  void describe_finished() {
    nn::Model model(config_, problem_.num_features(), problem_.outputs, options_.seed,
                    options_.placement);
    report_.model = model.describe();
    report_.parameters = model.num_parameters();
  }

  const Problem& problem_;
  const nn::ModelConfig& config_;
  const TrainOptions& options_;
  TrainReport report_;
  Checkpoint checkpoint_;
  bool resumed_ = false;
  std::mutex mutex_;
  std::vector<double> all_steps_;
  std::vector<double> all_epochs_;
};

}  // namespace

TrainReport fit(const Dataset& dataset, const nn::ModelConfig& config,
                const TrainOptions& options) {
  return fit(prepare(dataset, config, options), config, options);
}

TrainReport fit(const Problem& problem, const nn::ModelConfig& config,
                const TrainOptions& options) {
  validate(options);
  require_available(options.placement.device());
  return Fit(problem, config, options).run();
}

}  // namespace tessera::train
