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
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/rows/scales.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/short/cost.hpp"
#include "ops/spmm/cuda/weights.hpp"
#include "ops/windows/values.hpp"
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

struct ShortPolicy {
  ShortEncoding encoding;
  const char* name;
  const char* description;
};

constexpr std::array<ShortPolicy, 3> short_policies = {{
    {ShortEncoding::bits, "short_8",
     "windows of 8 rows on mma.sync, rows of X gathered from memory to registers; 16-bit features"},
    {ShortEncoding::quads, "nm_16",
     "windows of 16 rows on sparse tensor cores (mma.sp), columns in an order in which every row "
     "is 2:4; fp32 in two planes"},
    {ShortEncoding::valued_quads, "nm_16_valued",
     "the same with a value for every edge, scales of columns included; 16-bit features"},
}};

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
  const auto kernels = kernels_of<short_keys, ShortKernels>(key);
  const ShortFunction* chosen = &narrowest(kernels, &ShortFunction::width, problem.features);
  if (encoding == ShortEncoding::bits) return *chosen;
  const std::int64_t windows = problem.num_targets() / shape_of(encoding).height + 1;
  const auto warps = [&](const ShortFunction& kernel) {
    return windows * ((problem.features + kernel.width - 1) / kernel.width);
  };
  while (chosen != kernels.data() && warps(*chosen) < chosen->resident_warps()) --chosen;
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
  CudaShort(const SpmmProblem& problem, const ShortPolicy& policy)
      : problem_(problem),
        function_(short_function(problem, policy.encoding)),
        windows_(encode(problem, policy.encoding)) {
    const ShortEncoding encoding = policy.encoding;
    const Place place = problem.place();
    const ShortShape shape = shape_of(encoding);
    row_scale_ = problem.divides() ? cuda::array_in<float>(mean_scale<float>(problem.graph), place)
                                   : cuda::array_in(row_scales(problem), place);
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
    pieces_ = cuda::to_device(schedule.pieces, place);
    worker_offsets_ = cuda::to_device(schedule.worker_offsets, place);
    cut_windows_ = cuda::to_device(schedule.cut_windows, place);
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

 private:
  /// What edges are multiplied by, scales of columns included.
  void prepare_values() {
    const Place place = problem_.place();
    const Graph& graph = problem_.graph;
    const auto places =
        tiles::device_quad_values(graph, windows_.steps.height, tile_side(problem_.pass), place);
    PackedWeights packed = pack_weights(problem_, places->edges.span(), true);
    values_ = std::move(packed.values);
    unit_ = packed.unit;
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
  WorkspacePart<float> slots_;
  WorkspacePart<std::byte> x_units_;  ///< a copy of X
};

/// Why edges cannot be multiplied as an encoding has them; empty if they can.
std::string why_not_edges(const SpmmProblem& problem, bool valued, bool half) {
  const bool scaled = has_column_scales(problem);
  if (problem.graph.num_edges() == 0) return "no edges";
  if (valued) {
    if (!problem.graph.has_values() && !scaled) return "edges with weights only";
    return problem.edge_values_expected ? "values of the graph only" : why_not_weights(problem);
  }
  if (problem.graph.has_values() || problem.edge_values_expected) {
    return "a pattern without values only";
  }
  if (!scaled) return {};
  // A product with a scale does not fit into 16 bits. Planes of rows that are scaled first run out
  // of numbers where scales do.
  return half ? "columns without scales only"
              : why_not_scales(weight_sizes(problem.graph, column_scales(problem)),
                               problem.precision);
}

std::string why_not(const SpmmProblem& problem, const ShortPolicy& policy) {
  const bool half = bytes_per_element(problem.precision) == 2;
  const bool valued = policy.encoding == ShortEncoding::valued_quads;
  if (!half && policy.encoding != ShortEncoding::quads) return "16-bit features only";
  if (has_winners(problem.reduction)) return "sums and means only";
  if (problem.heads > 1) return "one head only";
  if (problem.edge_features) return "features of edges, not of vertices";
  if (problem.features == 0) return "no features";
  if (problem.features > max_features_of_rows) return "too many features";
  if (valued && !problem.is_plain()) return "no epilogue";
  if (!copies_x(problem)) {
    if (!problem.aligned) return "rows on 16-byte boundaries only";
  } else if (policy.encoding == ShortEncoding::bits ||
             (!half && problem.reduction == Reduction::mean)) {
    // Sums are multiplied by what one over the degree is in fp32, which is not always the
    // quotient's last digit: means of odd widths are left to kernels that divide.
    return "rows of features that do not fill 16 bytes";
  }
  return why_not_edges(problem, valued, half);
}

double predict_us(const SpmmProblem& problem, const ShortPolicy& policy,
                  const DeviceTraits& traits) {
  return predict_short_us(problem, policy.encoding, traits);
}

}  // namespace

void append_cuda_short_kernels(std::vector<SpmmKernel>& table) {
  append_kernels<why_not, predict_us, prepared<CudaShort>, short_policies>(
      table, [](const ShortPolicy& policy) {
        return windows_info("spmm", policy.name, policy.description);
      });
}

}  // namespace tessera::ops
