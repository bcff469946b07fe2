// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "structure.hpp"
#include "tessera/ops/spmm.hpp"

/// Sums over neighbours of torch's tensors, for the operators that have one in them.
namespace tessera::torch_ops {

/// What an spmm is besides its tensors.
struct SpmmSettings {
  Norm norm;
  double loop_weight;
  ops::Reduction reduction;
  std::int64_t flags;

  SpmmSettings(double weight_of_loops, std::int64_t norm_number, std::int64_t reduction_number,
               std::int64_t flag_bits)
      : norm(static_cast<Norm>(norm_number)),
        loop_weight(weight_of_loops),
        reduction(static_cast<ops::Reduction>(reduction_number)),
        flags(flag_bits) {}

  bool picks() const {
    return reduction == ops::Reduction::max || reduction == ops::Reduction::min;
  }
};

/// What is added to the sums: (1 + residual_scale) * residual + bias; whether what is negative then
/// becomes 0; and as what the results are stored, if not as the features are.
struct Added {
  std::optional<Tensor> bias = {};
  std::optional<Tensor> residual = {};
  std::optional<Tensor> residual_scale = {};
  bool relu = false;
  std::optional<ScalarType> results = {};
};

void check_weight(const Structure& structure, const std::optional<Tensor>& weight);

/// Sums of the rows of `x`; for max and min `winners` gets who won.
Tensor summed(Structure& structure, const SpmmSettings& settings, Tensor x,
              const std::optional<Tensor>& weight, const Added& added, Tensor* winners = nullptr);

/// What backward takes besides the gradient of the sums.
struct WantedGradients {
  std::optional<Tensor> x = {};  ///< of forward, for the gradient of weights
  std::optional<Tensor> winners = {};
  std::optional<Tensor> residual = {};  ///< added to the gradient of x, as `Added` says
  std::optional<Tensor> residual_scale = {};
  std::optional<Tensor> into = {};  ///< memory for the gradient of x; absent: some is made
  bool need_x = true;
  bool need_weight = false;
};

/// What was wanted, stored as the gradient of the sums is.
struct FoundGradients {
  std::optional<Tensor> x = {};
  std::optional<Tensor> weight = {};  ///< in the order of rows, a column for each head
};

FoundGradients summed_backward(Structure& structure, const SpmmSettings& settings, Tensor grad,
                               const std::optional<Tensor>& weight, const WantedGradients& wanted);

}  // namespace tessera::torch_ops
