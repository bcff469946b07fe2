// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "place.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/ops/dense_workspace.hpp"

/// The products of matrices and the sums over their rows that layers need: on a CPU by torch, on a
/// GPU by the library's dense ops, which the host queues in a fraction of the time that torch's
/// take it. dense_cpu.cpp and dense_cuda.cpp are the difference.
namespace tessera::torch_ops {

/// Which gradients of Y = X W^T + b are wanted.
struct WantedLinear {
  bool weight = false;
  bool bias = false;
  bool x = false;
  /// X is what a ReLU put out: the gradient of what it was given takes the place of that of X.
  bool before_relu = false;
  bool x_sums = false;  ///< the sum of all rows of the gradient of X
};

/// Those that were wanted. X's gradient has its type, the others that of the parameters.
struct LinearGradients {
  std::optional<Tensor> weight = {}, bias = {}, x = {}, x_sums = {};
};

struct StreamWorkspace;

class Dense {
 public:
  /// For tensors that lie where this one does, with the flags of an operator.
  Dense(const Tensor& beside, std::int64_t flags);

  /// out = a b. Matrices may be transposed views; `out` has rows.
  void multiply(Tensor& out, const Tensor& a, const Tensor& b) const;
  Tensor product(const Tensor& a, const Tensor& b) const {
    Tensor result = empty_beside(a, a.size(0), b.size(1), a.scalar_type());
    multiply(result, a, b);
    return result;
  }
  /// The same in another type, for gradients of what was cast.
  Tensor product_in(const Tensor& a, const Tensor& b, ScalarType type) const;
  /// out = start + a b; `start` may be `out`, or a vector that every row gets.
  void add_product(Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b) const;
  /// out = a b, or that plus a vector that every row gets.
  void multiply(Tensor& out, const std::optional<Tensor>& bias, const Tensor& a,
                const Tensor& b) const {
    bias ? add_product(out, *bias, a, b) : multiply(out, a, b);
  }
  /// A matrix plus a vector that every row gets.
  Tensor with_bias(const Tensor& matrix, const Tensor& bias) const;
  /// into += more, of the same shape.
  void add_into(Tensor into, const Tensor& more) const;
  /// The sum of all rows.
  Tensor sum_of_rows(const Tensor& matrix, ScalarType type) const;
  LinearGradients linear_gradients(const Tensor& x, const Tensor& matrix, Tensor grad,
                                   ScalarType parameters, const WantedLinear& wanted) const;

 private:
  /// The same where all tensors have one type, in one go, if there is a way.
  std::optional<LinearGradients> gradients_in_one(const Tensor& x, const Tensor& matrix,
                                                  const Tensor& grad,
                                                  const WantedLinear& wanted) const;
  /// Writes 0 wherever `decides` is 0, whatever was there. If a type for it is given, the sum of
  /// all rows that are left.
  std::optional<Tensor> clear_where_zero(Tensor& values, const Tensor& decides,
                                         std::optional<ScalarType> sum_type) const;

  /// On a GPU: writes 0 into `values` where `decides` is 0, if it is there, and the sums of their
  /// columns, if those are wanted: in their type or in fp32.
  void sum_columns(const Tensor& values, const std::optional<Tensor>& decides,
                   const std::optional<Tensor>& sums) const;

  Place place_ = {};
  std::shared_ptr<StreamWorkspace> workspace_;  ///< on a GPU
  Precision arithmetic_ = Precision::fp32;
};

/// Lends ops what they need for the length of a call on a tensor's stream: on a CPU nothing.
void with_dense_workspace(const Tensor& beside, FunctionRef<void(const ops::DenseWorkspace*)> use);

/// Gives back what dense ops keep for their next calls.
void release_dense_memory();

}  // namespace tessera::torch_ops
