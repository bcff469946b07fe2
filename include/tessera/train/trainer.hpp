// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tessera/core/error.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/train/optimiser.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/report.hpp"

namespace tessera::train {

/// The loss is no longer a number.
struct Diverged : Error {
  using Error::Error;
};

/// What an epoch came to.
struct EpochNumbers {
  double loss = 0;                       ///< mean over the training items
  std::optional<Evaluation> evaluation;  ///< where it was asked for
  /// Of one step. Where a device is given steps and evaluations as a whole, that of an epoch a few
  /// before this one, since it was not measured by itself.
  double step_seconds = 0;
  double seconds = 0;  ///< of all steps and the evaluation
};

/// One model being trained, an epoch at a time: what `fit` is made of, for loops of one's own.
class Trainer {
 public:
  /// `problem` must outlive it. `split` is the problem's or another of the same items.
  Trainer(const Problem& problem, const Split& split, const nn::ModelConfig& config,
          const TrainOptions& options, std::uint64_t seed);
  /// A layer of one's own, or several in a `Sequential`: it reads the problem's features and writes
  /// its outputs, and lies where the options say. Its parameters are drawn anew from `seed`.
  Trainer(const Problem& problem, const Split& split, std::unique_ptr<nn::Layer> model,
          const TrainOptions& options, std::uint64_t seed);
  ~Trainer();

  /// Every training item once. Returns the mean loss; throws where it is no longer a number.
  double train_epoch();
  /// So many epochs one after the other. Returns the loss of the last. Where `runs_ahead()`, the
  /// device gets all of them at once.
  double train_epochs(std::int64_t count);

  /// An epoch and, if asked for, its evaluation: `finish_epoch` has the numbers of the earliest
  /// epoch that was started and not finished. Where `runs_ahead()`, the device is only given the
  /// work, and one more epoch may be started before the last one is finished: the device need not
  /// wait for what this process makes of the numbers. Parameters and moments are those of the last
  /// epoch that was started.
  void start_epoch(bool evaluates);
  EpochNumbers finish_epoch();
  /// Whether steps are recorded and need nothing of this process.
  bool runs_ahead() const noexcept;
  /// Without dropout, on the whole graph.
  Evaluation evaluate();

  nn::Layer& model() noexcept;
  Optimiser& optimiser() noexcept;
  std::int64_t epoch() const noexcept;
  /// Goes on as if so many epochs and steps had been trained.
  void set_position(std::int64_t epoch, std::int64_t step) noexcept;
  std::int64_t step() const noexcept;
  /// For `Schedule::plateau`: how many have been left behind.
  void set_plateaus(std::int64_t count) noexcept;
  const PhaseTimes& times() const noexcept;
  const FirstStep& first_step() const noexcept;
  /// Whether steps are recorded (core/recording.hpp), or why not, in words; empty before the first
  /// step and where it was not tried.
  const std::string& recording_note() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::train
