// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "step/ops/finish.hpp"
#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// Batch norm over the rows, then activation and dropout.
class BatchNorm final : public Op {
 public:
  explicit BatchNorm(const BatchNormKind& kind, const Finishing& finishing = {})
      : kind_(kind), finishing_(finishing) {}

  // Inputs: the statistics are states; `shift` is a bias that comes before, `moments` those of x
  // where the product that wrote it found them; both may be absent.
  static constexpr std::size_t x = 0, gamma = 1, beta = 2, running_mean = 3, running_variance = 4,
                               shift = 5, moments = 6;
  static constexpr std::size_t num_in = 7;
  /// Outputs: `columns` is what is left to one who reads x in the place of y.
  static constexpr std::size_t y = 0, columns = 1, mean = 2, inverse_deviation = 3;

  std::string describe() const override;
  std::size_t num_outputs() const override { return 4; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  bool joins_chain() const override { return true; }

  const BatchNormKind& kind() const noexcept { return kind_; }
  const Finishing& finishing() const noexcept { return finishing_; }
  /// Whether a dense layer that reads x can do it on its own: nothing follows, or ReLU.
  bool fits_columns() const noexcept;

 private:
  BatchNormKind kind_;
  Finishing finishing_;
};

/// Its gradient in training: of x, or what is left to one who makes it, of gamma, beta and shift.
class BatchNormGradient final : public Op {
 public:
  BatchNormGradient(const BatchNorm& forward, bool reaches_x)
      : forward_(forward), reaches_x_(reaches_x) {}

  /// Inputs: `gradient` is that of y, or there are factors in its place; `sums` are those that the
  /// pass begins with, where a product found them.
  static constexpr std::size_t x = 0, gamma = 1, beta = 2, mean = 3, inverse_deviation = 4,
                               gradient = 5, left = 6, right = 7, sums = 8;
  static constexpr std::size_t num_in = 9;
  static constexpr std::size_t grad_x = 0, grad_gamma = 1, grad_beta = 2, grad_shift = 3,
                               grad_columns = 4;

  std::string describe() const override { return "batch_norm_gradient"; }
  std::size_t num_outputs() const override { return 5; }
  std::size_t num_scratch() const override { return 1; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  bool joins_chain() const override { return true; }

  const BatchNorm& forward() const noexcept { return forward_; }

 private:
  BatchNorm forward_;
  bool reaches_x_;  ///< somebody asks for the gradient of x
};

}  // namespace tessera::step
