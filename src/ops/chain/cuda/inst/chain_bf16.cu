// SPDX-License-Identifier: Apache-2.0
#include "ops/chain/cuda/chain.cuh"

namespace tessera::ops {

template bool run_chain_in_cluster(const ChainLaunch<__nv_bfloat16>&, int, Stream);
template bool run_chain_in_grid(const ChainLaunch<__nv_bfloat16>&, int, Stream);
template int chain_room_in_cluster<__nv_bfloat16>(int);
template int chain_room_in_grid<__nv_bfloat16>(int);

}  // namespace tessera::ops
