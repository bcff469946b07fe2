// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/rows/cut.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/rows/matrix.hpp"
#include "ops/spmm/cuda/tall/cost.hpp"
#include "ops/spmm/cuda/weights.hpp"
#include "ops/spmm/kernel.hpp"
#include "ops/spmm/row_order.hpp"
#include "ops/windows/launch.hpp"

/// What other ops take of spmm: its matrix and its windows on the GPU, what weights they hold and
/// what they are expected to cost; and kernels on some of a problem's rows, for a plan that gives
/// the others to another kernel.
namespace tessera::ops {

/// Why a policy of tall windows cannot solve a problem, in words; empty if it can.
std::string why_not_tall(const SpmmProblem& problem, const TallPolicy& policy);

/// Which windows, and of which rows.
struct SomeWindows {
  std::span<const std::uint8_t> taken = {};    ///< as in tiles::PieceOptions
  bool leads = false;                          ///< some rows follow that overlap them
  std::shared_ptr<const RowOrder> order = {};  ///< null: the problem's own
};
std::unique_ptr<const PreparedSpmm> prepare_some_windows(const SpmmProblem& problem,
                                                         const TallPolicy& policy,
                                                         const SomeWindows& some);

/// What windows have to know of a kernel that takes them to another end than to store their sums.
struct TallKernelShape {
  int width = 0;            ///< features of a block: all of them
  int max_steps = 0;        ///< of a stage
  int resident_blocks = 0;  ///< that the GPU holds at once
};

/// All windows of a problem, for a kernel of the caller's own.
class PreparedWindows : public PreparedSpmm {
 public:
  /// What that kernel is started with; `call.y` is not looked at.
  virtual TallLaunch launch(const SpmmCall& call, const WorkspaceView& workspace) const = 0;
};
std::unique_ptr<const PreparedWindows> prepare_windows(const SpmmProblem& problem,
                                                       const TallPolicy& policy,
                                                       const TallKernelShape& kernel);

/// Why no policy of rows with lists can solve a problem, in words; empty if one can.
std::string why_not_listed_rows(const SpmmProblem& problem);

/// Some rows, by one of `rows_policies` with lists, which are sorted among `sorted_rows`
/// neighbours. `follows`: they overlap some windows before. `note`: what an explanation adds.
std::unique_ptr<const PreparedSpmm> prepare_some_rows(const SpmmProblem& problem,
                                                      std::size_t policy, const RowLengths& rows,
                                                      VertexId sorted_rows, bool follows,
                                                      std::string note = {});

/// "rows_8x1x4_listed".
std::string name_of_rows(std::size_t policy);

}  // namespace tessera::ops
