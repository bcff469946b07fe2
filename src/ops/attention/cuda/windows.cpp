// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/windows.hpp"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>

#include "cuda/array.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/total_sums.hpp"
#include "ops/cuda/boundaries.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

/// Windows of up to this many steps stay whole: what pieces find costs traffic.
constexpr std::int64_t min_cut_steps = 32;

/// Numbers that backward passes may leave the sizes of the largest of.
constexpr std::size_t num_largest = 2;

template <class Data, class AnyOperand>
void set(Data*& data, std::int64_t& stride, const AnyOperand& operand) {
  data = operand.data;
  stride = operand.stride;
}

/// Workers come to windows without edges last, so that whoever looks for the next tile need not
/// look at more than one piece (tile_walk.cuh).
void put_empty_last(tiles::PieceSchedule& schedule) {
  for (std::size_t worker = 0; worker + 1 < schedule.worker_offsets.size(); ++worker) {
    std::stable_partition(schedule.pieces.begin() + schedule.worker_offsets[worker],
                          schedule.pieces.begin() + schedule.worker_offsets[worker + 1],
                          [](const tiles::Piece& piece) { return piece.num_steps > 0; });
  }
}

/// The windows of one side of a graph, and who computes which.
struct Windows {
  std::shared_ptr<const tiles::DeviceTiles> tiles;
  Buffer<tiles::Piece> pieces;
  Buffer<std::int32_t> worker_offsets;
  Buffer<tiles::CutWindow> slot_windows;
  std::int32_t num_slots = 0;

  Windows() = default;
  Windows(const Graph& graph, const tiles::TileOptions& options, int workers, const Place& place)
      : tiles(tiles::device_tiles(graph, options, place)) {
    tiles::PieceSchedule schedule = tiles::make_pieces(tiles->host, {workers, min_cut_steps});
    put_empty_last(schedule);
    pieces = cuda::to_device(std::span<const tiles::Piece>(schedule.pieces), place);
    worker_offsets = cuda::to_device(std::span<const std::int32_t>(schedule.worker_offsets), place);
    slot_windows =
        cuda::to_device(std::span<const tiles::CutWindow>(schedule.slot_windows()), place);
    num_slots = schedule.num_slots;
  }

  /// The work and the matrix of a launch.
  WindowsLaunch launch(unsigned* counters) const {
    WindowsLaunch launch;
    launch.pieces = pieces.data();
    launch.worker_offsets = worker_offsets.data();
    launch.num_workers = num_workers();
    launch.num_rows = tiles->host.num_rows;
    launch.columns = tiles->columns.data();
    launch.words = tiles->words.data();
    launch.arrivals = counters;
    launch.slot_windows = slot_windows.data();
    launch.num_slots = num_slots;
    return launch;
  }
  int num_workers() const { return static_cast<int>(worker_offsets.size() - 1); }
  std::int64_t slot_rows() const { return std::int64_t{num_slots} * tiles->host.height; }
};

/// On tiles. What these are not for goes by rows: passes that the kernel does not have, and runs
/// whose operands lie on no boundaries of 16 bytes.
class CudaWindowsAttention final : public PreparedAttention {
 public:
  CudaWindowsAttention(const AttentionProblem& problem, const WindowKernel& kernel)
      : options_(problem.options),
        kernel_(kernel),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        row_side_(problem.graph, {kernel_.height, tiles::Side::forward},
                  workers_of(kernel_.function, kernel_.num_slices), options_.place()),
        by_rows_(prepare_rows_attention(problem)) {
    slots_ = workspace_.add<float>(checked_area(row_side_.slot_rows(), slot_row()));
    workspace_.add_counters(std::int64_t{row_side_.num_slots} * kernel_.num_slices);
    workspace_.cover(by_rows_->workspace());
    if (options_.backward && kernel_.gradient.by_rows.launch != nullptr)
      prepare_backward(problem.graph);
    if (options_.backward && kernel_.keeping != nullptr) prepare_keeping(problem.graph);
  }

  std::int64_t kept_numbers() const override {
    return keeping_side_.tiles == nullptr ? 0 : kept_features() + kept_weights();
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    run_keeping(inputs, outputs, nullptr, stream, workspace);
  }

  void run_keeping(const AttentionInputs& inputs, const AttentionOutputs& outputs, float* kept,
                   Stream stream, const WorkspaceView& workspace) const override {
    if (!fit({inputs.value, outputs.output}, {inputs.target, inputs.source})) {
      by_rows_->run(inputs, outputs, stream, workspace);
      if (kept != nullptr) forget_kept(kept, kept_numbers(), stream);
      return;
    }
    if (serves(kept)) {
      KeepingLaunch launch{forward_launch(inputs, outputs, keeping_side_, workspace),
                           kept_in(kept)};
      launch.slots = keeping_slots_.in(workspace);
      launch.slot_row = kept_slot_row(options_.features, options_.heads);
      kernel_.keeping->forward(launch, stream);
      return;
    }
    kernel_.function.launch(forward_launch(inputs, outputs, row_side_, workspace), stream);
    if (kept != nullptr) forget_kept(kept, kept_numbers(), stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    run_backward_kept(inputs, output, log_sum, nullptr, grad_output, gradients, stream, workspace);
  }

  void run_backward_kept(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                         const float* kept, ConstOperand grad_output,
                         const AttentionGradOutputs& gradients, Stream stream,
                         const WorkspaceView& workspace) const override {
    if (column_side_.tiles == nullptr ||
        !fit({inputs.value, output, grad_output, gradients.value},
             {inputs.target, inputs.source, gradients.target, gradients.source})) {
      by_rows_->run_backward(inputs, output, log_sum, grad_output, gradients, stream, workspace);
      return;
    }
    if (kernel_.finds_largest) {
      fill_zero(largest_.in(workspace), num_largest * sizeof(std::uint32_t), options_.device,
                stream);
    }
    sweep_rows(inputs, output, log_sum, kept, grad_output, gradients, stream, workspace);
    const bool of_vector = !gradients.vector.absent();
    if (gradients.source.absent() && gradients.value.absent() && !of_vector) return;
    WindowsLaunch launch = launch_of(inputs, column_side_, workspace);
    set(launch.target, launch.target_stride, inputs.source);
    set(launch.source, launch.source_stride, inputs.target);
    set(launch.value, launch.value_stride, grad_output);
    set(launch.own_values, launch.own_values_stride, inputs.value);
    launch.row_state = row_state_.in(workspace);
    if (kernel_.finds_largest) launch.largest = largest_.in(workspace);
    set(launch.score_gradient, launch.score_gradient_stride, gradients.source);
    set(launch.output, launch.output_stride, gradients.value);
    launch.slots = gradient_slots_.in(workspace);
    launch.slot_row = kernel_.column_slot;
    if (of_vector) {
      launch.vector_sums =
          vector_sums_.in(workspace) + num_warps(gradient_rows()) * options_.features;
    }
    kernel_.gradient.by_columns.launch(launch, stream);
    if (of_vector) {
      store_vector(vector_sums_.in(workspace), num_warps(gradient_rows()) + num_warps(column_side_),
                   gradients.vector, stream);
    }
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    by_rows_->weights(inputs, log_sum, weights, stream, workspace);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  const char* backward_kernel() const override {
    return column_side_.tiles == nullptr ? "attention/cuda/rows" : nullptr;
  }

 private:
  static int workers_of(const WindowsFunction& function, int num_slices) {
    return std::max(1, function.resident_blocks() / num_slices);
  }

  void prepare_keeping(const Graph& graph) {
    const int workers = std::max(1, kernel_.keeping->resident_blocks() / kernel_.num_slices);
    keeping_side_ =
        Windows(graph, {kernel_.height, tiles::Side::forward}, workers, options_.place());
    WorkspaceNeed need;
    keeping_slots_ = need.add<float>(
        checked_area(keeping_side_.slot_rows(), kept_slot_row(options_.features, options_.heads)));
    need.add_counters(std::int64_t{keeping_side_.num_slots} * kernel_.num_slices);
    workspace_.cover(need);
  }

  void prepare_backward(const Graph& graph) {
    const int slices = kernel_.gradient_slices;
    const int workers = workers_of(kernel_.gradient.by_rows, slices);
    // The sweep over rows takes the forward pass's pieces where as many blocks share them.
    if (workers != row_side_.num_workers()) {
      own_gradient_rows_ =
          Windows(graph, {kernel_.height, tiles::Side::forward}, workers, options_.place());
    }
    column_side_ = Windows(graph, {kernel_.height, tiles::Side::transposed},
                           workers_of(kernel_.gradient.by_columns, slices), options_.place());
    WorkspaceNeed need;
    if (options_.form == AttentionForm::dot) scale_sums_ = need.add<double>(num_scale_sums());
    if (options_.form == AttentionForm::gatv2) {
      vector_sums_ = need.add<float>(
          checked_area(num_warps(gradient_rows()) + num_warps(column_side_), options_.features));
    }
    row_state_ =
        need.add<float>(checked_area(graph.num_rows(), options_.heads * kernel_.state_numbers));
    if (kernel_.finds_largest) largest_ = need.add<std::uint32_t>(num_largest);
    gradient_slots_ =
        need.add<float>(std::max(checked_area(gradient_rows().slot_rows(), kernel_.row_slot),
                                 checked_area(column_side_.slot_rows(), kernel_.column_slot)));
    need.add_counters(std::int64_t{std::max(gradient_rows().num_slots, column_side_.num_slots)} *
                      slices);
    workspace_.cover(need);
  }

  const Windows& gradient_rows() const {
    return own_gradient_rows_.tiles != nullptr ? own_gradient_rows_ : row_side_;
  }

  void sweep_rows(const AttentionInputs& inputs, const ConstOperand& output,
                  const ConstOperand& log_sum, const float* kept, const ConstOperand& grad_output,
                  const AttentionGradOutputs& gradients, Stream stream,
                  const WorkspaceView& workspace) const {
    WindowsLaunch launch = launch_of(inputs, gradient_rows(), workspace);
    set(launch.target, launch.target_stride, inputs.target);
    set(launch.source, launch.source_stride, inputs.source);
    set(launch.value, launch.value_stride, inputs.value);
    set(launch.own_values, launch.own_values_stride, grad_output);
    set(launch.own_output, launch.own_output_stride, output);
    launch.log_sum = static_cast<float*>(const_cast<void*>(log_sum.data));
    launch.log_sum_stride = log_sum.stride;
    launch.row_state = row_state_.in(workspace);
    if (kernel_.finds_largest) launch.largest = largest_.in(workspace);
    set(launch.score_gradient, launch.score_gradient_stride, gradients.target);
    launch.slots = gradient_slots_.in(workspace);
    launch.slot_row = kernel_.row_slot;
    if (gradients.scale != nullptr) launch.scale_sums = scale_sums_.in(workspace);
    if (!gradients.vector.absent()) launch.vector_sums = vector_sums_.in(workspace);
    if (serves(kept)) {
      kernel_.keeping->find_states({launch, kept_in(const_cast<float*>(kept))}, stream);
      return;
    }
    kernel_.gradient.by_rows.launch(launch, stream);
    if (gradients.scale != nullptr) {
      store_scale(launch.scale_sums, num_scale_sums(), gradients.scale, stream);
    }
  }

  /// What the forward pass keeps: features in 16 bits, then weights in fp32.
  std::int64_t kept_features() const {
    return checked_area(row_side_.tiles->host.num_rows, options_.features / 2);
  }
  std::int64_t kept_weights() const {
    return checked_area(row_side_.tiles->host.num_rows, options_.heads);
  }
  KeptSums kept_in(float* kept) const { return {kept, kept + kept_features()}; }
  /// Whether it is wanted, and where features can be.
  static bool serves(const float* kept) {
    return kept != nullptr && reinterpret_cast<std::uintptr_t>(kept) % 16 == 0;
  }

  WindowsLaunch forward_launch(const AttentionInputs& inputs, const AttentionOutputs& outputs,
                               const Windows& windows, const WorkspaceView& workspace) const {
    WindowsLaunch launch = launch_of(inputs, windows, workspace);
    launch.offsets = rows_->offsets();
    set(launch.target, launch.target_stride, inputs.target);
    set(launch.source, launch.source_stride, inputs.source);
    set(launch.value, launch.value_stride, inputs.value);
    set(launch.output, launch.output_stride, outputs.output);
    launch.log_sum = static_cast<float*>(outputs.log_sum.data);
    launch.log_sum_stride = outputs.log_sum.stride;
    launch.slots = slots_.in(workspace);
    launch.slot_row = slot_row();
    return launch;
  }

  WindowsLaunch launch_of(const AttentionInputs& inputs, const Windows& windows,
                          const WorkspaceView& workspace) const {
    WindowsLaunch launch = windows.launch(workspace.counters);
    launch.heads = options_.heads;
    launch.vector = inputs.vector.data;
    launch.slope = static_cast<float>(options_.negative_slope);
    launch.scale = static_cast<float>(inputs.scale);
    return launch;
  }

  /// A row of a slot: features, then bases and sums of the heads of all slices.
  std::int64_t slot_row() const {
    return options_.features + 2 * std::int64_t{kernel_.num_slices} * kernel_.slice_heads;
  }
  /// One per warp of the sweep over rows.
  std::int64_t num_scale_sums() const {
    return num_warps(gradient_rows()) * kernel_.gradient_slices;
  }
  /// Of a slice.
  std::int64_t num_warps(const Windows& windows) const {
    return std::int64_t{windows.num_workers()} * kernel_.warps_per_worker;
  }

  /// Whether kernels can read and write these matrices, of which scores of GAT have no features.
  bool fit(std::initializer_list<ConstOperand> values,
           std::initializer_list<ConstOperand> scores) const {
    const auto fits = [&](const ConstOperand& operand) {
      return operand.absent() ||
             (on_boundaries(operand, options_.features) && within_reach(operand));
    };
    return std::all_of(values.begin(), values.end(), fits) &&
           (options_.form == AttentionForm::gat || std::all_of(scores.begin(), scores.end(), fits));
  }

  AttentionOptions options_;
  WindowKernel kernel_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  Windows row_side_;
  // Where the kernel has a backward pass that is wanted.
  Windows own_gradient_rows_;  ///< where the forward pass's pieces are not for it
  Windows column_side_;
  Windows keeping_side_;  ///< where a forward pass keeps sums for it
  std::unique_ptr<const PreparedAttention> by_rows_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
  WorkspacePart<float> keeping_slots_;
  WorkspacePart<double> scale_sums_;
  WorkspacePart<float> vector_sums_;  ///< of the warps of the sweep over rows, then of the other
  WorkspacePart<float> row_state_;
  WorkspacePart<std::uint32_t> largest_;
  WorkspacePart<float> gradient_slots_;
};

}  // namespace

std::unique_ptr<const PreparedAttention> prepare_windows_attention(const AttentionProblem& problem,
                                                                   const WindowKernel& kernel) {
  return std::make_unique<CudaWindowsAttention>(problem, kernel);
}

}  // namespace tessera::ops
