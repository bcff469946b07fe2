// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/windows.hpp"

#include <algorithm>
#include <utility>

#include "cuda/array.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/cuda/boundaries.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

/// Windows of up to this many steps stay whole: what pieces find costs traffic.
constexpr std::int64_t min_cut_steps = 32;

/// Forward on tiles. What these are not for goes by rows: the backward pass, and runs whose
/// operands lie on no boundaries of 16 bytes.
class CudaTallAttention final : public PreparedAttention {
 public:
  CudaTallAttention(const AttentionProblem& problem, const WindowKernel& kernel)
      : options_(problem.options),
        kernel_(kernel),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        tiles_(tiles::device_tiles(problem.graph, {tall_attention_height, tiles::Side::forward},
                                   options_.place())),
        by_rows_(prepare_rows_attention(problem)) {
    const Place place = options_.place();
    const int workers = std::max(1, kernel_.function.resident_blocks() / kernel_.num_slices);
    const tiles::PieceSchedule schedule =
        tiles::make_pieces(tiles_->host, {workers, min_cut_steps});
    pieces_ = cuda::to_device(std::span<const tiles::Piece>(schedule.pieces), place);
    worker_offsets_ =
        cuda::to_device(std::span<const std::int32_t>(schedule.worker_offsets), place);
    slot_windows_ =
        cuda::to_device(std::span<const tiles::CutWindow>(schedule.slot_windows()), place);
    num_slots_ = schedule.num_slots;
    slots_ = workspace_.add<float>(
        checked_area(std::int64_t{num_slots_} * tall_attention_height, slot_row()));
    workspace_.add_counters(std::int64_t{num_slots_} * kernel_.num_slices);
    workspace_.cover(by_rows_->workspace());
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    if (!on_tiles(inputs, outputs)) {
      by_rows_->run(inputs, outputs, stream, workspace);
      return;
    }
    TallAttentionLaunch launch;
    launch.pieces = pieces_.data();
    launch.worker_offsets = worker_offsets_.data();
    launch.num_workers = static_cast<std::int32_t>(worker_offsets_.size() - 1);
    launch.columns = tiles_->columns.data();
    launch.words = tiles_->words.data();
    launch.offsets = rows_->offsets();
    launch.heads = options_.heads;
    launch.target = inputs.target.data;
    launch.target_stride = inputs.target.stride;
    launch.source = inputs.source.data;
    launch.source_stride = inputs.source.stride;
    launch.value = inputs.value.data;
    launch.value_stride = inputs.value.stride;
    launch.slope = static_cast<float>(options_.negative_slope);
    launch.scale = static_cast<float>(inputs.scale);
    launch.output = outputs.output.data;
    launch.output_stride = outputs.output.stride;
    launch.log_sum = static_cast<float*>(outputs.log_sum.data);
    launch.log_sum_stride = outputs.log_sum.stride;
    launch.slots = slots_.in(workspace);
    launch.slot_row = slot_row();
    launch.arrivals = workspace.counters;
    launch.slot_windows = slot_windows_.data();
    launch.num_slots = num_slots_;
    kernel_.function.launch(launch, stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    by_rows_->run_backward(inputs, output, log_sum, grad_output, gradients, stream, workspace);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    by_rows_->weights(inputs, log_sum, weights, stream, workspace);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  const char* backward_kernel() const override { return "attention/cuda/rows"; }

 private:
  /// A row of a slot: features, then bases and sums of the heads of all slices.
  std::int64_t slot_row() const {
    return options_.features + 2 * std::int64_t{kernel_.num_slices} * kernel_.slice_heads;
  }

  bool on_tiles(const AttentionInputs& inputs, const AttentionOutputs& outputs) const {
    const auto fits = [&](const ConstOperand& operand) {
      return on_boundaries(operand, options_.features) && within_reach(operand);
    };
    if (!fits(inputs.value) || !fits(outputs.output)) return false;
    return options_.form == AttentionForm::gat || (fits(inputs.target) && fits(inputs.source));
  }

  AttentionOptions options_;
  WindowKernel kernel_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  std::shared_ptr<const tiles::DeviceTiles> tiles_;
  std::unique_ptr<const PreparedAttention> by_rows_;
  Buffer<tiles::Piece> pieces_;
  Buffer<std::int32_t> worker_offsets_;
  Buffer<tiles::CutWindow> slot_windows_;
  std::int32_t num_slots_ = 0;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
};

}  // namespace

std::optional<std::size_t> tall_width_index(const AttentionOptions& options) {
  const auto at =
      std::find(tall_head_widths.begin(), tall_head_widths.end(), options.features / options.heads);
  if (at == tall_head_widths.end()) return std::nullopt;
  return static_cast<std::size_t>(at - tall_head_widths.begin());
}

std::unique_ptr<const PreparedAttention> prepare_windows_attention(const AttentionProblem& problem,
                                                                   const WindowKernel& kernel) {
  return std::make_unique<CudaTallAttention>(problem, kernel);
}

}  // namespace tessera::ops
