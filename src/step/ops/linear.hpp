// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "step/ops/finish.hpp"
#include "tessera/step/op.hpp"

namespace tessera::step {

/// y = x W^T, + bias, or + a matrix; and what stands around it, where the shape is in favour of
/// that (ops/linear.hpp).
class Linear final : public Op {
 public:
  struct Form {
    bool adds = false;           ///< the matrix, in place of a bias
    bool relu = false;           ///< y is what ReLU makes of it
    bool is_wide = false;        ///< y is stored as sums are, not rounded to 16 bits
    bool finds_moments = false;  ///< of the columns of y
    bool reads_norm = false;     ///< x is what batch norm makes of `source`, which is read
    bool norm_relu = false;      ///< and ReLU
  };
  Linear() = default;
  explicit Linear(const Form& form) : form_(form) {}

  // Inputs. `columns` says what is done to the columns of `source`.
  static constexpr std::size_t x = 0, weight = 1, bias = 2, added = 3, source = 4, columns = 5;
  static constexpr std::size_t num_in = 6;
  static constexpr std::size_t y = 0, moments = 1;  ///< outputs

  std::string describe() const override;
  std::size_t num_outputs() const override { return 2; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  int updates() const override { return form_.adds ? static_cast<int>(added) : -1; }
  bool reads(std::size_t input) const override { return input != x || !form_.reads_norm; }
  int adds_last() const override { return form_.adds || form_.relu ? -1 : static_cast<int>(bias); }
  bool may_repeat() const override { return !form_.adds; }
  bool joins_chain() const override { return !form_.adds && !form_.is_wide; }

  const Form& form() const noexcept { return form_; }
  /// Whether it is a product alone.
  bool is_plain() const noexcept {
    return !form_.adds && !form_.relu && !form_.is_wide && !form_.finds_moments &&
           !form_.reads_norm;
  }

 private:
  Form form_;
};

/// The gradients of a dense layer: of x, of the weight and of the bias.
class LinearGradient final : public Op {
 public:
  struct Form {
    bool adds = false;         ///< a matrix to the gradient of x
    bool before_relu = false;  ///< that gradient becomes the one of what ReLU made x of
    bool reads_norm = false;   ///< as forward
    bool norm_relu = false;
    /// `grad_y` is what batch norm behind y makes of its own gradient, which is read in its place.
    bool is_normed = false;
    bool normed_relu = false;
  };
  LinearGradient() = default;
  explicit LinearGradient(const Form& form) : form_(form) {}

  static constexpr std::size_t x = 0, weight = 1, grad_y = 2, added = 3, source = 4, columns = 5;
  /// Of the batch norm behind y: its input, what it left to do, and its gradient or the factors of
  /// that.
  static constexpr std::size_t normed_y = 6, normed_columns = 7, normed_grad = 8, left = 9,
                               right = 10;
  static constexpr std::size_t num_in = 11;
  static constexpr std::size_t grad_x = 0, grad_weight = 1, grad_bias = 2;  ///< outputs
  static constexpr std::size_t x_sums = 3;     ///< the sums of the columns of `grad_x`
  static constexpr std::size_t norm_sums = 4;  ///< for the gradient of the batch norm before

  std::string describe() const override;
  std::size_t num_outputs() const override { return 5; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  int updates() const override { return form_.adds ? static_cast<int>(added) : -1; }
  bool reads(std::size_t input) const override {
    return !(input == x && form_.reads_norm) && !(input == grad_y && form_.is_normed);
  }
  bool joins_chain() const override { return true; }

  const Form& form() const noexcept { return form_; }

 private:
  Form form_;
};

/// y = x W^T of a sparse x, and what follows. In: x, the weight, the bias.
class SparseLinear final : public Op {
 public:
  SparseLinear() = default;
  explicit SparseLinear(const Finishing& finishing) : finishing_(finishing), finishes_(true) {}

  static constexpr std::size_t bias = 2;

  std::string describe() const override;
  std::size_t num_scratch() const override { return 1; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
  void differentiate(Adjoint& adjoint) const override;
  int adds_last() const override {
    return finishes_ && finishing_.is_linear() ? static_cast<int>(bias) : -1;
  }
  bool may_repeat() const override { return true; }

  bool finishes() const noexcept { return finishes_; }

 private:
  Finishing finishing_ = {};
  bool finishes_ = false;
};

/// The gradient of its weight. In: x, the weight, the gradient of y.
class SparseLinearGradient final : public Op {
 public:
  std::string describe() const override { return "weight_gradient of a sparse matrix"; }
  std::size_t num_scratch() const override { return 1; }
  void shape(Shapes& shapes) const override;
  void run(const Pass& pass) const override;
};

/// How products of a step compute.
Precision arithmetic_of(const Placement& placement);

}  // namespace tessera::step
