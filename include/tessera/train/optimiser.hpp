// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/ops/optimiser.hpp"

namespace tessera::train {

/// Steps all trainable parameters of a layer, which must outlive it. Weight decay is multiplied by
/// each parameter's own `decay`.
class Optimiser {
 public:
  Optimiser(nn::Layer& layer, const ops::OptimiserOptions& options);

  /// Uses the gradients of the last backward pass. `rate_factor` scales the learning rate.
  void step(double rate_factor = 1, Stream stream = {});

  std::int64_t steps() const noexcept { return steps_; }
  void set_steps(std::int64_t steps) noexcept { steps_ = steps; }
  /// The moments: "first.convs.0.lin.weight", …
  std::vector<nn::NamedTensor> state();

 private:
  struct Slot {
    std::string path;
    nn::Parameter* parameter;
    nn::Tensor first;
    nn::Tensor second;
  };

  ops::OptimiserOptions options_;
  std::vector<Slot> slots_;
  std::int64_t steps_ = 0;
};

}  // namespace tessera::train
