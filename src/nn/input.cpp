// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/input.hpp"

#include <variant>

#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/gather.hpp"

namespace tessera::nn {
namespace {

Matrix<float> dense_copy(const Graph& sparse) {
  Matrix<float> dense(sparse.num_rows(), sparse.num_cols(), 0.0f);
  for (VertexId row = 0; row < sparse.num_rows(); ++row) {
    for (EdgeOffset k = sparse.row_offsets()[row]; k < sparse.row_offsets()[row + 1]; ++k) {
      dense(row, sparse.col_indices()[k]) = sparse.weight(row, k);
    }
  }
  return dense;
}

ops::ActivationOptions dropout_options(double share, std::uint32_t layer_number,
                                       const Context& context) {
  ops::ActivationOptions options;
  options.dropout = share;
  options.random = context.random(layer_number);
  options.clock = context.clock;
  return options;
}

}  // namespace

InputFeatures::InputFeatures(const Features& features, Placement placement, bool densify,
                             const ops::PlanOptions& plans) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    dense_.emplace(placement);
    dense_->upload(**dense, placement.stream);
  } else if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    if (densify && ops::plans_only()) {
      dense_.emplace(sparse->num_rows(), sparse->num_cols(), placement);
    } else if (densify) {
      dense_.emplace(placement);
      dense_->upload(dense_copy(*sparse), placement.stream);
    } else {
      sparse_.emplace(*sparse, placement.place(), plans);
    }
  } else {
    throw Error(ErrorCode::invalid_argument, "the data set has no features", "features",
                "use a data set with features, or give it some");
  }
}

InputFeatures InputFeatures::of_vertices(std::span<const VertexId> vertices, Stream stream) const {
  InputFeatures chosen;
  if (sparse_) {
    const ops::PlanOptions& plans = sparse_->plan_options();
    chosen.sparse_.emplace(selected_rows(sparse_->graph(), vertices, stream),
                           Place(plans.device, plans.memory, stream), plans);
    return chosen;
  }
  Placement placement = dense_->placement();
  placement.stream = stream;
  chosen.dense_.emplace(std::ssize(vertices), dense_->cols(), placement);
  if (ops::plans_only()) return chosen;
  Buffer<VertexId> rows(std::ssize(vertices), placement.place());
  copy_bytes(rows.data(), vertices.data(), vertices.size_bytes(), placement.device(), stream);
  ops::gather_rows(*dense_,
                   MatrixView<const VertexId>(rows.data(), rows.size(), 1, dense_->device()),
                   *chosen.dense_, placement.device(), stream);
  return chosen;
}

Input InputFeatures::input() { return dense_ ? Input(*dense_) : Input(*sparse_); }
std::int64_t InputFeatures::rows() const {
  return dense_ ? dense_->rows() : sparse_->graph().num_rows();
}
std::int64_t InputFeatures::cols() const {
  return dense_ ? dense_->cols() : sparse_->graph().num_cols();
}

Input InputDropout::forward(const Input& input, std::uint32_t layer_number,
                            const Context& context) {
  if (share_ == 0 || !context.training) return input;
  const Tensor& from =
      input.is_sparse() ? input.sparse().values(kept_.placement()) : input.dense("dropout");
  kept_.resize(from.rows(), from.cols());
  ops::bias_activation_dropout(from, {}, dropout_options(share_, layer_number, context), kept_,
                               kept_.device(), context.stream);
  return input.is_sparse() ? Input(input.sparse(), &kept_) : Input(kept_);
}

void InputDropout::backward(const Input& input, Tensor& grad, std::uint32_t layer_number,
                            const Context& context) {
  if (share_ == 0 || !context.training) return;
  ops::bias_activation_dropout_backward(input.dense("dropout"), {},
                                        dropout_options(share_, layer_number, context), grad, grad,
                                        {}, grad.device(), context.stream, context.workspace);
}

}  // namespace tessera::nn
