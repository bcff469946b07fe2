// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/launch.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "cuda/wgmma_device.hpp"
#include "graph/access.hpp"
#include "graph/degrees.hpp"
#include "graph/weight_sizes.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/rows/scales.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/tall/cost.hpp"
#include "ops/spmm/cuda/tall/policy.hpp"
#include "ops/spmm/cuda/weights.hpp"
#include "ops/spmm/parts.hpp"
#include "ops/windows/panels.hpp"
#include "ops/windows/rest_rows.hpp"
#include "ops/windows/values.hpp"
#include "tiles/cuda/device_quads.hpp"
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/cuda/value_layout.hpp"
#include "tiles/pieces.hpp"

namespace tessera::ops {
namespace {

constexpr auto tall_keys = collect_keys<TallKey>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const int height : {64, 128, 256}) {
      for (int flags = 0; flags < 128; ++flags) {
        const auto flag = [&](int bit) { return (flags >> bit & 1) != 0; };
        const TallKey key = {precision, height,  flag(0), flag(1), flag(2),
                             flag(3),   flag(4), flag(5), flag(6)};
        if (is_compiled(key)) add(key);
      }
    }
  }
});

/// How many edges each row of a mean has, at least 1.
std::vector<float> row_divisors(const SpmmProblem& problem) {
  if (!problem.divides()) return {};
  std::vector<float> divisors(static_cast<std::size_t>(problem.graph.num_rows()));
  for (std::size_t row = 0; row < divisors.size(); ++row) {
    const EdgeOffset degree = problem.graph.degree(static_cast<VertexId>(row));
    divisors[row] = static_cast<float>(std::max<EdgeOffset>(1, degree));
  }
  return divisors;
}

/// Steps whose sums are left to the matrix unit. It cuts off what it adds up: of numbers of one
/// sign about 4e-8 of the sum for each product of matrices, less where features have few bits. So
/// many steps keep the error below 1e-5; kernels with three planes add stages up themselves.
int stretch_steps(const TallPolicy& policy, Precision precision, bool scaled) {
  const bool half = bytes_per_element(precision) == 2;
  if (policy.planes == 3) return 0;
  if (policy.valued) return half ? 96 : 32;
  return half && scaled ? 96 : 256;
}

/// Values that come with a run are stored as features are, so that 16-bit ones are one number; but
/// their products with scales may be too large for fp16.
bool packs_at_run(const SpmmProblem& problem) {
  return problem.edge_values_at_run &&
         (problem.precision != Precision::fp16 || !has_column_scales(problem));
}

/// The windows of a graph on the GPU, with the bits of all columns or with columns in quads.
struct TallWindows {
  std::shared_ptr<const void> memory;
  tiles::WindowSteps steps;
  std::span<const VertexId> columns;
  const std::uint32_t* words = nullptr;
  std::shared_ptr<const cuda::DeviceRows> rest;  ///< edges that are not in windows
};

TallWindows tall_windows(const SpmmProblem& problem, const TallPolicy& policy,
                         const RowOrder* order) {
  const tiles::Side side = order != nullptr ? tiles::Side::forward : tile_side(problem.pass);
  const Graph& graph = order != nullptr ? order->graph : problem.graph;
  const auto windows = [&](const auto& encoded, std::span<const EdgeOffset> steps) -> TallWindows {
    return {encoded,
            {.num_rows = encoded->host.num_rows,
             .height = policy.height,
             .step_offsets = steps,
             .tile_offsets = encoded->host.tile_offsets.span()},
            encoded->columns.span(),
            encoded->words.data(),
            encoded->rest};
  };
  const tiles::TileOptions options = {policy.height, side, policy.min_uses};
  if (policy.quads) {
    const auto quads = tiles::device_quads(graph, options, problem.place());
    return windows(quads, quads->half_step_offsets.span());
  }
  const auto tiled = tiles::device_tiles(graph, options, problem.place());
  return windows(tiled, tiled->host.step_offsets.span());
}

/// Sums over windows of A, or of A^T in the backward pass. A run that brings values of edges needs
/// a policy for them.
class CudaTall final : public PreparedWindows {
 public:
  CudaTall(const SpmmProblem& problem, const TallPolicy& policy, const SomeWindows& some = {},
           const TallKernelShape* kernel = nullptr)
      : problem_(problem),
        leads_(some.leads),
        windows_(tall_windows(problem, policy, some.order.get())) {
    if (some.order != nullptr) {
      row_map_ = cuda::to_device(some.order->rows.span(), problem.place());
    }
    const Place place = problem.place();
    const Graph& graph = problem.graph;
    const PlacedArray<float> scales = column_scales(problem);
    if (windows_.rest != nullptr) col_scale_ = cuda::array_in(scales, place);
    if (policy.valued) {
      prepare_values();
    } else if (!scales.empty()) {
      const float factor = scale_factor(weight_sizes(graph, scales), problem.precision);
      scales_ = pack_scales(windows_.columns, cuda::array_in(scales, place), factor,
                            problem.precision, place);
      if (is_16_bit()) unit_ = 1 / factor;  // multiplied in the matrix unit
    }
    row_scale_ = cuda::array_in(row_scales(problem), place);
    row_divisor_ = cuda::to_device(row_divisors(problem), place);
    const int stretch = stretch_steps(policy, problem.precision, !scales.empty());
    if (kernel != nullptr) {
      add_part(nullptr, *kernel, 0, problem.features, policy, some, stretch);
    } else {
      add_own_parts(policy, some, stretch);
    }
    if (!fills_units(problem.features, problem.precision)) {
      x_units_ = workspace_.add<std::byte>(bytes_of_units(problem));
    }
    if (windows_.rest != nullptr) prepare_rest();
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (problem_.features == 0) return;
    check_reach(call.y, "y");
    SpmmCall gathered = call;
    if (x_units_.size > 0) gathered.x = copy_to_units(call.x, x_units_.in(workspace), stream);
    TallLaunch launch = this->launch(gathered, workspace);
    if (layout_ != nullptr) set_values(call.edge_values, stream, workspace, launch);
    if (windows_.rest != nullptr) {
      launch.epilogue.rest = rest_sums_.in(workspace);
      launch.epilogue.rest_stride = padded_features_;
      launch.matrix.rest_offsets = windows_.rest->offsets();
      sum_rest(gathered.x, stream, workspace);
    }
    for (const Part& part : parts_) {
      set_part(part, workspace, launch);
      part.function->launch(launch, stream);
    }
  }

  TallLaunch launch(const SpmmCall& call, const WorkspaceView& workspace) const override {
    check_reach(call.x, "x");
    TallLaunch launch;
    if (!parts_.empty()) set_part(parts_.front(), workspace, launch);
    launch.matrix.columns = windows_.columns.data();
    launch.matrix.words = windows_.words;
    launch.matrix.scales = scales_.data();
    set_features(problem_, call, launch.features);
    if (layout_ == nullptr) launch.epilogue.unit = unit_;
    launch.epilogue.row_scale = row_scale_.data();
    launch.epilogue.row_divisor = row_divisor_.data();
    launch.work.row_map = row_map_.data();
    set_epilogue(problem_, call, launch.epilogue);
    return launch;
  }

 private:
  /// Some of the features: the kernel that takes them, and which block takes what.
  struct Part {
    const TallFunction* function = nullptr;  ///< null: the caller's own
    TallPanels panels;
    std::int32_t stage_units = 0;
    Buffer<tiles::Stage> stages;
    Buffer<tiles::StageValues> stage_values;
    Buffer<std::int32_t> worker_offsets;
    Buffer<tiles::CutWindow> slot_windows;
    std::int32_t num_slots = 0;
    std::int64_t first_counter = 0;
    WorkspacePart<float> slots;
    WorkspacePart<float> stretch_sums;
  };

  /// Chooses the kernels that store sums.
  void add_own_parts(const TallPolicy& policy, const SomeWindows& some, int stretch) {
    TallKey key;
    key.precision = stored_as(problem_.precision);
    key.height = policy.height;
    key.strict = policy.planes == 3;
    key.scaled = is_16_bit() && !scales_.empty();
    key.valued = policy.valued;
    key.aligned = fills_units(problem_.features, problem_.precision);
    key.epilogue = !problem_.is_plain();
    key.warps = policy.warps;
    key.quads = policy.quads;
    const auto kernels = kernels_of<tall_keys, TallKernels>(key);
    const std::int64_t wide =
        features_of_widest(problem_.features, kernels.back().width, problem_.precision);
    for (const auto& [begin, end] : {std::pair{std::int64_t{0}, wide}, {wide, problem_.features}}) {
      if (begin == end) continue;
      const TallFunction& function = narrowest(kernels, &TallFunction::width, end - begin);
      const std::int32_t units =
          layout_ == nullptr
              ? 0
              : tiles::most_stage_units(layout_->unit_offsets.span(), function.max_steps);
      add_part(&function, {function.width, function.max_steps, function.resident_blocks(units)},
               begin, end, policy, some, stretch);
      parts_.back().stage_units = units;
    }
  }

  void add_part(const TallFunction* function, const TallKernelShape& shape, std::int64_t begin,
                std::int64_t end, const TallPolicy& policy, const SomeWindows& some, int stretch) {
    const Place place = problem_.place();
    const TallPanels panels(begin, end, shape.width, problem_.precision);
    const std::int64_t width = panels.count * shape.width;
    padded_features_ = std::max(padded_features_, begin + width);
    const int workers =
        shape.resident_blocks / static_cast<int>(std::max<std::int64_t>(1, panels.count));
    const tiles::PieceSchedule schedule =
        tiles::make_filled_pieces(windows_.steps, {.workers = std::max(1, workers),
                                                   .min_cut_steps = policy.min_cut_steps,
                                                   .taken = some.taken});
    const tiles::StageLists lists = tiles::make_stages(schedule, shape.max_steps, stretch);
    Part part;
    part.function = function;
    part.panels = panels;
    part.stages = cuda::to_device(lists.stages, place);
    if (layout_ != nullptr) {
      const auto of_stages = tiles::stage_values(lists, layout_->unit_offsets.span());
      part.stage_values = cuda::to_device(of_stages, place);
    }
    part.worker_offsets = cuda::to_device(lists.offsets, place);
    part.slot_windows = cuda::to_device(schedule.slot_windows(), place);
    part.num_slots = schedule.num_slots;
    part.slots = workspace_.add<float>(
        checked_area(std::int64_t{schedule.num_slots} * policy.height, width));
    const bool has_stretches = std::any_of(
        lists.stages.begin(), lists.stages.end(),
        [](const tiles::Stage& stage) { return stage.end == tiles::StageEnd::stretch; });
    if (has_stretches) {
      part.stretch_sums = workspace_.add<float>(checked_area(
          (static_cast<std::int64_t>(lists.offsets.size()) - 1) * policy.height, width));
    }
    part.first_counter = num_counters_;
    num_counters_ += std::int64_t{schedule.num_slots} * panels.count;
    workspace_.add_counters(num_counters_ - part.first_counter);
    parts_.push_back(std::move(part));
  }

  /// Parts of a run overlap each other: they write different features.
  void set_part(const Part& part, const WorkspaceView& workspace, TallLaunch& launch) const {
    TallLaunch::Work& work = launch.work;
    work.stages = part.stages.data();
    work.worker_offsets = part.worker_offsets.data();
    work.num_workers = static_cast<std::int32_t>(part.worker_offsets.size() - 1);
    work.slots = part.slots.in(workspace);
    work.arrivals = workspace.counters + part.first_counter;
    work.slot_windows = part.slot_windows.data();
    work.num_slots = part.num_slots;
    work.stretch_sums = part.stretch_sums.in(workspace);
    work.leads = leads_ || &part != &parts_.back();
    work.follows = &part != &parts_.front();
    launch.matrix.stage_values = part.stage_values.data();
    launch.matrix.stage_units = part.stage_units;
    launch.features.begin = part.panels.begin;
    launch.features.end = part.panels.end;
    launch.features.panel_features = part.panels.features;
  }

  void prepare_values() {
    const Place place = problem_.place();
    const Graph& graph = problem_.graph;
    layout_ =
        tiles::device_value_layout(graph, windows_.steps.height, tile_side(problem_.pass), place);
    PackedWeights packed = pack_weights(problem_, layout_->edges.span(), graph.has_values());
    values_ = std::move(packed.values);
    unit_ = packed.unit;
    if (!packs_at_run(problem_)) return;
    edge_scales_ = std::move(packed.edge_scales);
    run_values_ = workspace_.add<std::uint32_t>(layout_->edges.size());
  }

  /// The graph's own values are ready; those of the run have to be put in order.
  void set_values(const ConstOperand& edge_values, Stream stream, const WorkspaceView& workspace,
                  TallLaunch& launch) const {
    launch.matrix.starts = layout_->starts.data();
    if (edge_values.absent()) {
      launch.matrix.values = values_.data();
      launch.epilogue.unit = unit_;
      return;
    }
    const ValueSource source{edge_values.data, problem_.precision, edge_values.stride,
                             edge_scales_.data()};
    pack_values(layout_->edges.span(), source, problem_.precision, run_values_.in(workspace),
                stream);
    launch.matrix.values = run_values_.in(workspace);
  }

  void prepare_rest() {
    rest_sums_ = workspace_.add<float>(checked_area(windows_.steps.num_rows, padded_features_));
    rest_width_ = rest_width(problem_.features, problem_.num_sources(),
                             static_cast<int>(bytes_per_element(problem_.precision)),
                             static_cast<double>(device_traits(problem_.device).l2_bytes));
    const auto degrees =
        problem_.is_forward() ? row_degrees(problem_.graph) : column_degrees(problem_.graph);
    rest_has_long_rows_ = degrees->longest() > longest_rest_row;
    rest_blocks_ =
        rest_function(problem_.precision, rest_width_).resident_blocks(!col_scale_.empty());
  }

  void sum_rest(const ConstOperand& x, Stream stream, const WorkspaceView& workspace) const {
    RestLaunch launch;
    launch.num_rows = windows_.rest->num_rows;
    launch.offsets = windows_.rest->offsets();
    launch.indices = windows_.rest->indices.data();
    launch.col_scale = col_scale_.data();
    launch.x = x.data;
    launch.x_stride = x.stride;
    launch.features = problem_.features;
    launch.sums = rest_sums_.in(workspace);
    launch.sums_stride = padded_features_;
    launch.has_long_rows = rest_has_long_rows_;
    launch.num_blocks = rest_blocks_;
    rest_function(problem_.precision, rest_width_).launch(launch, stream);
  }

  bool is_16_bit() const { return bytes_per_element(problem_.precision) == 2; }

  SpmmProblem problem_;
  bool leads_;
  TallWindows windows_;
  Buffer<VertexId> row_map_;  ///< empty: windows have the rows of the problem in their order
  Buffer<std::uint32_t> scales_;
  std::shared_ptr<const tiles::DeviceValueLayout> layout_;  ///< null: no values
  Buffer<std::uint32_t> values_;                            ///< of the graph
  Buffer<float> edge_scales_;
  WorkspacePart<std::uint32_t> run_values_;  ///< of a run
  WorkspacePart<std::byte> x_units_;         ///< a copy of X, where its rows fill no whole units
  float unit_ = 1;
  SharedArray<float> row_scale_;
  Buffer<float> row_divisor_;
  SharedArray<float> col_scale_;  ///< for the rest
  WorkspacePart<float> rest_sums_;
  std::int64_t rest_width_ = 0;
  int rest_blocks_ = 0;
  bool rest_has_long_rows_ = false;
  std::vector<Part> parts_;
  std::int64_t padded_features_ = 0;  ///< what kernels compute of a row, be it more than there is
  std::int64_t num_counters_ = 0;
};

/// Columns in quads take no weights in the matrix unit.
std::string why_not_quads(const SpmmProblem& problem) {
  if (bytes_per_element(problem.precision) == 2 && has_column_scales(problem)) {
    return "columns without scales only";
  }
  if (problem.features == 0) return "no features";
  return problem.graph.num_edges() == 0 ? "no edges" : "";
}

}  // namespace

std::string why_not_tall(const SpmmProblem& problem, const TallPolicy& policy) {
  const bool half = problem.precision == Precision::bf16 || problem.precision == Precision::fp16;
  if (problem.occasional) return "windows of its own, for occasional runs";
  if (has_winners(problem.reduction)) return "sums and means only";
  if (problem.heads > 1) return "one head only";
  if (policy.valued) {
    if (std::string reason = why_not_values(problem); !reason.empty()) return reason;
  } else if (problem.graph.has_values() || problem.edge_values_expected) {
    return "a pattern without values only";
  }
  if (problem.edge_features) return "features of edges, not of vertices";
  const bool whole = fills_units(problem.features, problem.precision);
  // Rows that fill no whole units are copied, wherever they begin.
  if (whole && !problem.aligned) return "rows on 16-byte boundaries only";
  if (!problem.is_plain()) {
    if (policy.valued || policy.planes == 3) return "an epilogue needs two planes and no values";
    if (!whole && policy.warps) return "an epilogue needs rows of features that fill 16 bytes";
  }
  if (problem.features > max_features_of_rows) return "too many features";
  if (half && policy.planes != 2) return "16-bit features are exact as they are";
  if (!policy.warps && !cuda::has_wgmma(problem.device)) {
    return "needs a GPU with wgmma (compute capability 9.0)";
  }
  if (policy.valued) return {};
  if (policy.quads) {
    if (std::string reason = why_not_quads(problem); !reason.empty()) return reason;
  }
  const PlacedArray<float> scales = column_scales(problem);
  if (scales.empty()) return {};
  return why_not_scales(weight_sizes(problem.graph, scales), problem.precision);
}

std::unique_ptr<const PreparedSpmm> prepare_some_windows(const SpmmProblem& problem,
                                                         const TallPolicy& policy,
                                                         const SomeWindows& some) {
  return std::make_unique<CudaTall>(problem, policy, some);
}

std::unique_ptr<const PreparedWindows> prepare_windows(const SpmmProblem& problem,
                                                       const TallPolicy& policy,
                                                       const TallKernelShape& kernel) {
  return std::make_unique<CudaTall>(problem, policy, SomeWindows{}, &kernel);
}

namespace {

KernelInfo info_of(const TallPolicy& policy, const char* order, const char* description) {
  KernelInfo info = windows_info(
      "spmm", std::string(order) + policy.name,
      fmt::format(
          "windows of {} rows on {}, rows of X gathered once for all of them, {} steps before a "
          "window is cut{}{}{}",
          policy.height,
          policy.quads
              ? "sparse tensor cores (wgmma), columns in an order in which every row is 2:4"
          : policy.warps ? "mma.sync"
                         : "wgmma",
          policy.min_cut_steps,
          policy.planes == 3 ? ", fp32 in three planes"
          : policy.valued    ? ", edges with values"
                             : "",
          policy.min_uses > 1
              ? fmt::format(", columns of fewer than {} rows on CUDA cores", policy.min_uses)
              : "",
          description));
  info.strict = policy.planes == 3;
  return info;
}

double predict_us(const SpmmProblem& problem, const TallPolicy& policy,
                  const DeviceTraits& traits) {
  return predict_tall_us(problem, policy, traits);
}

std::string why_not_ordered_tall(const SpmmProblem& problem, const TallPolicy& policy) {
  std::string reason = why_not_tall(problem, policy);
  return reason.empty() ? why_not_ordered(problem) : reason;
}

std::unique_ptr<const PreparedSpmm> prepare_ordered(const SpmmProblem& problem,
                                                    const TallPolicy& policy) {
  return prepare_some_windows(problem, policy, {.order = row_order(problem)});
}

}  // namespace

void append_cuda_tall_kernels(std::vector<SpmmKernel>& table) {
  append_kernels<why_not_tall, predict_us, prepared<CudaTall>, tall_policies, num_tall_kernels>(
      table, [](const TallPolicy& policy) { return info_of(policy, "", ""); });
  append_kernels<why_not_ordered_tall, predict_ordered_tall_us, prepare_ordered,
                 ordered_tall_policies>(table, [](const TallPolicy& policy) {
    return info_of(policy, "ordered_", ", rows in an order of its own");
  });
}

}  // namespace tessera::ops
