// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensors.hpp"
#include "tessera/core/memory.hpp"

/// Where the operators of this library run: one library for the CPU, one for CUDA, with the same
/// operators. place_cpu.cpp and place_cuda.cpp are the difference.
namespace tessera::torch_ops {

/// The device of a tensor, torch's memory there, and torch's current stream.
Place place_of(const Tensor& tensor);
/// Whether the stream's work is being captured into a CUDA graph.
bool is_capturing(const Place& place);
/// Waits for all work on the device; where a capture forbids that, for nothing.
void wait_for(Device device) noexcept;
/// out = a b, by torch.
void multiply(Tensor& out, const Tensor& a, const Tensor& b);
inline Tensor product(const Tensor& a, const Tensor& b) {
  Tensor result = empty_beside(a, a.size(0), b.size(1), a.scalar_type());
  multiply(result, a, b);
  return result;
}
/// The same in another type, for gradients of what was cast.
Tensor product_in(const Tensor& a, const Tensor& b, ScalarType type);
/// a + b, by torch; `b` may be a vector that every row gets.
Tensor sum_of(const Tensor& a, const Tensor& b);
/// into += more, of the same shape.
void add_into(Tensor into, const Tensor& more);
/// out = start + a b, by torch; `start` may be `out`, or a vector that every row gets.
void add_product(Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b);

/// Makes the device of a tensor the current one.
class DeviceScope {
 public:
  explicit DeviceScope(const Tensor& tensor);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  void* guard_ = nullptr;
};

}  // namespace tessera::torch_ops
