// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/lane_choice.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/device_traits.hpp"
#include "ops/cuda/boundaries.hpp"

namespace tessera::ops {
namespace {

/// Whether lanes should hold two vectors where they can. They compute fewer scores twice, but are
/// fewer: large graphs have enough of them. Measured in fp32 on seven graphs of 10^4 to 2.5 * 10^7
/// edges.
bool wants_two_vectors(const AttentionProblem& problem, AttentionSweep sweep) {
  const EdgeOffset edges = problem.graph.num_edges();
  if (sweep == AttentionSweep::backward) return edges >= 500'000;
  if (edges < 1'000'000) return false;
  const bool low_degree = edges < EdgeOffset{16} * problem.graph.num_rows();
  // In wide heads many lanes exchange what their scores are made of; dot products were not
  // measured.
  const AttentionOptions& options = problem.options;
  const bool wide = options.form != AttentionForm::dot && options.features / options.heads > 64;
  return options.form == AttentionForm::gat || wide || low_degree;
}

/// Whether they should hold four in the forward pass, where values are what scores are made of. By
/// count of instructions: 41 per edge of 128 features in place of 55 with two vectors.
bool wants_four_vectors(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  return options.form == AttentionForm::gatv2 && bytes_per_element(options.precision) == 4 &&
         options.features / options.heads >= 128 && problem.graph.num_edges() >= 1'000'000 &&
         problem.graph.num_edges() >= EdgeOffset{16} * problem.graph.num_rows();
}

/// How many neighbouring features a lane should load at most: 16 bytes, but 8 where a graph has so
/// few rows that a GPU has lanes to spare, so that each has less to do.
std::int64_t most_lane_features(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (bytes_per_element(options.precision) == 4) return 4;
  const std::int64_t width = options.features / options.heads;
  // Wider heads may need all lanes of a warp as it is.
  if (width > 64 || width % 4 != 0) return 8;
  // Four lanes of a head share what follows from the sums of four edges in the gradient of cosines.
  const std::int64_t few_lanes = options.form == AttentionForm::cosine ? 64'000 : 32'000;
  return problem.graph.num_rows() * (options.features / 8) < few_lanes ? 4 : 8;
}

/// Boundaries, in features: on which all heads begin, and on which rows do where these are one
/// head.
struct LaneBoundaries {
  std::int64_t heads = 1;
  std::int64_t rows = 1;
};

/// Whether a kernel takes heads of `width` features. Padding is worth its mask where a head has two
/// vectors at least.
bool takes(const LaneVectors& held, std::int64_t width, const LaneBoundaries& boundaries) {
  if (width > 32 * held.count * held.vectors) return false;
  switch (held.loads) {
    case LaneLoads::whole: return boundaries.heads % held.count == 0;
    case LaneLoads::padded:
      return width % held.count != 0 && width >= 2 * held.count &&
             boundaries.rows % held.count == 0;
    case LaneLoads::single: break;
  }
  return true;
}

const LaneVectorList& lane_vectors_of(const AttentionOptions& options) {
  return lane_vectors(bytes_per_element(options.precision));
}
std::int64_t width_of(const AttentionOptions& options) { return options.features / options.heads; }

/// Which of the kernels takes the heads: the widest loads of one vector, or of as many as
/// `most_vectors` where they fill lanes; else the first that fits. The last does wherever the
/// strategy takes the heads (`taken_by_rows`).
std::size_t choose_lane_vectors(const AttentionOptions& options, const LaneBoundaries& boundaries,
                                int most_vectors) {
  const LaneVectorList& all = lane_vectors_of(options);
  const std::int64_t width = width_of(options);
  std::size_t best = all.size();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const LaneVectors& held = all[i];
    if (!takes(held, width, boundaries)) continue;
    const bool fills = held.loads == LaneLoads::whole && width % (held.count * held.vectors) == 0;
    const bool wanted = held.vectors == 1 || (held.vectors <= most_vectors && fills);
    if (best == all.size() || wanted) best = i;
  }
  return best;
}

/// The most features at once, a power of two, for which all groups of `width` features (0: all
/// rows) of an operand begin on boundaries.
std::int64_t boundary_of(const ConstOperand& operand, std::int64_t width,
                         std::int64_t element_bytes) {
  std::int64_t boundary = 16 / element_bytes;
  if (operand.absent()) return boundary;
  while (boundary > 1 && !on_boundaries(operand, width, boundary * element_bytes)) boundary /= 2;
  return boundary;
}

LaneBoundaries boundaries_of(const AttentionProblem& problem, const AttentionInputs& inputs,
                             std::initializer_list<ConstOperand> others) {
  const AttentionOptions& options = problem.options;
  const auto bytes = static_cast<std::int64_t>(bytes_per_element(options.precision));
  const std::int64_t most = most_lane_features(problem);
  LaneBoundaries boundaries{most, options.heads == 1 ? most : 1};
  const auto narrow = [&](const ConstOperand& operand) {
    boundaries.heads = std::min(boundaries.heads, boundary_of(operand, width_of(options), bytes));
    boundaries.rows = std::min(boundaries.rows, boundary_of(operand, 0, bytes));
  };
  narrow(inputs.value);
  if (options.form != AttentionForm::gat && options.form != AttentionForm::cosine) {
    narrow(inputs.target);
    narrow(inputs.source);
    narrow(inputs.vector);
  }
  for (const ConstOperand& other : others) narrow(other);
  return boundaries;
}

/// A warp takes one row for each of its groups where there are few, else up to 16 of which it puts
/// those of about the same length side by side. More warps than a GPU holds at once are to be left,
/// so that they end together.
int log_rows_of_item(std::int64_t num_rows, int log_groups, const Device& device) {
  constexpr std::int64_t wanted_warps = 64;
  const std::int64_t warps = device_traits(device).processors * wanted_warps;
  int log_rows = log_groups;
  while (log_rows < 4 && num_rows >> (log_rows + 1) >= warps) ++log_rows;
  return log_rows;
}

}  // namespace

LaneVectors expected_lane_vectors(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  const std::int64_t most = most_lane_features(problem);
  const LaneBoundaries boundaries{std::gcd(width_of(options), most), options.heads == 1 ? most : 1};
  const int most_vectors = wants_two_vectors(problem, AttentionSweep::forward) ? 2 : 1;
  return lane_vectors_of(options)[choose_lane_vectors(options, boundaries, most_vectors)];
}

std::size_t choose_lanes(const AttentionProblem& problem, AttentionSweep sweep,
                         const AttentionInputs& inputs, std::initializer_list<ConstOperand> others,
                         RowsAttentionLaunch& launch) {
  const AttentionOptions& options = problem.options;
  for (const auto& [operand, name] :
       {std::pair{inputs.target, "target"}, {inputs.source, "source"}, {inputs.value, "value"}}) {
    check_reach(operand, name);
  }
  for (const ConstOperand& other : others) check_reach(other, "output or gradient");
  int most_vectors = wants_two_vectors(problem, sweep) ? 2 : 1;
  if (sweep == AttentionSweep::forward && wants_four_vectors(problem) && shares_rows(launch)) {
    most_vectors = 4;
  }
  const std::size_t which =
      choose_lane_vectors(options, boundaries_of(problem, inputs, others), most_vectors);
  launch.shape = LaneShape::of(options.heads, width_of(options), lane_vectors_of(options)[which]);
  launch.log_item_rows =
      log_rows_of_item(launch.num_rows, launch.shape.log_groups(), options.device);
  const std::int64_t item_rows = std::int64_t{1} << launch.log_item_rows;
  const std::int64_t items = launch.num_pieces + (launch.num_rows + item_rows - 1) / item_rows;
  launch.num_blocks =
      static_cast<unsigned>((items + rows_attention_warps - 1) / rows_attention_warps);
  return which;
}

}  // namespace tessera::ops
