// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>

#include "cuda/array.hpp"
#include "cuda/wgmma_device.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/bits/cuda/windows/launch.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/kernel.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

constexpr int window_rows = 64;
constexpr std::int64_t min_cut_steps = 32;
/// Sums that are numbers of fp32 as they grow.
constexpr int small_sum_bits = 23;

class CudaByteWindows final : public CudaByteSums {
 public:
  CudaByteWindows(const BitProblem& problem, std::span<const ByteWindowsFunction> functions)
      : CudaByteSums(problem),
        function_(narrowest(functions, &ByteWindowsFunction::width, options_.cols)),
        small_sums_(problem.sum_bits() <= small_sum_bits),
        tiles_(tiles::device_tiles(problem.graph, {window_rows, tile_side(SpmmPass::forward), 1},
                                   options_.place())) {
    const Place place = options_.place();
    const auto chunks = static_cast<int>((options_.cols + function_.width - 1) / function_.width);
    const tiles::PieceSchedule schedule = tiles::make_pieces(
        tiles_->host,
        {std::max(1, function_.resident_blocks() / std::max(1, chunks)), min_cut_steps});
    const tiles::StageLists lists = tiles::make_stages(schedule, function_.max_steps);
    stages_ = cuda::to_device(std::span<const tiles::Stage>(lists.stages), place);
    worker_offsets_ = cuda::to_device(std::span<const std::int32_t>(lists.offsets), place);
    slot_windows_ =
        cuda::to_device(std::span<const tiles::CutWindow>(schedule.slot_windows()), place);
    num_slots_ = schedule.num_slots;
    slots_ = need_.add<std::int32_t>(
        checked_area(std::int64_t{num_slots_} * chunks, function_.slot_sums));
    need_.add_counters(std::int64_t{num_slots_} * chunks);
  }

 private:
  void sum(const BitInputs&, const OwnCodes& codes, const AggregateResult& out, Stream stream,
           const WorkspaceView& workspace) const override {
    ByteWindowsLaunch launch;
    TallLaunch::Work& work = launch.tall.work;
    work.stages = stages_.data();
    work.worker_offsets = worker_offsets_.data();
    work.num_workers = static_cast<std::int32_t>(worker_offsets_.size() - 1);
    work.slots = reinterpret_cast<float*>(slots_.in(workspace));
    work.arrivals = workspace.counters;
    work.slot_windows = slot_windows_.data();
    work.num_slots = num_slots_;
    launch.tall.matrix.columns = tiles_->columns.data();
    launch.tall.matrix.words = tiles_->words.data();
    launch.tall.features.x = codes.bytes;
    launch.tall.features.x_stride = codes.stride;
    launch.tall.features.count = options_.cols;
    launch.tall.features.end = options_.cols;
    launch.tall.features.panel_features = function_.width;
    launch.small_sums = small_sums_;
    launch.out = out;
    launch.out.plain = small_sums_ && is_plain(out.result);
    function_.launch(launch, stream);
  }

  const ByteWindowsFunction& function_;
  bool small_sums_;
  std::shared_ptr<const tiles::DeviceTiles> tiles_;
  Buffer<tiles::Stage> stages_;
  Buffer<std::int32_t> worker_offsets_;
  Buffer<tiles::CutWindow> slot_windows_;
  std::int32_t num_slots_ = 0;
  WorkspacePart<std::int32_t> slots_;
};

std::string why_not(const BitProblem& problem) {
  if (problem.options.rows == 0) return "no rows";
  return why_not_bytes(problem);
}

std::string why_not_wgmma(const BitProblem& problem) {
  if (!cuda::has_wgmma(problem.options.device)) {
    return "needs a GPU with wgmma (compute capability 9.0)";
  }
  return why_not(problem);
}

}  // namespace

void append_cuda_byte_windows(std::vector<BitKernel>& table) {
  table.push_back(cuda_kernel<BitKernel, why_not, predict_bit_windows_us, prepared<CudaByteWindows>,
                              byte_windows>(
      cuda_info("bit_aggregate", "windows",
                "windows of 64 rows, codes gathered once for all of them, products of bytes on "
                "tensor cores")));
  table.push_back(cuda_kernel<BitKernel, why_not_wgmma, predict_bit_tall_us,
                              prepared<CudaByteWindows>, tall_windows>(
      cuda_info("bit_aggregate", "tall",
                "windows of 64 rows, codes gathered once for all of them, products of bytes on "
                "wgmma")));
}

}  // namespace tessera::ops
