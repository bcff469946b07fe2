// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/nn/model.hpp"
#include "tessera/train/optimiser.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/report.hpp"

namespace tessera::train {

/// One model being trained, an epoch at a time: what `fit` is made of, for loops of one's own.
class Trainer {
 public:
  /// `problem` must outlive it. `split` is the problem's or another of the same items.
  Trainer(const Problem& problem, const Split& split, const nn::ModelConfig& config,
          const TrainOptions& options, std::uint64_t seed);
  ~Trainer();

  /// Every training item once. Returns the mean loss; throws where it is no longer a number.
  double train_epoch();
  /// So many epochs one after the other. Returns the loss of the last. Where `runs_ahead()`, the
  /// device gets all of them at once.
  double train_epochs(std::int64_t count);
  /// Whether steps are recorded and need nothing of this process: they can be queued ahead.
  bool runs_ahead() const noexcept;
  /// Without dropout, on the whole graph.
  Evaluation evaluate();

  nn::Model& model() noexcept;
  Optimiser& optimiser() noexcept;
  std::int64_t epoch() const noexcept;
  /// Goes on as if so many epochs and steps had been trained.
  void set_position(std::int64_t epoch, std::int64_t step) noexcept;
  std::int64_t step() const noexcept;
  const PhaseTimes& times() const noexcept;
  /// Whether steps are recorded (core/recording.hpp), or why not, in words; empty before the first
  /// step and where it was not tried.
  const std::string& recording_note() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::train
