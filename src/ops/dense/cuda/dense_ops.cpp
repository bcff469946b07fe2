// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/cuda/dense_ops.hpp"

#include <map>
#include <mutex>

#include "core/cuda_handles.hpp"

namespace tessera::ops {
namespace {

class CudaDenseOps final : public DenseOps {
 public:
  explicit CudaDenseOps(Device device) : device_(device) {}

  void run(const DenseCall& call, Stream stream, const DenseWorkspace* workspace) const override {
    const cuda_backend::CurrentDevice current(device_.index);
    std::visit([&](const auto& of) { CudaDenseRun{device_, stream, workspace}.run(of); }, call);
  }
  bool chains(const ChainCall& call) const override { return CudaDenseRun{device_}.chains(call); }
  std::size_t longest_chain() const override { return CudaDenseRun::longest_chain(); }
  void run_chain(std::span<const ChainCall> calls, Stream stream,
                 const DenseWorkspace* workspace) const override {
    const cuda_backend::CurrentDevice current(device_.index);
    CudaDenseRun{device_, stream, workspace}.run_chain(calls);
  }
  bool multiplies_factors(std::int64_t rows, std::int64_t k) const override {
    return pays_as_factors(rows, k);
  }

 private:
  Device device_;
};

}  // namespace

const DenseOps& cuda_dense_ops(Device device) {
  static std::map<int, CudaDenseOps> all;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  return all.try_emplace(device.index, device).first->second;
}

}  // namespace tessera::ops
