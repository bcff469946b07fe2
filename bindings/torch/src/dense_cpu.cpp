// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include "dense.hpp"

namespace tessera::torch_ops {
namespace {

Tensor sum_of(const Tensor& a, const Tensor& b) {
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_add_Tensor(a.get(), b.get(), 1, &made));
  return Tensor(made);
}

}  // namespace

Dense::Dense(const Tensor&, std::int64_t) {}

void Dense::multiply(Tensor& out, const Tensor& a, const Tensor& b) const {
  TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(out.get(), a.get(), b.get()));
}

Tensor Dense::product_in(const Tensor& a, const Tensor& b, ScalarType type) const {
  return in_type(product(a, b), type);
}

void Dense::add_product(Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b) const {
  TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(out.get(), start.get(), a.get(), b.get(), 1, 1));
}

Tensor Dense::with_bias(const Tensor& matrix, const Tensor& bias) const {
  return sum_of(matrix, bias);
}

void Dense::add_into(Tensor into, const Tensor& more) const { copy(into, sum_of(into, more)); }

Tensor Dense::sum_of_rows(const Tensor& matrix, ScalarType type) const {
  const std::array<std::int64_t, 1> rows{0};
  return torch::stable::sum(matrix, rows, false, type);
}

std::optional<LinearGradients> Dense::gradients_in_one(const Tensor&, const Tensor&, const Tensor&,
                                                       const WantedLinear&) const {
  return std::nullopt;
}

std::optional<Tensor> Dense::clear_where_zero(Tensor& values, const Tensor& decides,
                                              std::optional<ScalarType> sum_type) const {
  AtenTensorHandle number = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_scalar_to_tensor_float32(0, &number));
  const Tensor zero(number);
  const Tensor is_zero = call<Tensor>("aten::logical_not", "", decides);
  values = call<Tensor>("aten::masked_fill_", "Tensor", values, is_zero, zero);
  return sum_type ? std::optional(sum_of_rows(values, *sum_type)) : std::nullopt;
}

void with_dense_workspace(const Tensor&, FunctionRef<void(const ops::DenseWorkspace*)> use) {
  use(nullptr);
}

void release_dense_memory() {}

}  // namespace tessera::torch_ops
