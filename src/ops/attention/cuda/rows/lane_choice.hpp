// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <initializer_list>

#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/rows/launch.hpp"

namespace tessera::ops {

/// How wide the loads of a run may be, as its operands lie.
class LaneChoice {
 public:
  explicit LaneChoice(const AttentionProblem& problem);

  /// Which kernel of the type's list takes a run of a sweep with these operands; sets the shape and
  /// the size of the grid.
  std::size_t choose(AttentionSweep sweep, const AttentionInputs& inputs,
                     std::initializer_list<ConstOperand> others, RowsAttentionLaunch& launch) const;

 private:
  LaneBoundaries boundaries_of(const AttentionInputs& inputs,
                               std::initializer_list<ConstOperand> others) const;
  template <class List>
  std::size_t choose_from(const List& list, const LaneBoundaries& boundaries, int most_vectors,
                          RowsAttentionLaunch& launch) const;
  int log_item_rows(std::int64_t num_rows, int log_groups) const;
  std::int64_t boundary_of(const ConstOperand& operand, std::int64_t width) const;

  AttentionForm form_;
  Device device_;
  std::int64_t heads_;
  std::int64_t width_;  ///< of a head
  std::int64_t element_bytes_;
  std::int64_t most_features_;       ///< that a lane loads at once
  std::array<bool, 2> two_vectors_;  ///< forward and backward
  bool four_vectors_;                ///< forward, where values are the sources
};

}  // namespace tessera::ops
