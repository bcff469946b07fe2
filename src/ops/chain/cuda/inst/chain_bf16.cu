// SPDX-License-Identifier: Apache-2.0
// Also for: fp32
#include "ops/chain/cuda/chain.cuh"

namespace tessera::ops {

template bool launch_chain(const ChainLaunch<__nv_bfloat16>&, bool, int, Stream);
template int chain_room<__nv_bfloat16>(bool, int);

}  // namespace tessera::ops
