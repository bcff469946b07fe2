// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/lane_choice.hpp"

#include <algorithm>
#include <utility>

#include "ops/cuda/boundaries.hpp"

namespace tessera::ops {

LaneChoice::LaneChoice(const AttentionProblem& problem)
    : form_(problem.options.form),
      device_(problem.options.device),
      heads_(problem.options.heads),
      width_(problem.options.features / heads_),
      element_bytes_(static_cast<std::int64_t>(bytes_per_element(problem.options.precision))),
      most_features_(most_lane_features(problem)),
      two_vectors_{wants_two_vectors(problem, AttentionSweep::forward),
                   wants_two_vectors(problem, AttentionSweep::backward)},
      four_vectors_(wants_four_vectors(problem)) {}

std::size_t LaneChoice::choose(AttentionSweep sweep, const AttentionInputs& inputs,
                               std::initializer_list<ConstOperand> others,
                               RowsAttentionLaunch& launch) const {
  for (const auto& [operand, name] :
       {std::pair{inputs.target, "target"}, {inputs.source, "source"}, {inputs.value, "value"}}) {
    check_reach(operand, name);
  }
  for (const ConstOperand& other : others) check_reach(other, "output or gradient");
  const LaneBoundaries boundaries = boundaries_of(inputs, others);
  const bool forward = sweep == AttentionSweep::forward;
  int most_vectors = two_vectors_[forward ? 0 : 1] ? 2 : 1;
  if (forward && four_vectors_ && shares_rows(launch)) most_vectors = 4;
  return element_bytes_ == 2 ? choose_from(lane_vectors_16, boundaries, most_vectors, launch)
                             : choose_from(lane_vectors_32, boundaries, most_vectors, launch);
}

LaneBoundaries LaneChoice::boundaries_of(const AttentionInputs& inputs,
                                         std::initializer_list<ConstOperand> others) const {
  LaneBoundaries boundaries{most_features_, most_features_};
  const auto narrow = [&](const ConstOperand& operand) {
    boundaries.heads = std::min(boundaries.heads, boundary_of(operand, width_));
    boundaries.rows = heads_ == 1 ? std::min(boundaries.rows, boundary_of(operand, 0)) : 1;
  };
  narrow(inputs.value);
  if (form_ != AttentionForm::gat && form_ != AttentionForm::cosine) {
    narrow(inputs.target);
    narrow(inputs.source);
    narrow(inputs.vector);
  }
  for (const ConstOperand& other : others) narrow(other);
  return boundaries;
}

template <class List>
std::size_t LaneChoice::choose_from(const List& list, const LaneBoundaries& boundaries,
                                    int most_vectors, RowsAttentionLaunch& launch) const {
  const std::size_t which = *choose_lane_vectors(list, width_, boundaries, most_vectors);
  launch.shape = *LaneShape::of(heads_, width_, list[which]);
  launch.log_item_rows = log_item_rows(launch.num_rows, launch.shape.log_groups());
  const std::int64_t item_rows = std::int64_t{1} << launch.log_item_rows;
  const std::int64_t items = launch.num_pieces + (launch.num_rows + item_rows - 1) / item_rows;
  launch.num_blocks =
      static_cast<unsigned>((items + rows_attention_warps - 1) / rows_attention_warps);
  return which;
}

/// A warp takes one row for each of its groups where there are few, else up to 16 of which it puts
/// those of about the same length side by side. More warps than a GPU holds at once are to be left,
/// so that they end together.
int LaneChoice::log_item_rows(std::int64_t num_rows, int log_groups) const {
  constexpr std::int64_t wanted_warps = 64;
  const std::int64_t warps = device_traits(device_).processors * wanted_warps;
  int log_rows = log_groups;
  while (log_rows < 4 && num_rows >> (log_rows + 1) >= warps) ++log_rows;
  return log_rows;
}

/// The most features at once, a power of two, for which all groups of `width` features (0: all
/// rows) of an operand begin on boundaries.
std::int64_t LaneChoice::boundary_of(const ConstOperand& operand, std::int64_t width) const {
  std::int64_t boundary = 16 / element_bytes_;
  if (operand.absent()) return boundary;
  while (boundary > 1 && !on_boundaries(operand, width, boundary * element_bytes_)) boundary /= 2;
  return boundary;
}

}  // namespace tessera::ops
