// SPDX-License-Identifier: Apache-2.0
#include "place.hpp"

#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include "copies.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {

Place place_of(const Tensor&) { return {}; }
bool is_capturing(const Place&) { return false; }
void wait_for(Device) noexcept {}
void multiply(Tensor& out, const Tensor& a, const Tensor& b) {
  TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(out.get(), a.get(), b.get()));
}
Tensor product_in(const Tensor& a, const Tensor& b, ScalarType type) {
  return in_type(product(a, b), type);
}
void add_product(Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b) {
  TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(out.get(), start.get(), a.get(), b.get(), 1, 1));
}
Tensor sum_of(const Tensor& a, const Tensor& b) {
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_add_Tensor(a.get(), b.get(), 1, &made));
  return Tensor(made);
}
void add_into(Tensor into, const Tensor& more) { copy(into, sum_of(into, more)); }
void make_all(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) make_one(copy);
}
void clear_where_zero(Tensor& values, const Tensor& decides) {
  AtenTensorHandle number = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_scalar_to_tensor_float32(0, &number));
  const Tensor zero(number);
  const Tensor is_zero = call<Tensor>("aten::logical_not", "", decides);
  values = call<Tensor>("aten::masked_fill_", "Tensor", values, is_zero, zero);
}
DeviceScope::DeviceScope(const Tensor&) {}
DeviceScope::~DeviceScope() = default;

}  // namespace tessera::torch_ops

STABLE_TORCH_LIBRARY_IMPL(tessera, CPU, library) {
  tessera::torch_ops::register_operators(library);
}
