// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/hybrid/schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/rows/row_lists.hpp"
#include "ops/spmm/cuda/hybrid/cost.hpp"
#include "support/mixed_windows.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/pieces.hpp"

/// A plan that sends windows to different cores: every row belongs to exactly one of them, whatever
/// the costs say, and each goes where it is cheaper.
namespace tessera::ops {
namespace {

WindowCosts drawn_costs(std::mt19937& random) {
  std::uniform_real_distribution<double> exponent(-3, 3);
  WindowCosts costs;
  costs.tall = {std::exp2(exponent(random)), std::exp2(4 + exponent(random))};
  costs.rows = {std::exp2(exponent(random)), std::exp2(exponent(random)),
                std::exp2(exponent(random)), 4, 2.9};
  return costs;
}

/// How often each row is in a window on tensor cores, or in a list, a team or pieces on CUDA cores.
std::vector<int> times_of_rows(const tiles::TiledGraph& tiled, const WindowCores& cores,
                               const SomeRows& others, std::span<const EdgeOffset> offsets) {
  std::vector<int> times(static_cast<std::size_t>(tiled.num_rows));
  const auto pieces = tiles::make_pieces(tiled, {7, 4, cores.on_tensor_cores});
  std::vector<std::int64_t> steps(cores.on_tensor_cores.size());
  for (const tiles::Piece& piece : pieces.pieces) {
    const auto window = static_cast<std::size_t>(piece.first_row / tiled.height);
    EXPECT_EQ(cores.on_tensor_cores[window], 1);
    steps[window] += piece.num_steps;
    if (piece.first_step != tiled.step_offsets[static_cast<std::int64_t>(window)]) continue;
    for (int row = 0; row < piece.num_rows; ++row) {
      ++times[static_cast<std::size_t>(piece.first_row + row)];
    }
  }
  for (std::size_t window = 0; window < steps.size(); ++window) {
    const auto w = static_cast<std::int64_t>(window);
    if (cores.on_tensor_cores[window] == 0) continue;
    EXPECT_EQ(steps[window], tiled.step_offsets[w + 1] - tiled.step_offsets[w]);
  }
  const RowsPolicy policy = {8, 1, 4, 16, 1, true};
  const RowsCut cut = {1, 2, 128};
  const RowLengths rows = others.lengths();
  const RowsSchedule schedule = make_rows_schedule(rows, policy, cut);
  std::vector<EdgeOffset> covered(times.size());
  for (const LongPiece& piece : schedule.pieces) {
    const auto row = static_cast<std::size_t>(piece.row);
    EXPECT_EQ(piece.begin, offsets[row] + covered[row]) << "the matrix's own place";
    covered[row] += piece.end - piece.begin;
  }
  std::int64_t listed = 0;
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows.ids[i]);
    const EdgeOffset length = rows.offsets[i + 1] - rows.offsets[i];
    EXPECT_EQ(length, offsets[row + 1] - offsets[row]);
    const bool is_long = length > cut.longest_wide_row(policy);
    EXPECT_EQ(covered[row], is_long ? length : 0);
    listed += is_long ? 0 : 1;
    ++times[row];
  }
  EXPECT_EQ(schedule.num_short + schedule.num_wide, listed);
  return times;
}

TEST(WindowCores, HaveEveryRowExactlyOnce) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto rows = static_cast<VertexId>(random() % 700);
    const Graph graph = testing::mixed_windows(rows, 900, seed);
    const tiles::TiledGraph tiled = tiles::translate(graph, 64);
    const WindowCosts costs = drawn_costs(random);
    const WindowCores cores =
        choose_cores(graph.row_offsets().span(), tiled.step_offsets.span(), 64, costs);
    const SomeRows others(graph.row_offsets().span(), cores.cuda_rows);
    for (const int times : times_of_rows(tiled, cores, others, graph.row_offsets().span())) {
      ASSERT_EQ(times, 1);
    }
    EXPECT_EQ(cores.tensor.windows + cores.cuda.windows, tiled.num_windows());
    EXPECT_EQ(cores.tensor.edges + cores.cuda.edges, graph.num_edges());
  }
}

TEST(WindowCores, CostNoMoreThanEitherCoreAlone) {
  for (unsigned seed = 100; seed < 130; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Graph graph = testing::mixed_windows(1000, 2000, seed);
    const tiles::TiledGraph tiled = tiles::translate(graph, 64);
    WindowCosts costs = drawn_costs(random);
    const auto total = [&](const WindowCosts& with) {
      const WindowCores cores =
          choose_cores(graph.row_offsets().span(), tiled.step_offsets.span(), 64, with);
      return cores.tensor.predicted_us + cores.cuda.predicted_us;
    };
    const double mixed = total(costs);
    WindowCosts tensor_alone = costs, cuda_alone = costs;
    tensor_alone.rows = {1e9, 1e9, 1e9, 4, 2.9};
    cuda_alone.tall = {1e9, 1e9};
    EXPECT_LE(mixed, total(tensor_alone) * (1 + 1e-12));
    EXPECT_LE(mixed, total(cuda_alone) * (1 + 1e-12));
  }
}

/// By the costs of the H200: rows that share their sources go to tensor cores, others do not.
TEST(WindowCores, AreThoseThatAReaderWouldChoose) {
  SpmmProblem problem;
  problem.graph = testing::mixed_windows(2048, 30000, 5);
  problem.features = 128;
  const WindowCosts costs = window_costs(problem, hybrid_policies[0], h200_traits());
  const tiles::TiledGraph tiled = tiles::translate(problem.graph, 64);
  const WindowCores cores =
      choose_cores(problem.graph.row_offsets().span(), tiled.step_offsets.span(), 64, costs);
  for (std::size_t window = 0; window < cores.on_tensor_cores.size(); ++window) {
    EXPECT_EQ(cores.on_tensor_cores[window], window % 2 == 0 ? 1 : 0) << "window " << window;
  }
}

}  // namespace
}  // namespace tessera::ops
