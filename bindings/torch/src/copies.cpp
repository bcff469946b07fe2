// SPDX-License-Identifier: Apache-2.0
#include "copies.hpp"

namespace tessera::torch_ops {

Tensor Copies::in_type(const Tensor& tensor, ScalarType type) {
  if (tensor.scalar_type() == type) return tensor;
  const Tensor made = tensor.dim() == 2 ? empty_beside(tensor, tensor.size(0), tensor.size(1), type)
                                        : empty_beside(tensor, tensor.numel(), type);
  add(made, tensor);
  return made;
}

std::optional<Tensor> Copies::in_type(const std::optional<Tensor>& tensor, ScalarType type) {
  return tensor ? std::optional(in_type(*tensor, type)) : std::nullopt;
}

Tensor Copies::stacked(const Tensor& first, const Tensor& second, ScalarType type) {
  const std::int64_t rows = first.size(0);
  const Tensor both = empty_beside(first, 2 * rows, first.size(1), type);
  add(rows_of(both, 0, rows), first);
  add(rows_of(both, rows, rows), second);
  return both;
}

void make_one(const Copy& given) {
  if (given.diagonal == 0) {
    copy(given.into, given.source);
    return;
  }
  const std::int64_t rows = given.into.size(0), width = given.diagonal;
  TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(given.into.get()));
  copy(view_of(given.into, {rows, width}, {given.into.stride(0) + width, 1}, 0),
       view_of(given.source, {rows, width}, {width, 1}, 0));
}

}  // namespace tessera::torch_ops
