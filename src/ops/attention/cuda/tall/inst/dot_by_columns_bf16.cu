// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/dot_gradient.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_dot_by_columns = make_dot_gradients<false>();

}  // namespace tessera::ops
