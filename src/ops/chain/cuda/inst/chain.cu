// SPDX-License-Identifier: Apache-2.0
#include "ops/chain/cuda/chain.cuh"

namespace tessera::ops {

template void run_chain_in_cluster(const ChainLaunch<float>&, int, Stream);
template bool has_room_for_chain<float>(int);

}  // namespace tessera::ops
