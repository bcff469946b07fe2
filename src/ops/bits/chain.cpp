// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/chain.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/bits/cuda/chain.hpp"
#endif

namespace tessera::ops {

std::unique_ptr<const BitChain> make_bit_chain(const BitChainProblem& problem) {
#ifdef TESSERA_WITH_CUDA
  if (problem.options.device.kind == DeviceKind::cuda) return make_cuda_bit_chain(problem);
#endif
  return make_cpu_bit_chain(problem);
}

}  // namespace tessera::ops
