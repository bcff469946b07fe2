// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/planes_boxed_instances.cuh"

namespace tessera::ops {

const BitFunction boxed_planes[3] = {
    boxed_planes_function<PlanesPolicy<2, 128, PlanesOrder::one, 7, 7>>(),
    boxed_planes_function<PlanesPolicy<2, 128, PlanesOrder::twin, 4, 8, true>>(),
    boxed_planes_function<PlanesPolicy<2, 128, PlanesOrder::runs, 4, 8, true>>(),
};

}  // namespace tessera::ops
