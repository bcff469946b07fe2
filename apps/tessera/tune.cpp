// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "labels_needed.hpp"
#include "options.hpp"
#include "start_device.hpp"
#include "tessera/core/error.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tune_report.hpp"
#include "tune_trials.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

/// A folder that is new or empty, or with `--resume` one that has trials.
void make_state(const TuneArguments& arguments) {
  const auto reject = [&](ErrorCode code, const std::string& problem, const char* fix) {
    throw Error(code, problem, arguments.state.empty() ? "--state" : arguments.state, fix);
  };
  if (arguments.state.empty()) {
    reject(ErrorCode::invalid_argument, "there is no folder for the trials",
           "name one with --state, such as --state trials");
  }
  std::error_code problem;
  fs::create_directory(arguments.state, problem);
  if (problem) {
    reject(ErrorCode::io, fmt::format("cannot make a folder: {}", problem.message()),
           "name a new folder with --state");
  }
  if (!arguments.resume && !fs::is_empty(arguments.state, problem)) {
    reject(ErrorCode::invalid_argument, "the folder is not empty",
           "go on with its trials with --resume, or name another one with --state");
  }
}

/// What a resumed training with the same options would not notice.
std::vector<train::Setting> lasting_settings(const std::string& path) {
  std::vector<train::Setting> settings = train::load_checkpoint(path).settings;
  std::erase_if(settings, [](const train::Setting& setting) {
    return setting.name == "training.epochs" || setting.name == "training.runs";
  });
  return settings;
}

/// Whether a file has the model of a trial in the folder, as an earlier search has left it.
bool is_of_a_trial(const std::string& path, const std::string& folder) {
  std::error_code problem;
  if (path.empty() || !train::holds_checkpoint(path)) return false;
  try {
    const std::vector<train::Setting> wanted = lasting_settings(path);
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
      const std::string trial = entry.path().string();
      if (train::holds_checkpoint(trial) && lasting_settings(trial) == wanted) return true;
    }
  } catch (const Error&) {  // A damaged file is not ours to replace.
  }
  return false;
}

void require_trials(const TuneArguments& arguments) {
  if (arguments.trials >= 2 && arguments.trials <= 10000) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} trials", arguments.trials), "--trials",
              "give 2 to 10000");
}

ExitCode run_tune(Session& session, const Arguments& app, TuneArguments arguments) {
  require_trials(arguments);
  require_sense(arguments.train);
  parse_search(arguments.searched());
  read_for_task(arguments.train);
  const auto started = started_meanwhile(parse_device(arguments.train.device));
  const LoadedData data = load(session, arguments.train.data);
  require_labels(arguments.train.data, arguments.train.task, data.dataset);
  std::vector<Trial> trials = planned_trials(app, arguments, data.dataset, session.seed());
  make_state(arguments);
  session.files_are_progress();
  session.on_interrupt([state = arguments.state] {
    return state + " keeps the trials so far; --resume goes on from there";
  });
  train_trials(session, data.dataset, trials);
  if (trials.front().diverged) {
    throw Error(ErrorCode::invalid_argument, "every trial diverged", "--search",
                "search lower learning rates");
  }
  session.results_are_complete();
  std::vector<std::string> notes = trials.front().report.notes;
  std::erase_if(notes, [](const std::string& note) { return note.starts_with("resumed "); });
  session.add_notes(notes);
  session.add_notes(notes_on_unused(parse_search(arguments.searched()), trials));
  if (!arguments.checkpoint.empty()) {
    train::save(train::load_checkpoint(trials.front().path), arguments.checkpoint);
  }
  const std::string command = train_command(app, trials.front());
  session.deliver(tune_text(arguments, data.dataset, trials, command),
                  tune_json(arguments, data.dataset, trials, command));
  return ExitCode::ok;
}

void add_tuning_options(Arguments& app, TuneArguments& arguments) {
  app.add_option("--search", arguments.search,
                 "what to try: options of the model and the training, each with a range "
                 "(lr=0.001..0.1) or choices (hidden=16|64|256), between commas (default: what "
                 "suits the model)")
      ->type_name("SPACE");
  app.add_option("--trials", arguments.trials,
                 "number of settings to try; the first is as the command line says")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--state", arguments.state, "folder for the state of all trials")
      ->type_name("FOLDER");
  app.add_flag("--resume", arguments.resume, "go on with the trials in the folder");
  app.add_option("-c,--checkpoint", arguments.checkpoint, "file for the best trained model")
      ->type_name("FILE");
  add_training_settings(app, arguments.train);
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<TuneArguments>();
  add_tuning_options(app, *arguments);
  return {[&app, arguments](Session& session) { return run_tune(session, app, *arguments); },
          [arguments] {
            std::vector<FileUse> files = files_of(arguments->train);
            const bool goes_on =
                arguments->resume && is_of_a_trial(arguments->checkpoint, arguments->state);
            files.push_back({"--checkpoint", arguments->checkpoint,
                             goes_on ? FileRole::state : FileRole::output});
            return files;
          }};
}

}  // namespace

const Verb tune_verb{"tune", "search for settings to train with", "[options] SOURCE --state FOLDER",
                     "tessera tune embedded:citation --state trials\n"
                     "tessera tune --data cora.npz --model gat --state trials --resume\n"
                     "tessera tune graph.npz --search 'lr=0.001..0.1,hidden=16|64' --state trials",
                     setup};

}  // namespace tessera::app
