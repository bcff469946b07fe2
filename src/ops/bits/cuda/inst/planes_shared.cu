// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/planes_shared_instances.cuh"

namespace tessera::ops {

const BitFunction shared_planes[3] = {
    shared_planes_function<PlanesPolicy<2, 128, PlanesOrder::one, 7, 7, false, 3>>(),
    shared_planes_function<PlanesPolicy<2, 128, PlanesOrder::twin, 4, 8, true>>(),
    shared_planes_function<PlanesPolicy<2, 128, PlanesOrder::runs, 4, 8, true>>(),
};

}  // namespace tessera::ops
