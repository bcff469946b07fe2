// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "structure.hpp"
#include "tessera/ops/attention.hpp"

/// Attention over torch's tensors, for the operators that have one in them.
namespace tessera::torch_ops {

/// What an attention is besides its tensors.
struct AttentionSettings {
  ops::AttentionForm form;
  std::int64_t heads;
  double scale;
  double slope;
  double dropout;
  std::int64_t flags;
};

/// The tensors of one run, in the layout and type that kernels take; all that are given have one
/// type. Kernels that take a term for each edge compute in no less than fp32.
struct AttentionTensors {
  Tensor target;
  Tensor source;
  Tensor value;
  std::optional<Tensor> vector;
  std::optional<Tensor> seed;
  std::optional<Tensor> edge_term = {};  ///< in the order of rows

  AttentionTensors(const Tensor& of_target, const Tensor& of_source, const Tensor& of_value,
                   const std::optional<Tensor>& of_vector, const std::optional<Tensor>& of_seed,
                   bool has_terms = false);

  ops::AttentionInputs inputs(const AttentionSettings& settings) const;
};

/// What sums of exponentials are kept as.
ScalarType sum_type(const Tensor& value);

/// Writes the weighted sums of `tensors.value`, and the logarithms that a backward run needs. Where
/// `kept` is given and the backward run's plan has something to keep for it (attention_kept.hpp),
/// that plan runs and leaves it there.
void attend(Structure& structure, const AttentionSettings& settings,
            const AttentionTensors& tensors, Tensor& output, Tensor& log_sum,
            std::optional<Tensor>* kept = nullptr);

/// Where a backward run writes; each of the shape of what it is the gradient of.
struct AttentionGradients {
  Tensor target;
  Tensor source;
  Tensor value;
  std::optional<Tensor> vector = {};
  std::optional<Tensor> edge_term = {};  ///< in the order of rows
};

void attend_backward(Structure& structure, const AttentionSettings& settings,
                     const AttentionTensors& tensors, const Tensor& output, const Tensor& log_sum,
                     const Tensor& grad, AttentionGradients& gradients,
                     const std::optional<Tensor>& kept = std::nullopt);

}  // namespace tessera::torch_ops
