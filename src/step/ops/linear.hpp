// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = x W^T, + bias, or + a matrix. In: x, the weight, the bias, the matrix; the latter two may be
/// absent, and are not both there.
class Linear final : public Op {
 public:
  /// `adds`: there is such a matrix. `relu`: y is what ReLU makes of it.
  explicit Linear(bool adds = false, bool relu = false) : adds_(adds), relu_(relu) {}

  std::string describe() const override;
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  int updates() const override { return adds_ ? 3 : -1; }

  bool is_plain() const noexcept { return !adds_ && !relu_; }

 private:
  bool adds_, relu_;
};

/// The gradients of a dense layer: of x, of the weight and of the bias. In: x, the weight, the
/// gradient of y, and a matrix that is added to the gradient of x, which may be absent.
class LinearGradient final : public Op {
 public:
  explicit LinearGradient(bool adds = false) : adds_(adds) {}

  std::string describe() const override;
  std::size_t num_outputs() const override { return 3; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  int updates() const override { return adds_ ? 3 : -1; }

  bool is_plain() const noexcept { return !adds_; }

 private:
  bool adds_;
};

/// y = x W^T of a sparse x.
class SparseLinear final : public Op {
 public:
  std::string describe() const override { return "linear of a sparse matrix"; }
  std::size_t num_scratch() const override { return 1; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
};

/// The gradient of its weight. In: x, the weight, the gradient of y.
class SparseLinearGradient final : public Op {
 public:
  std::string describe() const override { return "weight_gradient of a sparse matrix"; }
  std::size_t num_scratch() const override { return 1; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
};

}  // namespace tessera::step
