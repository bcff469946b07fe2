// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/optimiser.hpp"
#include "tessera/ops/step_clock.hpp"

namespace tessera::train {

class WeightAverage;

/// What else a step does: see the fields of `TrainOptions` of these names.
struct StepRules {
  double clip_gradients = 0;
  double average_weights = 0;
};

/// Steps all trainable parameters of a layer, which must outlive it. Weight decay is multiplied by
/// each parameter's own `decay`. What changes from step to step is read from a clock on the layer's
/// device, so that a step can be recorded and replayed.
class Optimiser {
 public:
  Optimiser(nn::Layer& layer, const ops::OptimiserOptions& options, const StepRules& rules = {});
  Optimiser(const Optimiser&) = delete;
  Optimiser& operator=(const Optimiser&) = delete;
  ~Optimiser();

  /// Uses the gradients of the last backward pass, then advances the clock.
  /// A GPU needs the workspace to clip them.
  void step(Stream stream = {}, const ops::DenseWorkspace* workspace = nullptr);
  /// A recorded step was replayed, which has advanced the clock but could not be counted here.
  void count_replay() noexcept { ++now_.step; }

  std::int64_t steps() const noexcept { return now_.step; }
  void set_steps(std::int64_t steps);
  /// Scales the learning rate.
  void set_rate_factor(double factor);
  /// For dropout too: see `step::Context::clock`.
  const ops::StepClock* clock() const noexcept { return clock_.data(); }
  /// The moments and means: "first.convs.0.lin.weight", …, "average.convs.0.lin.weight"
  std::vector<nn::NamedTensor> state();

  /// The layer computes with the means of its weights where there are any, until `take_means_out`.
  void put_means_in(Stream stream = {});
  void take_means_out(Stream stream = {});

 private:
  struct Slot {
    std::string path;
    step::Parameter* parameter;
    step::Tensor first;
    step::Tensor second;
  };

  void set_clock();

  ops::OptimiserOptions options_;
  StepRules rules_;
  Place place_;
  std::vector<Slot> slots_;
  std::vector<ops::OptimiserTarget> targets_;  ///< of the step under way
  ops::StepClock now_;                         ///< as this process knows it
  Buffer<ops::StepClock> clock_;               ///< one, on the device
  Buffer<std::uint32_t> counter_;              ///< that belongs to it
  Buffer<double> factor_;                      ///< of gradients; none where they are not clipped
  std::unique_ptr<WeightAverage> average_;     ///< null: none is asked for
};

}  // namespace tessera::train
