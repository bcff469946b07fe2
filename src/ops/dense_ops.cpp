// SPDX-License-Identifier: Apache-2.0
#include "ops/dense_ops.hpp"

#include "ops/cpu_dense_ops.hpp"
#include "ops/idle_dense_ops.hpp"
#include "ops/plan_only.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/cuda/dense_ops.hpp"
#include "ops/gemm/cuda/products.hpp"
#endif

namespace tessera::ops {

const DenseOps& dense_ops(Device device) {
  static const CpuDenseOps cpu;
  static const IdleDenseOps idle;
  require_available(device);
  if (plans_only()) return idle;
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) return cuda_dense_ops(device);
#endif
  return cpu;
}

bool cuda_linear_fuses([[maybe_unused]] Device device, [[maybe_unused]] ElementType type) {
#ifdef TESSERA_WITH_CUDA
  return products_fuse(device, type);
#else
  return false;
#endif
}

}  // namespace tessera::ops
