// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"

namespace tessera::nn {

struct AgnnOptions {
  std::int64_t width = 0;
  bool requires_grad = true;  ///< otherwise beta stays 1
  bool add_self_loops = true;
  EpilogueOptions output = {.bias = false};
};

/// Thekumparampil et al. (2018): Y[i] = sum over j of softmax_j(beta cos(x_i, x_j)) x_j. PyG's
/// AGNNConv: `beta`. Edge weights do not count.
class Agnn final : public Layer {
 public:
  explicit Agnn(const AgnnOptions& options, Placement placement = {});

  std::int64_t input_width() const override { return options_.width; }
  std::int64_t output_width() const override { return options_.width; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  AgnnOptions options_;
  Parameter beta_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
