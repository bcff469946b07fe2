// SPDX-License-Identifier: Apache-2.0
#include "train/host.hpp"

#include "tessera/ops/elementwise.hpp"

namespace tessera::train {

Matrix<float> to_host(const step::Tensor& tensor, Stream stream) {
  Matrix<float> result(tensor.rows(), tensor.cols());
  ops::download(tensor, result, tensor.device(), stream);
  return result;
}

}  // namespace tessera::train
