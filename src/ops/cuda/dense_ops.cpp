// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/dense_ops.hpp"

#include <map>
#include <mutex>

namespace tessera::ops {

const DenseOps& cuda_dense_ops(Device device) {
  static std::map<int, CudaDenseOps> all;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  return all.try_emplace(device.index, device).first->second;
}

}  // namespace tessera::ops
