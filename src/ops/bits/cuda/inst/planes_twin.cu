// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/planes_instances.cuh"

namespace tessera::ops {

const BitFunction planes_twin[num_planes_shapes] = {
    planes_function<PlanesPolicy<1, 64, PlanesOrder::twin, 6, 8>>(),
    planes_function<PlanesPolicy<1, 32, PlanesOrder::twin, 6, 8>>(),
};

}  // namespace tessera::ops
