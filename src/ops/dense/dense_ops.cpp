// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/dense_ops.hpp"

#include "ops/dense/cpu_dense_ops.hpp"
#include "tessera/detail/ops/plan_only.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/dense/cuda/dense_ops.hpp"
#endif

namespace tessera::ops {
namespace {

class CpuDenseOps final : public DenseOps {
 public:
  void run(const DenseCall& call, Stream, const DenseWorkspace*) const override {
    std::visit([](const auto& of) { run_on_cpu(of); }, call);
  }
};

/// Those of a pass that only plans.
class IdleDenseOps final : public DenseOps {
 public:
  void run(const DenseCall&, Stream, const DenseWorkspace*) const override {}
};

}  // namespace

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

}  // namespace tessera::ops
