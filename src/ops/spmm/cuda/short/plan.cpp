// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/launch.hpp"

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
#include "ops/spmm/cuda/short/cost.hpp"
#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

constexpr std::array<ShortKey, 4> short_keys = {{{Precision::bf16, false},
                                                 {Precision::bf16, true},
                                                 {Precision::fp16, false},
                                                 {Precision::fp16, true}}};

const ShortFunction& short_function(const SpmmProblem& problem) {
  const ShortKey key = {problem.precision, !problem.is_plain()};
  const auto kernels =
      kernels_of<short_keys>(key, []<ShortKey k>() { return ShortKernels<k>::all(); });
  const auto width =
      std::lower_bound(short_widths.begin(), short_widths.end() - 1, problem.features);
  return kernels[static_cast<std::size_t>(width - short_widths.begin())];
}

/// Sums over windows of A, or of A^T in the backward pass, with rows on 16-byte boundaries.
class CudaShort final : public PreparedSpmm {
 public:
  explicit CudaShort(const SpmmProblem& problem)
      : problem_(problem),
        function_(short_function(problem)),
        tiles_(tiles::device_tiles(problem.graph, {short_height, tile_side(problem.pass), 1},
                                   problem.place())) {
    const Place place = problem.place();
    row_scale_ = cuda::array_in(scales_of_rows(problem), place);
    const std::int64_t chunks = (problem.features + function_.width - 1) / function_.width;
    const auto warps = static_cast<int>(function_.resident_warps() / chunks);
    const tiles::PieceSchedule schedule =
        tiles::make_pieces(tiles_->host, {std::max(1, warps), short_min_cut_steps});
    pieces_ = cuda::to_device(std::span<const tiles::Piece>(schedule.pieces), place);
    worker_offsets_ =
        cuda::to_device(std::span<const std::int32_t>(schedule.worker_offsets), place);
    cut_windows_ = cuda::to_device(std::span<const tiles::CutWindow>(schedule.cut_windows), place);
    num_slots_ = schedule.num_slots;
    slots_ = workspace_.add<float>(
        checked_area(std::int64_t{num_slots_} * short_height, chunks * function_.width));
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    ShortLaunch launch;
    launch.work.pieces = pieces_.data();
    launch.work.worker_offsets = worker_offsets_.data();
    launch.work.num_workers = static_cast<std::int32_t>(worker_offsets_.size() - 1);
    launch.matrix.columns = tiles_->columns.data();
    launch.matrix.words = tiles_->words.data();
    launch.features.x = call.x.data;
    launch.features.x_row_bytes = static_cast<std::uint32_t>(stride_bytes(call.x));
    launch.features.y = call.y.data;
    launch.features.y_stride = call.y.stride;
    launch.matrix.num_rows = tiles_->host.num_rows;
    launch.features.count = static_cast<std::int32_t>(problem_.features);
    launch.epilogue.row_scale = row_scale_.data();
    set_epilogue(problem_, call, launch.epilogue);
    launch.work.slots = slots_.in(workspace);
    launch.work.num_slots = num_slots_;
    launch.work.cut_windows = cut_windows_.data();
    launch.work.num_cut_windows = static_cast<std::int32_t>(cut_windows_.size());
    function_.launch(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  SpmmProblem problem_;
  const ShortFunction& function_;
  std::shared_ptr<const tiles::DeviceTiles> tiles_;
  SharedArray<float> row_scale_;
  Buffer<tiles::Piece> pieces_;
  Buffer<std::int32_t> worker_offsets_;
  Buffer<tiles::CutWindow> cut_windows_;
  std::int32_t num_slots_ = 0;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
};

}  // namespace

void append_cuda_short_kernels(std::vector<SpmmKernel>& table) {
  SpmmKernel kernel;
  kernel.info.name = "spmm/cuda/short_8";
  kernel.info.description =
      "windows of 8 rows on mma.sync, rows of X gathered from memory to registers; 16-bit features";
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.strict = false;
  kernel.info.exact_nonfinite = false;
  kernel.info.repeated_edges = false;
  kernel.why_not = why_not_half_pattern;
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predict_short_us(problem, device_traits(problem.device));
  };
  kernel.prepare = [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<CudaShort>(problem);
  };
  table.push_back(std::move(kernel));
}

}  // namespace tessera::ops
