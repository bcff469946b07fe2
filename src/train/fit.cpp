// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/fit.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/start.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/plan_store.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/link_trainer.hpp"
#include "tessera/train/trainer.hpp"

#include "io/file.hpp"
#include "train/data_fingerprint.hpp"
#include "train/memory_check.hpp"
#include "train/number_targets.hpp"
#include "train/run_position.hpp"
#include "train/same_task.hpp"
#include "train/settings.hpp"

namespace tessera::train {
namespace {

std::vector<Setting> all_settings(const Problem& problem, const nn::ModelConfig& config,
                                  const TrainOptions& options) {
  std::vector<Setting> settings = settings_of(config);
  TrainOptions known = options;
  if (problem.number_task()) known.task = Task::numbers;
  const std::vector<Setting> training = settings_of(known);
  settings.insert(settings.end(), training.begin(), training.end());
  const auto add = [&](const char* name, std::int64_t value) {
    settings.push_back({name, fmt::format("{}", value)});
  };
  add("data.vertices", problem.graph.num_rows());
  add("data.edges", problem.graph.num_edges());
  add("data.features", problem.num_features());
  add("data.outputs", problem.outputs);
  add("data.training_items", std::ssize(problem.split.train));
  settings.insert(settings.end(), problem.fingerprint.begin(), problem.fingerprint.end());
  return settings;
}

/// What may grow between a run and its continuation: how long it goes on.
bool may_grow(const std::string& name, const SettingsReader& then) {
  // The rate of a cosine depends on how many epochs there are.
  const bool is_cosine = then.text("training.schedule") == to_string(Schedule::cosine);
  return (name == "training.epochs" && !is_cosine) || name == "training.runs";
}

/// What is learned is kept in fp32, so that a training can go on in another precision. Which splits
/// are used, the data's fingerprint says.
bool may_change(const std::string& name) {
  return name == "training.precision" || name == "training.split_index";
}

void require_same(const SettingsReader& then, const std::vector<Setting>& now,
                  const std::string& path) {
  constexpr std::string_view prefix = fingerprint_prefix;
  for (const Setting& wanted : now) {
    const std::string& had = then.text(wanted.name);
    if (had == wanted.value || may_change(wanted.name)) continue;
    if (wanted.name.starts_with(prefix)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the checkpoint was made with other data: its {} are not these ({} "
                              "then, {} now)",
                              wanted.name.substr(prefix.size()), had, wanted.value),
                  path,
                  "resume with the data it was made with, or name another file for --checkpoint");
    }
    if (!may_grow(wanted.name, then)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("the checkpoint was made with {} = {}, not {}", wanted.name, had,
                      wanted.value),
          path, "resume with the options it was made with, or name another file for --checkpoint");
    }
    if (then.integer(wanted.name) > SettingsReader(now, path).integer(wanted.name)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the checkpoint was made for {} {}, not {}", had,
                              wanted.name.substr(wanted.name.find('.') + 1), wanted.value),
                  path, "raise --epochs and --runs, or start anew with another --checkpoint");
    }
  }
}

/// What keeps a model with bits from being computed in integers; empty: nothing.
std::string why_not_in_integers(const nn::ModelConfig& config, const Graph& graph) {
  if (config.residual) return "residuals";
  if (config.activation != ops::Activation::relu && config.activation != ops::Activation::none) {
    return fmt::format("activations of {}", ops::to_string(config.activation));
  }
  const bool weighs = config.kind == nn::ModelKind::gcn && graph.has_values();
  return weighs ? "edges with weights" : "";
}

/// Times of single steps and epochs, in seconds. Every epoch has a step, be it that of an epoch
/// before it (`EpochNumbers::step_seconds`): else the first, which plans, would be half of a short
/// training.
struct Samples {
  std::vector<double> steps;
  std::vector<double> epochs;
  PhaseTimes times;
  FirstStep first_step;
};

/// All runs of one call of `fit`.
class Fit {
 public:
  /// For a model that somebody else makes.
  Fit(const Problem& problem, const ModelMaker& maker, const TrainOptions& options)
      : problem_(problem), maker_(maker), options_(options) {}

  Fit(const Problem& problem, const nn::ModelConfig& config, const TrainOptions& options)
      : problem_(problem), config_(config), options_(options) {
    checkpoint_.model = config;
    checkpoint_.settings = all_settings(problem, config, options);
    checkpoint_.features = problem.num_features();
    checkpoint_.outputs = problem.outputs;
    checkpoint_.graph_task = problem.graph_task;
    checkpoint_.multi_label = problem.multi_label();
    if (problem.link_task()) {
      checkpoint_.decoder = options.links.decoder;
      checkpoint_.variational = options.links.variational;
      checkpoint_.kinds = options.links.kinds;
    }
    checkpoint_.normalisation = problem.normalisation;
    checkpoint_.class_values = problem.class_values;
    checkpoint_.class_names = problem.class_names;
    checkpoint_.input = problem.input;
    checkpoint_.edge_input = problem.edge_input;
    checkpoint_.edge_normalisation = problem.edge_normalisation;
    if (checkpoints()) checkpoint_.input.graph = form_of(problem.graph);
    checkpoint_.metric = problem.metric;
    // Other batches have plans of their own every time, which nobody will need again.
    const bool will_judge = problem.link_task() && !options.parallel_runs;
    keeps_plans_ = (checkpoints() || will_judge) && options_.batching == Batching::full;
    if (keeps_plans_ && options_.plans.store == nullptr) {
      options_.plans.store = std::make_shared<ops::PlanStore>();
    }
  }

  TrainReport run() {
    report_.metric = problem_.metric;
    report_.tested = !problem_.split.test.empty();
    report_.notes = problem_.notes;
    if (options_.placement.precision == Precision::tf32 &&
        options_.placement.device().kind == DeviceKind::cpu) {
      report_.notes.emplace_back("a CPU computes tf32 as fp32");
    }
    if (const std::string why = why_not_in_integers(config_, problem_.graph);
        !config_.bits.empty() && !why.empty()) {
      report_.notes.push_back(
          fmt::format("{} have no form in integers: predict with --rounded", why));
    }
    resume();
    report_.runs.resize(static_cast<std::size_t>(options_.runs));
    const auto one = [&](std::int64_t run) { train_run(run); };
    if (options_.parallel_runs) {
      parallel_tasks(options_.runs, one);
    } else {
      for (std::int64_t run = 0; run < options_.runs; ++run) one(run);
    }
    finish();
    return std::move(report_);
  }

 private:
  /// What maps features to the outputs.
  std::unique_ptr<nn::Layer> new_encoder(std::uint64_t seed) const {
    if (maker_) return maker_(problem_.shape(), options_.placement);
    return std::make_unique<nn::Model>(config_, problem_.num_features(), problem_.outputs, seed,
                                       options_.placement);
  }

  std::unique_ptr<nn::Layer> new_model(std::uint64_t seed) const {
    if (problem_.link_task()) return link_model(new_encoder(seed), options_.links);
    return new_encoder(seed);
  }

  std::unique_ptr<EpochTrainer> new_trainer(std::int64_t run,
                                            std::unique_ptr<nn::Layer> encoder) const {
    const std::uint64_t seed = seed_of(run);
    if (problem_.link_task()) {
      return std::make_unique<LinkTrainer>(problem_, std::move(encoder), options_, seed);
    }
    return std::make_unique<Trainer>(problem_, split_of(run), std::move(encoder), options_, seed);
  }

  bool writes() const { return !options_.checkpoint.path.empty(); }
  bool checkpoints() const { return writes() || options_.checkpoint.kept != nullptr; }
  /// Of links the report says more of the best weights, which are kept for it.
  bool keeps_best() const { return checkpoints() || problem_.link_task(); }
  std::uint64_t seed_of(std::int64_t run) const {
    return options_.seed + static_cast<std::uint64_t>(run);
  }

  void resume() {
    const std::string& path = options_.checkpoint.path;
    if (!writes() || !options_.checkpoint.resume) return;
    std::error_code problem;  // Where it cannot be looked at, opening it says why.
    if (!std::filesystem::exists(path, problem) && !problem) return;
    Checkpoint loaded = load_checkpoint(path);
    require_same_task(loaded, problem_, path);
    require_same({loaded.settings, path}, checkpoint_.settings, path);
    if (quantised_after_training(loaded)) {
      throw Error(ErrorCode::invalid_argument, "the model was quantised after its training", path,
                  "name another file for --checkpoint to train one for these bits");
    }
    require_same_problem(loaded);
    if (keeps_plans_ && !loaded.plans.empty()) {
      options_.plans.store->remember_all(ops::PlanStore::parse(loaded.plans, path));
    }
    checkpoint_.runs = std::move(loaded.runs);
    checkpoint_.weights = std::move(loaded.weights);
    checkpoint_.split = std::move(loaded.split);
    checkpoint_.ranges = std::move(loaded.ranges);
    checkpoint_.numbers = std::move(loaded.numbers);
    best_ = best_epoch(checkpoint_);
    if (loaded.lost && !options_.checkpoint.full_test) {
      options_.checkpoint.full_test = *loaded.lost + best_.evaluation.test;
    }
    const std::size_t begun = checkpoint_.runs.size();
    report_.notes.push_back(begun == 0 ? "resumed from the beginning"
                                       : fmt::format("resumed after {} epochs of run {}",
                                                     checkpoint_.runs.back().curve.size(), begun));
  }

  /// What the settings do not say. A file that agrees with them and not with these contradicts
  /// itself.
  void require_same_problem(const Checkpoint& loaded) const {
    // Files of version 0.1.0 have no names.
    const bool same_names = loaded.input.feature_names.empty() || loaded.input == checkpoint_.input;
    if (!same_names || loaded.edge_input != checkpoint_.edge_input) {
      throw Error(ErrorCode::invalid_argument,
                  "the checkpoint was made with other data: its features have other names",
                  options_.checkpoint.path,
                  "resume with the data it was made with, or name another file for --checkpoint");
    }
    const bool same =
        loaded.model == config_ && loaded.features == checkpoint_.features &&
        loaded.outputs == checkpoint_.outputs && loaded.graph_task == checkpoint_.graph_task &&
        loaded.multi_label == checkpoint_.multi_label && loaded.decoder == checkpoint_.decoder &&
        loaded.normalisation == checkpoint_.normalisation &&
        loaded.edge_normalisation == checkpoint_.edge_normalisation &&
        loaded.class_values == checkpoint_.class_values &&
        loaded.class_names == checkpoint_.class_names && loaded.metric == checkpoint_.metric &&
        (!loaded.numbers || loaded.numbers->names == problem_.numbers.names);
    if (!same) {
      io::damaged(options_.checkpoint.path, "the checkpoint contradicts its own settings");
    }
    if (loaded.weights.empty()) return;
    require_same_tensors(loaded.weights, new_model(options_.seed)->state(),
                         options_.checkpoint.path);
  }

  Split split_of(std::int64_t run) const {
    if (!problem_.splits.empty()) return problem_.splits[split_number(run)];
    if (options_.folds == 0) return problem_.split;
    return fold_split(problem_.labels, options_.folds, run % options_.folds, options_.seed);
  }

  std::size_t split_number(std::int64_t run) const {
    return static_cast<std::size_t>(run) % problem_.splits.size();
  }

  /// The state that a checkpoint has of a run, or null.
  const RunState* begun(std::int64_t run) const {
    const auto place = static_cast<std::size_t>(run);
    return place < checkpoint_.runs.size() ? &checkpoint_.runs[place] : nullptr;
  }

  bool is_over(const RunPosition& position) const {
    return position.epoch >= last_epoch() || out_of_patience(position);
  }

  /// Of those that this call trains.
  std::int64_t last_epoch() const {
    const std::int64_t pause = options_.pause_at;
    return pause > 0 ? std::min(pause, options_.epochs) : options_.epochs;
  }

  RunPosition start_of_run() const {
    const bool has_plateaus = options_.schedule == Schedule::plateau;
    return RunPosition(options_.stop_by, has_plateaus ? options_.rate_decay_every : 0,
                       problem_.metric);
  }

  void train_run(std::int64_t run) {
    const RunState* const state = begun(run);
    RunPosition position = start_of_run();
    std::vector<EpochRecord> curve;
    if (state != nullptr) {
      curve = state->curve;
      position = position_after(curve, position);
      if (is_over(position)) return report_run(run, position, std::move(curve));
    }
    Stopwatch watch;
    start(options_.placement.device());
    const double starting = watch.seconds();
    watch.restart();
    std::unique_ptr<nn::Layer> encoder = new_encoder(seed_of(run));
    const double building = watch.seconds();
    const std::unique_ptr<EpochTrainer> made = new_trainer(run, std::move(encoder));
    EpochTrainer& trainer = *made;
    if (state != nullptr) {
      restore(state->model, trainer.model().state(), options_.checkpoint.path);
      trainer.model().round_parameters(options_.placement.stream);
      restore(state->moments, trainer.optimiser().state(), options_.checkpoint.path);
      trainer.optimiser().set_steps(state->step);
      trainer.set_position(position.epoch, state->step);
    }
    Samples samples;
    std::int64_t started = position.epoch;
    while (!is_over(position)) {
      trainer.set_plateaus(position.plateaus);
      for (const std::int64_t last = last_to_start(trainer, position); started < last; ++started) {
        trainer.start_epoch(evaluates(started + 1));
      }
      curve.push_back(finish_epoch(trainer, run, position, samples));
      if (writes() && !is_over(position) && position.epoch % options_.checkpoint.every == 0) {
        write_checkpoint(trainer, run, curve, samples);
      }
      tell(curve.back(), trainer, run, curve, samples);
    }
    write_checkpoint(trainer, run, curve, samples);
    samples.times += trainer.times();
    samples.first_step = trainer.first_step();
    samples.first_step.start = starting;
    samples.first_step.build += building;
    finish_run(trainer, samples);
    report_run(run, position, std::move(curve));
  }

  bool out_of_patience(const RunPosition& position) const {
    return options_.patience > 0 && position.waited >= options_.patience;
  }

  bool evaluates(std::int64_t epoch) const { return epoch % options_.evaluate_every == 0; }

  /// The device goes on with one epoch while the numbers of the last come back. If these say that
  /// training is over, what it did since is of no use to anybody: but where the state of the model
  /// is kept, it must be that of the epoch that the numbers are of, and where they tell the rate of
  /// the next epoch, that one waits for them.
  std::int64_t last_to_start(const EpochTrainer& trainer, const RunPosition& position) const {
    const bool waits = keeps_best() || options_.schedule == Schedule::plateau;
    const std::int64_t ahead = trainer.runs_ahead() && !waits ? 1 : 0;
    return std::min(position.epoch + 1 + ahead, last_epoch());
  }

  EpochRecord finish_epoch(EpochTrainer& trainer, std::int64_t run, RunPosition& position,
                           Samples& samples) {
    const EpochNumbers numbers = trainer.finish_epoch();
    samples.steps.push_back(numbers.step_seconds);
    EpochRecord record{run, position.epoch + 1, numbers.loss, {}, false};
    if (numbers.evaluation) {
      record.evaluation = *numbers.evaluation;
      record.evaluated = true;
      samples.epochs.push_back(numbers.seconds);
    }
    if (position.advance(record)) keep_if_best(trainer, {run, position.epoch, record.evaluation});
    return record;
  }

  /// The weights are kept only where they will be seen. Runs that are prolonged one after the
  /// other, or trained side by side, must agree with those trained at one go, so the first run wins
  /// among equals.
  void keep_if_best(EpochTrainer& trainer, const BestEpoch& epoch) {
    if (!keeps_best()) return;
    const std::scoped_lock lock(mutex_);
    const auto beats = [this](const BestEpoch& a, const BestEpoch& b) {
      return better(a.evaluation, b.evaluation, options_.stop_by, problem_.metric);
    };
    const bool is_first = epoch.run < best_.run && !beats(best_, epoch);
    if (best_.run >= 0 && !is_first && !beats(epoch, best_)) return;
    best_ = epoch;
    keep_weights(trainer, epoch.run);
    // The last pass was the evaluation.
    checkpoint_.ranges = store_ranges(trainer.model().rounders(), problem_.feature_reach);
  }

  void keep_weights(EpochTrainer& trainer, std::int64_t run) {
    trainer.optimiser().put_means_in(options_.placement.stream);
    checkpoint_.weights = store(trainer.model().state());
    trainer.optimiser().take_means_out(options_.placement.stream);
    checkpoint_.split = split_of(run);
    if (!problem_.number_task()) return;
    checkpoint_.numbers = number_outputs(problem_, checkpoint_.split, options_.numbers);
  }

  void write_checkpoint(EpochTrainer& trainer, std::int64_t run,
                        const std::vector<EpochRecord>& curve, Samples& samples) {
    if (!checkpoints()) return;
    const Stopwatch watch;
    const auto place = static_cast<std::size_t>(run);
    if (place == checkpoint_.runs.size()) checkpoint_.runs.emplace_back();
    checkpoint_.runs[place] = {trainer.step(), curve, store(trainer.model().state()),
                               store(trainer.optimiser().state())};
    // Before the first evaluation no epoch is better than the last.
    if (best_.run < 0) keep_weights(trainer, run);
    const std::optional<double>& full_test = options_.checkpoint.full_test;
    if (full_test && best_.run >= 0) checkpoint_.lost = *full_test - best_.evaluation.test;
    if (keeps_plans_) checkpoint_.plans = options_.plans.store->to_text();
    if (writes()) save(checkpoint_, options_.checkpoint.path);
    samples.times[Phase::checkpoint] += watch.seconds();
  }

  void tell(const EpochRecord& record, EpochTrainer& trainer, std::int64_t run,
            const std::vector<EpochRecord>& curve, Samples& samples) {
    if (!options_.on_epoch) return;
    try {
      const std::scoped_lock lock(mutex_);
      options_.on_epoch(record);
    } catch (...) {
      write_checkpoint(trainer, run, curve, samples);
      throw;
    }
  }

  void finish_run(EpochTrainer& trainer, const Samples& samples) {
    const std::scoped_lock lock(mutex_);
    report_.model = trainer.model().describe();
    report_.parameters = trainer.model().num_parameters();
    report_.times += samples.times;
    if (all_steps_.empty()) report_.first_step = samples.first_step;
    note_once(trainer.recording_note());
    all_steps_.insert(all_steps_.end(), samples.steps.begin(), samples.steps.end());
    all_epochs_.insert(all_epochs_.end(), samples.epochs.begin(), samples.epochs.end());
  }

  void report_run(std::int64_t number, const RunPosition& position,
                  std::vector<EpochRecord> curve) {
    RunReport& run = report_.runs[static_cast<std::size_t>(number)];
    run.seed = seed_of(number);
    run.epochs = position.epoch;
    run.best_epoch = position.best_epoch;
    run.best = position.best;
    run.stopped_early = out_of_patience(position);
    if (!problem_.splits.empty()) run.split = static_cast<std::int64_t>(split_number(number));
    if (options_.split_index) run.split = options_.split_index;
    if (options_.folds > 0) run.fold = number % options_.folds;
    run.curve = std::move(curve);
  }

  void note_once(const std::string& note) {
    std::vector<std::string>& notes = report_.notes;
    if (note.empty() || std::find(notes.begin(), notes.end(), note) != notes.end()) return;
    notes.push_back(note);
  }

  void finish() {
    report_.test = summarise_test(report_.runs);
    report_.lost = checkpoint_.lost;
    report_.validation = summarise_validation(report_.runs);
    if (problem_.link_task()) judge_links();
    report_.epochs = std::ssize(all_steps_);
    report_.step_ms = summarise(std::move(all_steps_)).median_us * 1e3;
    report_.epoch_ms = summarise(std::move(all_epochs_)).median_us * 1e3;
    report_.peak_memory_bytes = memory_use(options_.placement.device()).peak_bytes;
    if (report_.model.empty()) describe_finished();
    if (options_.checkpoint.kept != nullptr) *options_.checkpoint.kept = std::move(checkpoint_);
  }

  /// The best weights of all runs, on the test pairs.
  void judge_links() {
    report_.test_other = summarise_test_other(report_.runs);
    if (best_.run < 0 || !report_.tested) return;
    LinkTrainer judge(problem_, new_encoder(options_.seed), options_, options_.seed);
    restore(checkpoint_.weights, judge.model().state(), options_.checkpoint.path);
    judge.model().round_parameters(options_.placement.stream);
    report_.links = judge.quality();
    report_.links->run = best_.run;
  }

  /// Nothing was left to train: the report still says of what model it is.
  void describe_finished() {
    const std::unique_ptr<nn::Layer> model = new_model(options_.seed);
    report_.model = model->describe();
    report_.parameters = model->num_parameters();
  }

  const Problem& problem_;
  nn::ModelConfig config_;
  ModelMaker maker_;  ///< empty: the model is that of the configuration
  TrainOptions options_;
  TrainReport report_;
  Checkpoint checkpoint_;
  BestEpoch best_;
  bool keeps_plans_ = false;
  std::mutex mutex_;
  std::vector<double> all_steps_;
  std::vector<double> all_epochs_;
};

void require_possible(const TrainOptions& options) {
  validate(options);
  require_available(options.placement.device());
  if (options.evaluate_every > options.epochs) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("evaluate_every is {}, but there are {} epochs", options.evaluate_every,
                            options.epochs),
                "training", "evaluate at least one of them");
  }
}

}  // namespace

TrainReport fit(const Dataset& dataset, const nn::ModelConfig& config,
                const TrainOptions& options) {
  return fit(prepare(dataset, config, options), config, options);
}

TrainReport fit(const Problem& problem, const nn::ModelConfig& given, const TrainOptions& options) {
  require_possible(options);
  const nn::ModelConfig config = fitted(given, problem);
  nn::validate(config);
  require_memory(config, problem.shape(), options);
  try {
    return Fit(problem, config, options).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    throw explained(error, config, problem.shape(), options);
  }
}

TrainReport fit(const Dataset& dataset, const ModelMaker& maker, const TrainOptions& options) {
  return fit(prepare(dataset, options), maker, options);
}

TrainReport fit(const Problem& problem, const ModelMaker& maker, const TrainOptions& options) {
  require_possible(options);
  if (!options.checkpoint.path.empty()) {
    throw Error(ErrorCode::unsupported, "a checkpoint of a model of one's own",
                options.checkpoint.path,
                "leave it out, and take the best weights from CheckpointOptions::kept");
  }
  return Fit(problem, maker, options).run();
}

}  // namespace tessera::train
