// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/launch.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/array.hpp"
#include "graph/access.hpp"
#include "graph/weight_sizes.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/cuda/half_patterns.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/short/cost.hpp"
#include "ops/spmm/cuda/tall/edge_scales.hpp"
#include "ops/spmm/cuda/tall/scales.hpp"
#include "ops/spmm/cuda/tall/values.hpp"
#include "ops/spmm/cuda/tall/weights.hpp"
#include "ops/spmm/cuda/tile_side.hpp"
#include "tiles/cuda/device_quads.hpp"
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/cuda/quad_values.hpp"

namespace tessera::ops {
namespace {

constexpr auto short_keys = collect_keys<ShortKey>([](auto add) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    for (const bool epilogue : {false, true}) add({ShortEncoding::bits, precision, epilogue});
  }
  for (const bool whole_rows : {false, true}) {
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      add({ShortEncoding::valued_quads, precision, false, whole_rows});
    }
    for (const Precision precision : kernel_precisions) {
      for (const bool epilogue : {false, true}) {
        add({ShortEncoding::quads, precision, epilogue, whole_rows});
      }
    }
  }
});

/// Columns of one piece. The matrix unit cuts off what it adds up (docs/design/tiles.md,
/// exactness), more where there are two products for one, and where values fill all bits of a sum.
constexpr std::int64_t most_columns(ShortEncoding encoding, Precision precision) {
  if (encoding == ShortEncoding::valued_quads) return 1536;
  return bytes_per_element(precision) == 4 ? 2048 : 4096;
}

/// The narrowest that takes all features, or the widest; of windows in quads a narrower one where
/// so few windows would leave processors idle.
const ShortFunction& short_function(const SpmmProblem& problem, ShortEncoding encoding) {
  const ShortKey key = {encoding, stored_as(problem.precision), !problem.is_plain(),
                        !copies_x(problem)};
  const auto kernels =
      kernels_of<short_keys>(key, []<ShortKey k>() { return ShortKernels<k>::all(); });
  const auto fits = [&](const ShortFunction& kernel) { return problem.features <= kernel.width; };
  auto chosen = std::find_if(kernels.begin(), kernels.end() - 1, fits);
  if (encoding == ShortEncoding::bits) return *chosen;
  const bool forward = problem.pass == SpmmPass::forward;
  const std::int64_t rows = forward ? problem.graph.num_rows() : problem.graph.num_cols();
  const std::int64_t windows = rows / shape_of(encoding).height + 1;
  const auto warps = [&](const ShortFunction& kernel) {
    return windows * ((problem.features + kernel.width - 1) / kernel.width);
  };
  while (chosen != kernels.begin() && warps(*chosen) < chosen->resident_warps()) --chosen;
  return *chosen;
}

/// The windows of a graph on the GPU, in either encoding.
struct EncodedWindows {
  std::shared_ptr<const void> memory;
  tiles::WindowSteps steps;
  const VertexId* columns = nullptr;
  const std::uint32_t* words = nullptr;
};

EncodedWindows encode(const SpmmProblem& problem, ShortEncoding encoding) {
  const int height = shape_of(encoding).height;
  const tiles::Side side = tile_side(problem.pass);
  const auto windows = [&](const auto& encoded, int steps_per_tile) -> EncodedWindows {
    return {encoded,
            {.num_rows = encoded->host.num_rows,
             .height = height,
             .steps_per_tile = steps_per_tile,
             .step_offsets = encoded->host.step_offsets.span(),
             .tile_offsets = encoded->host.tile_offsets.span()},
            encoded->columns.data(),
            encoded->words.data()};
  };
  if (encoding == ShortEncoding::bits) {
    return windows(tiles::device_tiles(problem.graph, {height, side, 1}, problem.place()), 4);
  }
  return windows(tiles::device_quads(problem.graph, {height, side}, problem.place()), 2);
}

/// Sums over windows of A, or of A^T in the backward pass, with rows on 16-byte boundaries.
class CudaShort final : public PreparedSpmm {
 public:
  CudaShort(const SpmmProblem& problem, ShortEncoding encoding)
      : problem_(problem),
        function_(short_function(problem, encoding)),
        windows_(encode(problem, encoding)) {
    const Place place = problem.place();
    const ShortShape shape = shape_of(encoding);
    row_scale_ = cuda::array_in(scales_of_rows(problem), place);
    const std::int64_t chunks = (problem.features + function_.width - 1) / function_.width;
    const auto warps = static_cast<int>(function_.resident_warps() / chunks);
    if (encoding == ShortEncoding::valued_quads) prepare_values();
    if (bytes_per_element(problem.precision) == 4) {
      column_scales_ = cuda::array_in(column_scales(problem), place);
    }
    const tiles::PieceOptions cut = {
        .workers = std::max(1, warps),
        .min_cut_steps = shape.min_cut_steps,
        .max_steps = most_columns(encoding, problem.precision) / shape.step_columns};
    const tiles::PieceSchedule schedule = tiles::make_pieces(windows_.steps, cut);
    pieces_ = cuda::to_device(std::span<const tiles::Piece>(schedule.pieces), place);
    worker_offsets_ =
        cuda::to_device(std::span<const std::int32_t>(schedule.worker_offsets), place);
    cut_windows_ = cuda::to_device(std::span<const tiles::CutWindow>(schedule.cut_windows), place);
    num_slots_ = schedule.num_slots;
    slots_ = workspace_.add<float>(
        checked_area(std::int64_t{num_slots_} * shape.height, chunks * function_.width));
    if (copies_x(problem)) x_units_ = workspace_.add<std::byte>(bytes_of_copy(problem));
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    ShortLaunch launch;
    launch.work.pieces = pieces_.data();
    launch.work.worker_offsets = worker_offsets_.data();
    launch.work.num_workers = static_cast<std::int32_t>(worker_offsets_.size() - 1);
    launch.matrix.columns = windows_.columns;
    launch.matrix.words = windows_.words;
    launch.matrix.values = values_.data();
    launch.matrix.column_scales = column_scales_.data();
    const ConstOperand x =
        copies_x(problem_) ? copy_to_units(call.x, x_units_.in(workspace), stream) : call.x;
    launch.features.x = x.data;
    launch.features.x_row_bytes = static_cast<std::uint32_t>(stride_bytes(x));
    launch.features.y = call.y.data;
    launch.features.y_stride = call.y.stride;
    launch.matrix.num_rows = windows_.steps.num_rows;
    launch.features.count = static_cast<std::int32_t>(problem_.features);
    launch.epilogue.row_scale = row_scale_.data();
    set_epilogue(problem_, call, launch.epilogue);
    launch.epilogue.unit = unit_;
    launch.work.slots = slots_.in(workspace);
    launch.work.num_slots = num_slots_;
    launch.work.cut_windows = cut_windows_.data();
    launch.work.num_cut_windows = static_cast<std::int32_t>(cut_windows_.size());
    function_.launch(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  /// What edges are multiplied by, scales of columns included.
  void prepare_values() {
    const Place place = problem_.place();
    const Graph& graph = problem_.graph;
    const auto places =
        tiles::device_quad_values(graph, windows_.steps.height, tile_side(problem_.pass), place);
    const auto rows = cuda::device_rows(graph, place);
    const Buffer<float> scales = edge_scales(*rows, cuda::array_in(column_scales(problem_), place),
                                             problem_.pass == SpmmPass::forward, place);
    const SharedArray<float> own = cuda::array_in(detail::GraphAccess::values(graph), place);
    ValueSource source{own.data()};
    source.edge_scales = scales.data();
    source.factor = value_factor(problem_);
    unit_ = 1 / source.factor;
    values_ = Buffer<std::uint32_t>(places->edges.size(), place);
    // Packing reads the places ahead of the kernels before it; clearing, which overlaps nothing,
    // keeps it apart from those that make them.
    cuda::clear(values_, place);
    pack_values(places->edges.span(), source, problem_.precision, values_.data(), place.stream);
  }

  SpmmProblem problem_;
  const ShortFunction& function_;
  EncodedWindows windows_;
  Buffer<std::uint32_t> values_;
  float unit_ = 1;
  SharedArray<float> column_scales_;  ///< of fp32 features
  SharedArray<float> row_scale_;
  Buffer<tiles::Piece> pieces_;
  Buffer<std::int32_t> worker_offsets_;
  Buffer<tiles::CutWindow> cut_windows_;
  std::int32_t num_slots_ = 0;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
  WorkspacePart<std::byte> x_units_;  ///< a copy of X
};

/// Why rows cannot be gathered and stored where they lie, or copied ahead; empty if they can. Sums
/// are multiplied by what one over the degree is in fp32, which is not always the quotient's last
/// digit: means of odd widths are left to kernels that divide.
std::string why_not_rows(const SpmmProblem& problem, ShortEncoding encoding) {
  if (!copies_x(problem)) return problem.aligned ? "" : "rows on 16-byte boundaries only";
  const bool full = bytes_per_element(problem.precision) == 4;
  if (encoding == ShortEncoding::bits || (full && problem.reduction == Reduction::mean)) {
    return "rows of features that do not fill 16 bytes";
  }
  return "";
}

/// Why 2:4 windows without values cannot solve a problem; empty if they can.
std::string why_not_quads(const SpmmProblem& problem) {
  if (bytes_per_element(problem.precision) != 4) return why_not_half_pattern(problem);
  if (problem.graph.has_values() || problem.edge_values_expected) {
    return "a pattern without values only";
  }
  if (std::string reason = why_not_from_registers(problem); !reason.empty()) return reason;
  // Planes of rows that are scaled first run out of numbers where scales do.
  const PlacedArray<float> scales = column_scales(problem);
  if (scales.empty()) return {};
  return why_not_scales(weight_sizes(problem.graph, scales), problem.precision);
}

/// Why windows with values cannot solve a problem; empty if they can.
std::string why_not_valued(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  const bool scaled = !column_scales(problem).empty();
  if (!graph.has_values() && !scaled) return "edges with weights only";
  if (problem.edge_values_expected) return "values of the graph only";
  if (!problem.is_plain()) return "no epilogue";
  if (std::string reason = why_not_half(problem); !reason.empty()) return reason;
  return why_not_weights(problem);
}

template <ShortEncoding encoding>
SpmmKernel short_kernel(const char* name, const char* description) {
  SpmmKernel kernel;
  kernel.info.name = name;
  kernel.info.description = description;
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.strict = false;
  kernel.info.exact_nonfinite = false;
  kernel.info.repeated_edges = false;
  kernel.why_not = [](const SpmmProblem& problem) {
    if (std::string reason = why_not_rows(problem, encoding); !reason.empty()) return reason;
    return encoding == ShortEncoding::bits    ? why_not_half_pattern(problem)
           : encoding == ShortEncoding::quads ? why_not_quads(problem)
                                              : why_not_valued(problem);
  };
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predict_short_us(problem, encoding, device_traits(problem.device));
  };
  kernel.prepare = [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<CudaShort>(problem, encoding);
  };
  return kernel;
}

}  // namespace

void append_cuda_short_kernels(std::vector<SpmmKernel>& table) {
  table.push_back(short_kernel<ShortEncoding::bits>(
      "spmm/cuda/short_8",
      "windows of 8 rows on mma.sync, rows of X gathered from memory to registers; 16-bit "
      "features"));
  table.push_back(short_kernel<ShortEncoding::quads>(
      "spmm/cuda/nm_16",
      "windows of 16 rows on sparse tensor cores (mma.sp), columns in an order in which every row "
      "is 2:4; fp32 in two planes"));
  table.push_back(short_kernel<ShortEncoding::valued_quads>(
      "spmm/cuda/nm_16_valued",
      "the same with a value for every edge, scales of columns included; 16-bit features"));
}

}  // namespace tessera::ops
