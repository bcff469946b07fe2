// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session.hpp"
#include "tessera/train/report.hpp"
#include "train_options.hpp"
#include "tune_search.hpp"

namespace tessera::app {

struct TuneArguments {
  TrainArguments train;
  std::string search;  ///< empty: what is usual for the model
  std::int64_t trials = 18;
  std::string state, checkpoint;
  bool resume = false;

  std::string searched() const { return search.empty() ? usual_search(train.model) : search; }
};

/// Some settings, and what training with them has come to.
struct Trial {
  std::int64_t number = 1;
  TrialSettings settings;
  TrainPlan plan;
  std::string path;         ///< of its checkpoint
  std::int64_t stages = 0;  ///< that it has been through
  std::int64_t epochs = 0;  ///< so far, of each run
  bool diverged = false;
  /// Means over the runs, at the epochs that were best on the validation part so far.
  train::Evaluation score;
  train::TrainReport report;
};

/// All trials, planned and checked before any is trained. `app` has what was given to `tune`.
std::vector<Trial> planned_trials(const Arguments& app, const TuneArguments& arguments,
                                  const Dataset& dataset, std::uint64_t seed);

/// What says that an option was searched for and is in no trial.
std::vector<std::string> notes_on_unused(const std::vector<SearchedOption>& search,
                                         const std::vector<Trial>& trials);

/// Trains them by successive halving, each from its checkpoint on, so that no epoch is trained
/// twice. Afterwards the best comes first. Only the validation part tells which is better.
void train_trials(Session& session, const Dataset& dataset, std::vector<Trial>& trials);

}  // namespace tessera::app
