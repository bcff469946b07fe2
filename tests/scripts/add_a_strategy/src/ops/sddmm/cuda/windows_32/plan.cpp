// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/kernels.hpp"
#include "ops/sddmm/cuda/windows_32/launch.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

class CudaDots32 final : public PreparedSddmm {
 public:
  explicit CudaDots32(const SddmmProblem& problem)
      : rows_(cuda::device_rows(problem.graph, problem.place())),
        windows_(tiles::translate_on_device(problem.graph, {dots_32_rows}, problem.place(),
                                            tiles::WindowBits::row_sets)),
        launch_{rows_->offsets(), windows_.step_offsets.data(), windows_.columns.data(),
                windows_.words.data()} {}

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    launch_dots_32(launch_, u, v, edges, stream);
  }

 private:
  std::shared_ptr<const cuda::DeviceRows> rows_;
  tiles::DeviceTiles windows_;
  Dots32Windows launch_;
};

std::string why_not(const SddmmProblem& problem) {
  if (problem.precision != Precision::bf16) return "bf16 only";
  if (problem.heads > 1) return "one head only";
  if (head_bytes(problem) > 4096) return "rows too long for exact sums";
  return why_not_on_tiles(problem);
}

double predicted_us(const SddmmProblem& problem) {
  return 10 + 1e-6 * static_cast<double>(problem.graph.num_edges() * problem.features);
}

std::unique_ptr<const PreparedSddmm> prepare(const SddmmProblem& problem) {
  return std::make_unique<CudaDots32>(problem);
}

}  // namespace

void append_cuda_dots_32_kernels(std::vector<SddmmKernel>& table) {
  KernelInfo info = {"sddmm/cuda/windows_32", "32 rows on mma.sync", "sddmm", DeviceKind::cuda};
  info.strict = info.repeated_edges = false;
  table.push_back({std::move(info), why_not, predicted_us, prepare});
}

}  // namespace tessera::ops
