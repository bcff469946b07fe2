// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/ops/optimiser.hpp"
#include "tessera/ops/step_clock.hpp"

namespace tessera::train {

/// Steps all trainable parameters of a layer, which must outlive it. Weight decay is multiplied by
/// each parameter's own `decay`. What changes from step to step is read from a clock on the layer's
/// device, so that a step can be recorded and replayed.
class Optimiser {
 public:
  Optimiser(nn::Layer& layer, const ops::OptimiserOptions& options);
  Optimiser(const Optimiser&) = delete;
  Optimiser& operator=(const Optimiser&) = delete;
  ~Optimiser();

  /// Uses the gradients of the last backward pass, then advances the clock.
  void step(Stream stream = {});
  /// A recorded step was replayed, which has advanced the clock but could not be counted here.
  void count_replay() noexcept { ++now_.step; }

  std::int64_t steps() const noexcept { return now_.step; }
  void set_steps(std::int64_t steps);
  /// Scales the learning rate.
  void set_rate_factor(double factor);
  /// For dropout too: see `step::Context::clock`.
  const ops::StepClock* clock() const noexcept { return clock_.data(); }
  /// The moments: "first.convs.0.lin.weight", …
  std::vector<nn::NamedTensor> state();

 private:
  struct Slot {
    std::string path;
    step::Parameter* parameter;
    step::Tensor first;
    step::Tensor second;
  };

  void set_clock();

  ops::OptimiserOptions options_;
  Place place_;
  std::vector<Slot> slots_;
  std::vector<ops::OptimiserTarget> targets_;  ///< of the step under way
  ops::StepClock now_;                         ///< as this process knows it
  Buffer<ops::StepClock> clock_;               ///< one, on the device
  Buffer<std::uint32_t> counter_;              ///< that belongs to it
};

}  // namespace tessera::train
