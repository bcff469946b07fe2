// SPDX-License-Identifier: Apache-2.0
#include "train/weight_average.hpp"

#include "tessera/ops/optimiser.hpp"

namespace tessera::train {

WeightAverage::WeightAverage(nn::Layer& layer, double decay) : layer_(layer), decay_(decay) {
  for (const auto& [path, value] : layer.state()) {
    const auto alike = [&] {
      return step::Tensor(value->rows(), value->cols(), value->placement());
    };
    all_.push_back({path, value, alike(), alike()});
    all_.back().mean.fill(0, value->placement().stream);
  }
}

void WeightAverage::add(const ops::StepClock* clock, Stream stream) {
  for (Averaged& one : all_) {
    ops::average(decay_, clock, *one.value, one.mean, one.value->device(), stream);
  }
}

void WeightAverage::put_in(Stream stream) {
  for (Averaged& one : all_) {
    one.kept.copy_from(*one.value, stream);
    one.value->copy_from(one.mean, stream);
  }
  layer_.round_parameters(stream);
}

void WeightAverage::take_out(Stream stream) {
  for (Averaged& one : all_) one.value->copy_from(one.kept, stream);
  layer_.round_parameters(stream);
}

std::vector<nn::NamedTensor> WeightAverage::state() {
  std::vector<nn::NamedTensor> tensors;
  for (Averaged& one : all_) tensors.push_back({"average." + one.path, &one.mean});
  return tensors;
}

}  // namespace tessera::train
