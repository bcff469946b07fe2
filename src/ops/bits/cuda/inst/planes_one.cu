// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/planes_instances.cuh"

namespace tessera::ops {

const BitFunction planes_one[num_planes_shapes] = {
    planes_function<PlanesPolicy<1, 64, PlanesOrder::one, 6, 6>>(),
    planes_function<PlanesPolicy<1, 32, PlanesOrder::one, 8, 8>>(),
};

}  // namespace tessera::ops
