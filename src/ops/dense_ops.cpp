// SPDX-License-Identifier: Apache-2.0
#include "ops/dense_ops.hpp"

#include "ops/cpu_dense_ops.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/cuda/dense_ops.hpp"
#endif

namespace tessera::ops {

const DenseOps& dense_ops(Device device) {
  static const CpuDenseOps cpu;
  require_available(device);
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) return cuda_dense_ops(device);
#endif
  return cpu;
}

}  // namespace tessera::ops
