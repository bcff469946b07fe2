// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tessera/core/error.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/train/epoch_trainer.hpp"
#include "tessera/train/optimiser.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/report.hpp"

namespace tessera::train {

/// The loss is no longer a number.
struct Diverged : Error {
  using Error::Error;
};

/// The trainer of classes, for loops of one's own. `LinkTrainer` (train/link_trainer.hpp) is that
/// of links.
class Trainer final : public EpochTrainer {
 public:
  /// `problem` must outlive it. `split` is the problem's or another of the same items.
  Trainer(const Problem& problem, const Split& split, const nn::ModelConfig& config,
          const TrainOptions& options, std::uint64_t seed);
  /// A layer of one's own, or several in a `Sequential`: it reads the problem's features and writes
  /// its outputs, and lies where the options say. Its parameters are drawn anew from `seed`.
  Trainer(const Problem& problem, const Split& split, std::unique_ptr<nn::Layer> model,
          const TrainOptions& options, std::uint64_t seed);
  ~Trainer() override;

  /// Every training item once. Returns the mean loss; throws where it is no longer a number.
  double train_epoch();
  /// So many epochs one after the other. Returns the loss of the last. Where `runs_ahead()`, the
  /// device gets all of them at once.
  double train_epochs(std::int64_t count);

  void start_epoch(bool evaluates) override;
  EpochNumbers finish_epoch() override;
  bool runs_ahead() const noexcept override;
  Evaluation evaluate() override;

  nn::Layer& model() noexcept override;
  Optimiser& optimiser() noexcept override;
  std::int64_t epoch() const noexcept override;
  void set_position(std::int64_t epoch, std::int64_t step) noexcept override;
  std::int64_t step() const noexcept override;
  void set_plateaus(std::int64_t count) noexcept override;
  const PhaseTimes& times() const noexcept override;
  const FirstStep& first_step() const noexcept override;
  const std::string& recording_note() const noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::train
