// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/planes_instances.cuh"

namespace tessera::ops {

const BitFunction planes_runs[num_planes_shapes] = {
    planes_function<PlanesPolicy<1, 64, PlanesOrder::runs, 8, 6>>(),
    planes_function<PlanesPolicy<1, 32, PlanesOrder::runs, 8, 6>>(),
};

}  // namespace tessera::ops
