// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "cuda/wgmma_device.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/half_windows.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

constexpr int window_rows = 64;
constexpr std::int64_t min_cut_steps = 32;

const HalfWindowsFunction& function_for(std::int64_t cols) {
  const auto found = std::find_if(half_windows.begin(), half_windows.end() - 1,
                                  [&](const auto& function) { return cols <= function.width; });
  return *found;
}

class CudaHalfWindows final : public CudaBits {
 public:
  explicit CudaHalfWindows(const BitProblem& problem)
      : CudaBits(problem, finishes_in_registers(problem.options)),
        function_(function_for(options_.cols)),
        tiles_(tiles::device_tiles(problem.graph, {window_rows, tile_side(SpmmPass::forward), 1},
                                   options_.place())),
        codes_(need_.add<std::uint8_t>(
            options_.b_bytes ? 0 : checked_area(options_.depth, padded_bytes(options_.cols)))) {
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
    slots_ = need_.add<float>(checked_area(std::int64_t{num_slots_} * window_rows,
                                           std::int64_t{chunks} * function_.width));
    need_.add_counters(std::int64_t{num_slots_} * chunks);
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    if (options_.cols == 0) return;
    OwnCodes codes{inputs.b_bytes.data, nullptr, inputs.b_bytes.stride};
    if (!options_.b_bytes) {
      const BitRows from{inputs.b.words, inputs.b.plane_words(), inputs.b.words_per_row,
                         inputs.b.rows, inputs.b.bits};
      codes = {codes_.in(workspace), nullptr, padded_bytes(options_.cols)};
      spread_rows(from, codes.stride, codes_.in(workspace), stream);
    }
    TallLaunch launch;
    launch.work.stages = stages_.data();
    launch.work.worker_offsets = worker_offsets_.data();
    launch.work.num_workers = static_cast<std::int32_t>(worker_offsets_.size() - 1);
    launch.work.slots = slots_.in(workspace);
    launch.work.arrivals = workspace.counters;
    launch.work.slot_windows = slot_windows_.data();
    launch.work.num_slots = num_slots_;
    launch.matrix.columns = tiles_->columns.data();
    launch.matrix.words = tiles_->words.data();
    launch.features.x = codes.bytes;
    launch.features.x_stride = codes.stride;
    launch.features.count = options_.cols;
    AggregateResult out;
    out.rows = out.all_rows = options_.rows;
    out.cols = options_.cols;
    if (finishes_in_registers(options_)) {
      out.result = result(inputs, outputs);
      add_own(options_, codes, out.result.finish);
      if (options_.output == BitOutput::rows) out.all_rows = outputs.codes.padded_rows;
      return function_.launch(launch, out, stream);
    }
    const Sums sums = sums_in(outputs, workspace);
    out.result.kind = BitResultKind::sums;
    out.result.sums = sums.data;
    out.result.stride = sums.stride;
    function_.launch(launch, out, stream);
    finish(inputs, outputs, stream, workspace, codes);
  }

 private:
  const HalfWindowsFunction& function_;
  std::shared_ptr<const tiles::DeviceTiles> tiles_;
  WorkspacePart<std::uint8_t> codes_;
  Buffer<tiles::Stage> stages_;
  Buffer<std::int32_t> worker_offsets_;
  Buffer<tiles::CutWindow> slot_windows_;
  std::int32_t num_slots_ = 0;
  WorkspacePart<float> slots_;
};

std::string why_not(const BitProblem& problem) {
  if (!cuda::has_wgmma(problem.options.device)) {
    return "needs a GPU with wgmma (compute capability 9.0)";
  }
  if (problem.options.b_bits > 8) return "more than 8 bits";
  if (problem.options.rows == 0) return "no rows";
  if (problem.sum_bits() > 24) return "sums may take more than 24 bits";
  return why_not_on_gpu(problem);
}

}  // namespace

void append_cuda_half_windows(std::vector<BitKernel>& table) {
  table.push_back({{"bit_aggregate/cuda/windows_fp16",
                    "windows of 64 rows on wgmma, codes gathered once as bytes for all of them",
                    "bit_aggregate", DeviceKind::cuda, true},
                   why_not,
                   [](const BitProblem& problem) {
                     return 1.5 *
                            predict_bit_windows_us(problem, device_traits(problem.options.device));
                   },
                   [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
                     return std::make_unique<CudaHalfWindows>(problem);
                   }});
}

}  // namespace tessera::ops
