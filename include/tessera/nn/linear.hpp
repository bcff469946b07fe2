// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct LinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  EpilogueOptions output = {};
  int bits = 0;  ///< of weights and input; 0: all of them
};

/// y = x W^T + b, then activation and dropout. PyTorch's Linear: `weight`, `bias`.
class Linear final : public Layer {
 public:
  explicit Linear(const LinearOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return 0; }
  std::int64_t input_width() const override { return weight_.value.cols(); }
  std::int64_t output_width() const override { return weight_.value.rows(); }
  std::string describe() const override;

 private:
  step::Value build(const StepInputs& in) override;

  Parameter weight_;
  Rounder weight_rounder_, input_rounder_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
