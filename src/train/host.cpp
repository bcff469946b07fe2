// SPDX-License-Identifier: Apache-2.0
#include "train/host.hpp"

#include "tessera/ops/elementwise.hpp"

namespace tessera::train {

Matrix<float> to_host(const nn::Tensor& tensor, Stream stream) {
  Buffer<std::byte> bytes(tensor.num_bytes());
  copy_bytes(bytes.data(), tensor.bytes(), static_cast<std::size_t>(bytes.size()), tensor.device(),
             stream);
  ops::ConstOperand operand = tensor;
  operand.data = bytes.data();
  Matrix<float> result(tensor.rows(), tensor.cols());
  ops::copy(operand, result);
  return result;
}

}  // namespace tessera::train
