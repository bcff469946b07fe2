// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/input.hpp"

#include "tessera/core/error.hpp"

namespace tessera::step {

std::int64_t Input::rows() const {
  return is_sparse() ? sparse_->graph().num_rows() : dense_->rows();
}

std::int64_t Input::cols() const {
  return is_sparse() ? sparse_->graph().num_cols() : dense_->cols();
}

const Tensor& Input::dense(const char* layer) const {
  if (dense_ != nullptr) return *dense_;
  throw Error(ErrorCode::unsupported,
              is_sparse() ? "this layer cannot read sparse features" : "the input is absent", layer,
              is_sparse() ? "make the features dense first" : "give the layer an input");
}

ops::ConstOperand Input::values() const {
  if (values_ == nullptr) return {};
  ops::ConstOperand column = *values_;
  column.rows = sparse_->graph().num_edges();
  column.cols = 1;
  column.stride = 1;
  return column;
}

}  // namespace tessera::step
