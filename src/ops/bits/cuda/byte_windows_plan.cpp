// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "cuda/wgmma_device.hpp"
#include "ops/bits/cuda/byte_windows.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

constexpr int window_rows = 64;
constexpr std::int64_t min_cut_steps = 32;
/// Sums that are numbers of fp32 as they grow.
constexpr int small_sum_bits = 23;

/// The narrowest that takes all columns at once, else the widest.
const ByteWindowsFunction& function_for(std::span<const ByteWindowsFunction> functions,
                                        std::int64_t cols) {
  const auto found = std::find_if(functions.begin(), functions.end() - 1,
                                  [&](const auto& function) { return cols <= function.width; });
  return *found;
}

class CudaByteWindows final : public CudaBits {
 public:
  CudaByteWindows(const BitProblem& problem, const ByteWindowsFunction& function)
      : CudaBits(problem, finishes_in_registers(problem.options)),
        function_(function),
        small_sums_(problem.sum_bits() <= small_sum_bits),
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
    slots_ = need_.add<std::int32_t>(
        checked_area(std::int64_t{num_slots_} * chunks, function_.slot_sums));
    need_.add_counters(std::int64_t{num_slots_} * chunks);
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    if (options_.cols == 0) return;
    const OwnCodes codes = bytes_of_b(inputs, codes_, stream, workspace);
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
    AggregateResult& out = launch.out;
    out.rows = out.all_rows = options_.rows;
    out.cols = options_.cols;
    if (finishes_in_registers(options_)) {
      out.result = result(inputs, outputs);
      add_own(options_, codes, out.result.finish);
      out.plain = small_sums_ && is_plain(out.result);
      if (options_.output == BitOutput::rows) out.all_rows = outputs.codes.padded_rows;
      return function_.launch(launch, stream);
    }
    const Sums sums = sums_in(outputs, workspace);
    out.result.kind = BitResultKind::sums;
    out.result.sums = sums.data;
    out.result.stride = sums.stride;
    function_.launch(launch, stream);
    finish(inputs, outputs, stream, workspace, codes);
  }

 private:
  const ByteWindowsFunction& function_;
  bool small_sums_;
  std::shared_ptr<const tiles::DeviceTiles> tiles_;
  WorkspacePart<std::uint8_t> codes_;
  Buffer<tiles::Stage> stages_;
  Buffer<std::int32_t> worker_offsets_;
  Buffer<tiles::CutWindow> slot_windows_;
  std::int32_t num_slots_ = 0;
  WorkspacePart<std::int32_t> slots_;
};

std::string why_not(const BitProblem& problem) {
  if (problem.options.b_bits > 8) return "more than 8 bits";
  if (problem.options.rows == 0) return "no rows";
  return why_not_on_gpu(problem);
}

std::string why_not_wgmma(const BitProblem& problem) {
  if (!cuda::has_wgmma(problem.options.device)) {
    return "needs a GPU with wgmma (compute capability 9.0)";
  }
  return why_not(problem);
}

template <const auto& functions, auto why_not_this, auto predict>
BitKernel kernel_of(const char* name, const char* description) {
  return {{name, description, "bit_aggregate", DeviceKind::cuda, true},
          why_not_this,
          [](const BitProblem& problem) {
            return predict(problem, device_traits(problem.options.device));
          },
          [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
            return std::make_unique<CudaByteWindows>(problem,
                                                     function_for(functions, problem.options.cols));
          }};
}

}  // namespace

void append_cuda_byte_windows(std::vector<BitKernel>& table) {
  table.push_back(kernel_of<byte_windows, why_not, predict_bit_windows_us>(
      "bit_aggregate/cuda/windows",
      "windows of 64 rows, codes gathered once for all of them, products of bytes on tensor "
      "cores"));
  table.push_back(kernel_of<tall_windows, why_not_wgmma, predict_bit_tall_us>(
      "bit_aggregate/cuda/tall",
      "windows of 64 rows, codes gathered once for all of them, products of bytes on wgmma"));
}

}  // namespace tessera::ops
