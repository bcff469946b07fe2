// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/step/tensor.hpp"

namespace tessera::train {

/// A tensor of any device and precision as floats of this process.
Matrix<float> to_host(const step::Tensor& tensor, Stream stream = {});

}  // namespace tessera::train
