// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/step/nodes.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// What follows a sum or a product: activation and dropout, in this order.
struct Finishing {
  ActivationKind kind = {};
  double dropout = 0;
  std::uint32_t number = 0;  ///< of dropout's draws

  /// Whether it is the identity.
  bool is_linear() const noexcept {
    return kind.activation == ops::Activation::none && dropout == 0;
  }
  /// Whether the derivative follows from the result's signs: elu's does not, since dropout has
  /// scaled the result.
  bool shows_derivative() const noexcept;
  ops::ActivationOptions options(const Pass& pass) const;
  std::string describe() const;
};

/// y = drop(activate(x + bias)), in one pass; the bias may be absent.
class Finish final : public Op {
 public:
  explicit Finish(const Finishing& finishing) : finishing_(finishing) {}

  std::string describe() const override { return finishing_.describe(); }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  int replaces() const override { return 0; }
  int adds_last() const override { return finishing_.is_linear() ? 1 : -1; }
  bool may_repeat() const override { return true; }

  const Finishing& finishing() const noexcept { return finishing_; }

 private:
  Finishing finishing_;
};

/// The gradient of what is finished, given the result's, or factors of that: that result or, where
/// it does not show the derivative, what went in must still be there. Gives the bias its gradient,
/// where there is one.
class FinishGradient final : public Op {
 public:
  explicit FinishGradient(const Finishing& finishing) : finishing_(finishing) {}

  /// Inputs: `from` is the result or what was finished, in the latter case there is the bias.
  static constexpr std::size_t gradient = 0, from = 1, bias = 2, left = 3, right = 4;
  static constexpr std::size_t num_in = 5;
  static constexpr std::size_t before = 0, grad_bias = 1;  ///< outputs

  std::string describe() const override;
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  int replaces() const override { return 0; }

  const Finishing& finishing() const noexcept { return finishing_; }

 private:
  Finishing finishing_;
};

/// The sums of the columns of a matrix.
class ColumnSums final : public Op {
 public:
  std::string describe() const override { return "column_sums"; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
};

/// Whether a product with a sparse matrix finishes its rows `y` itself and is as fast.
bool finishes_cheaply(const ops::ConstOperand& y);
/// Adds what follows to such a product; the bias is the node's input of that number.
void finish_by_product(const Pass& pass, const Finishing& finishing, std::size_t bias,
                       ops::SpmmOptions& options, ops::SpmmInputs& inputs);

/// For the adjoint rule of a node that ends in `finishing`: the gradient before that, given that of
/// the result. `x` is what was finished, absent where only the result is there; `bias` is the
/// number of the node's input, which is given its gradient.
Value gradient_before(Adjoint& adjoint, const Finishing& finishing, Value x, std::size_t bias);

}  // namespace tessera::step
