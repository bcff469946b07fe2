// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/nn/layer.hpp"
#include "tessera/train/optimiser.hpp"
#include "tessera/train/report.hpp"

namespace tessera::train {

/// What an epoch came to.
struct EpochNumbers {
  double loss = 0;                       ///< mean over the training items
  std::optional<Evaluation> evaluation;  ///< where it was asked for
  /// Of one step. Where a device is given steps and evaluations as a whole, that of an epoch a few
  /// before this one, since it was not measured by itself.
  double step_seconds = 0;
  double seconds = 0;  ///< of all steps and the evaluation
};

/// One model being trained, an epoch at a time, whatever it learns: what `fit` is made of.
class EpochTrainer {
 public:
  virtual ~EpochTrainer() = default;

  /// An epoch and, if asked for, its evaluation: `finish_epoch` has the numbers of the earliest
  /// epoch that was started and not finished. Where `runs_ahead()`, the device is only given the
  /// work, and one more epoch may be started before the last one is finished: the device need not
  /// wait for what this process makes of the numbers. Parameters and moments are those of the last
  /// epoch that was started.
  virtual void start_epoch(bool evaluates) = 0;
  virtual EpochNumbers finish_epoch() = 0;
  /// Whether steps are recorded and need nothing of this process.
  virtual bool runs_ahead() const noexcept = 0;
  /// Without dropout, on the whole graph.
  virtual Evaluation evaluate() = 0;

  virtual nn::Layer& model() noexcept = 0;
  virtual Optimiser& optimiser() noexcept = 0;
  virtual std::int64_t epoch() const noexcept = 0;
  /// Goes on as if so many epochs and steps had been trained.
  virtual void set_position(std::int64_t epoch, std::int64_t step) noexcept = 0;
  virtual std::int64_t step() const noexcept = 0;
  /// For `Schedule::plateau`: how many have been left behind.
  virtual void set_plateaus(std::int64_t count) noexcept = 0;
  virtual const PhaseTimes& times() const noexcept = 0;
  virtual const FirstStep& first_step() const noexcept = 0;
  /// Whether steps are recorded (core/recording.hpp), or why not, in words; empty before the first
  /// step and where it was not tried.
  virtual const std::string& recording_note() const noexcept = 0;
};

}  // namespace tessera::train
