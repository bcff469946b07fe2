// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/array.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/cuda/half_patterns.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/nm/cost.hpp"
#include "ops/spmm/cuda/nm/launch.hpp"
#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/cuda/device_quads.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<NmKey, 4> nm_keys = {{{Precision::bf16, false},
                                           {Precision::bf16, true},
                                           {Precision::fp16, false},
                                           {Precision::fp16, true}}};

const NmFunction& nm_function(const SpmmProblem& problem) {
  const NmKey key = {problem.precision, !problem.is_plain()};
  const auto kernels = kernels_of<nm_keys>(key, []<NmKey k>() { return NmKernels<k>::all(); });
  return kernels[problem.features <= nm_widths.front() ? 0 : 1];
}

/// Sums over 2:4 windows of A, or of A^T in the backward pass, with rows on 16-byte boundaries.
class CudaNm final : public PreparedSpmm {
 public:
  explicit CudaNm(const SpmmProblem& problem)
      : problem_(problem),
        function_(nm_function(problem)),
        quads_(tiles::device_quads(problem.graph, nm_height, tile_side(problem.pass),
                                   problem.place())) {
    const Place place = problem.place();
    row_scale_ = cuda::array_in(scales_of_rows(problem), place);
    const std::int64_t chunks = (problem.features + function_.width - 1) / function_.width;
    const auto warps = static_cast<int>(function_.resident_warps() / chunks);
    const tiles::PieceSchedule schedule =
        tiles::make_pieces({.num_rows = quads_->host.num_rows,
                            .height = nm_height,
                            .steps_per_tile = 2,
                            .step_offsets = quads_->host.step_offsets.span(),
                            .tile_offsets = quads_->host.tile_offsets.span()},
                           {std::max(1, warps), nm_min_cut_steps});
    pieces_ = cuda::to_device(std::span<const tiles::Piece>(schedule.pieces), place);
    worker_offsets_ =
        cuda::to_device(std::span<const std::int32_t>(schedule.worker_offsets), place);
    cut_windows_ = cuda::to_device(std::span<const tiles::CutWindow>(schedule.cut_windows), place);
    num_slots_ = schedule.num_slots;
    slots_ = workspace_.add<float>(
        checked_area(std::int64_t{num_slots_} * nm_height, chunks * function_.width));
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    NmLaunch launch;
    launch.work.pieces = pieces_.data();
    launch.work.worker_offsets = worker_offsets_.data();
    launch.work.num_workers = static_cast<std::int32_t>(worker_offsets_.size() - 1);
    launch.work.slots = slots_.in(workspace);
    launch.work.num_slots = num_slots_;
    launch.work.cut_windows = cut_windows_.data();
    launch.work.num_cut_windows = static_cast<std::int32_t>(cut_windows_.size());
    launch.matrix.num_rows = quads_->host.num_rows;
    launch.matrix.columns = quads_->columns.data();
    launch.matrix.words = quads_->words.data();
    launch.features.x = call.x.data;
    launch.features.x_row_bytes = static_cast<std::uint32_t>(stride_bytes(call.x));
    launch.features.y = call.y.data;
    launch.features.y_stride = call.y.stride;
    launch.features.count = static_cast<std::int32_t>(problem_.features);
    launch.epilogue.row_scale = row_scale_.data();
    set_epilogue(problem_, call, launch.epilogue);
    function_.launch(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  SpmmProblem problem_;
  const NmFunction& function_;
  std::shared_ptr<const tiles::DeviceQuads> quads_;
  SharedArray<float> row_scale_;
  Buffer<tiles::Piece> pieces_;
  Buffer<std::int32_t> worker_offsets_;
  Buffer<tiles::CutWindow> cut_windows_;
  std::int32_t num_slots_ = 0;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
};

}  // namespace

void append_cuda_nm_kernels(std::vector<SpmmKernel>& table) {
  SpmmKernel kernel;
  kernel.info.name = "spmm/cuda/nm_16";
  kernel.info.description =
      "windows of 16 rows on sparse tensor cores (mma.sp), columns in an order in which every row "
      "is "
      "2:4; 16-bit features";
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.strict = false;
  kernel.info.exact_nonfinite = false;
  kernel.info.repeated_edges = false;
  kernel.why_not = why_not_half_pattern;
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predict_nm_us(problem, device_traits(problem.device));
  };
  kernel.prepare = [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<CudaNm>(problem);
  };
  table.push_back(std::move(kernel));
}

}  // namespace tessera::ops
