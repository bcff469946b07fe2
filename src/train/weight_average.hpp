// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/ops/step_clock.hpp"

namespace tessera::train {

/// Means over the steps of all that a layer learns, its running statistics among it.
class WeightAverage {
 public:
  /// The layer must outlive it.
  WeightAverage(nn::Layer& layer, double decay);

  /// Takes what the layer is after a step; `clock` has counted it.
  void add(const ops::StepClock* clock, Stream stream);
  /// The layer computes with the means, until `take_out`.
  void put_in(Stream stream);
  void take_out(Stream stream);
  std::vector<nn::NamedTensor> state();

 private:
  struct Averaged {
    std::string path;
    step::Tensor* value;
    step::Tensor mean;
    step::Tensor kept;  ///< the value, while the mean is in its place
  };

  nn::Layer& layer_;
  double decay_;
  std::vector<Averaged> all_;
};

}  // namespace tessera::train
