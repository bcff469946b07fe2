// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/nn/link_model.hpp"
#include "tessera/train/epoch_trainer.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/report.hpp"

namespace tessera::train {

/// An encoder with the decoder that the options want.
std::unique_ptr<nn::LinkModel> link_model(std::unique_ptr<nn::Layer> encoder,
                                          const LinkOptions& options);

/// A model of links being trained, on the training pairs and negatives drawn anew: a step an epoch
/// on all of them, or a step for each batch. Pairs are chosen, drawn and judged on the device, so
/// that on a GPU steps are recorded and replayed as a whole. Evaluations are on pairs that stay the
/// same, the test's with the edges for validation among the messages. The same options give the
/// same bits for any number of threads.
class LinkTrainer final : public EpochTrainer {
 public:
  /// `problem` was prepared for `Task::links`, and must outlive it. The encoder makes embeddings of
  /// the width of `Problem::outputs`. Parameters are drawn anew from `seed`.
  LinkTrainer(const Problem& problem, std::unique_ptr<nn::Layer> encoder,
              const TrainOptions& options, std::uint64_t seed);
  ~LinkTrainer() override;

  /// Returns the mean loss; throws where it is no longer a number.
  double train_epoch();
  /// On the test pairs, with the weights as they are.
  LinkQuality quality();

  void start_epoch(bool evaluates) override;
  EpochNumbers finish_epoch() override;
  bool runs_ahead() const noexcept override { return false; }
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
