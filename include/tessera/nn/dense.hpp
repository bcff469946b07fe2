// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/nn/layer.hpp"

/// Layers that see no neighbours.
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

struct BatchNormLayerOptions {
  std::int64_t width = 0;
  double epsilon = 1e-5;
  double momentum = 0.1;
  EpilogueOptions output = {.bias = false};
};

/// Batch norm over the vertices, then activation and dropout. PyTorch's BatchNorm1d: `weight`,
/// `bias`, and in the state `running_mean`, `running_var`. Its gradient is that of training.
class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const BatchNormLayerOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return 0; }
  std::int64_t input_width() const override { return options_.width; }
  std::int64_t output_width() const override { return options_.width; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& in) override;

  BatchNormLayerOptions options_;
  Parameter weight_;
  Parameter bias_;
  Tensor running_mean_;
  Tensor running_variance_;
};

struct ActivationLayerOptions {
  std::int64_t width = 0;
  EpilogueOptions output = {.bias = false};
};

/// Activation and dropout alone.
class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(const ActivationLayerOptions& options, Placement placement = {});

  std::int64_t num_graphs() const override { return 0; }
  std::int64_t input_width() const override { return options_.width; }
  std::int64_t output_width() const override { return options_.width; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& in) override { return in.finish(in.sources, epilogue_); }

  ActivationLayerOptions options_;
  Epilogue epilogue_;
};

}  // namespace tessera::nn
