// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/device_traits.hpp"
#include "ops/aggregate_update/cost.hpp"
#include "ops/aggregate_update/cuda/fused/cost.hpp"
#include "ops/aggregate_update/cuda/fused/schedule.hpp"
#include "tessera/graph/generate.hpp"

/// What is decided for the fused kernel before a GPU is asked: how long rows are cut, and what it
/// should take.
namespace tessera::ops {
namespace {

std::vector<EdgeOffset> offsets_of(const std::vector<EdgeOffset>& degrees) {
  std::vector<EdgeOffset> offsets(degrees.size() + 1, 0);
  std::partial_sum(degrees.begin(), degrees.end(), offsets.begin() + 1);
  return offsets;
}

TEST(FusedUpdateSchedule, CutsLongRowsAlone) {
  const std::vector<EdgeOffset> degrees = {0, 32, 33, 5, 128, 129, 1, 100000};
  const std::vector<EdgeOffset> offsets = offsets_of(degrees);
  const UpdateSchedule schedule = make_update_schedule(offsets);
  ASSERT_EQ(schedule.long_rows.size(), 4u);
  std::int32_t next_slot = 0;
  VertexId last = -1;
  for (const UpdateLongRow& row : schedule.long_rows) {
    EXPECT_GT(row.row, last);
    last = row.row;
    EXPECT_EQ(row.first_slot, next_slot);
    next_slot += row.num_slots;
    EXPECT_LE(row.num_slots, 64);
    EdgeOffset at = offsets[static_cast<std::size_t>(row.row)];
    for (std::int32_t slot = 0; slot < row.num_slots; ++slot) {
      const UpdatePiece& piece = schedule.pieces[static_cast<std::size_t>(row.first_slot + slot)];
      EXPECT_EQ(piece.begin, at);
      EXPECT_GT(piece.end, piece.begin);
      at = piece.end;
    }
    EXPECT_EQ(at, offsets[static_cast<std::size_t>(row.row) + 1]);
  }
  EXPECT_EQ(static_cast<std::size_t>(next_slot), schedule.pieces.size());
  EXPECT_EQ(schedule.long_rows[0].num_slots, 1);
  EXPECT_EQ(schedule.long_rows[2].num_slots, 2);
}

TEST(FusedUpdateSchedule, IsEmptyWithoutLongRows) {
  const UpdateSchedule schedule = make_update_schedule(offsets_of({3, 0, 32}));
  EXPECT_TRUE(schedule.pieces.empty());
  EXPECT_TRUE(schedule.long_rows.empty());
}

AggregateUpdateProblem problem_on(const Graph& graph, std::int64_t width) {
  AggregateUpdateProblem problem{graph, {}, SpmmPass::forward};
  problem.options.in = problem.options.out = width;
  return problem;
}

/// As measured on an H200: products of up to 128 columns in fp32 come from tensor cores where rows
/// are many and short, and from BLAS where not.
TEST(StagedUpdateCost, KnowsWhoMultiplies) {
  const Graph graph =
      generate::build(generate::Molecules{.graphs = 68585, .mean_vertices = 25, .seed = 1}).graph;
  const auto us = [&](std::int64_t width, Precision precision) {
    AggregateUpdateProblem problem = problem_on(graph, width);
    problem.options.precision = precision;
    problem.options.device = {DeviceKind::cuda, 0};
    return predicted_products_us(problem, h200_traits());
  };
  EXPECT_NEAR(us(96, Precision::fp32), 555, 60);
  EXPECT_LT(us(64, Precision::fp32), us(96, Precision::fp32));
  EXPECT_LT(2 * us(96, Precision::fp32), us(128, Precision::fp32));
  EXPECT_LT(us(96, Precision::bf16), us(96, Precision::fp32));
}

TEST(FusedUpdateCost, GrowsWithRowsWidthsAndDegrees) {
  const auto molecules = [](std::int64_t graphs) {
    return generate::build(generate::Molecules{.graphs = graphs, .mean_vertices = 25, .seed = 1})
        .graph;
  };
  const Graph small = molecules(2000), large = molecules(8000);
  const DeviceTraits& gpu = h200_traits();
  const auto us = [&](const AggregateUpdateProblem& problem) {
    return predicted_fused_update_us(problem, gpu);
  };
  EXPECT_LT(us(problem_on(small, 64)), us(problem_on(large, 64)));
  EXPECT_LT(us(problem_on(large, 64)), us(problem_on(large, 96)));
  AggregateUpdateProblem kept = problem_on(large, 64);
  kept.options.keep_aggregated = true;
  EXPECT_GT(us(kept), us(problem_on(large, 64)));
  const Graph dense = generate::build(generate::BlockModel{
      .vertices = large.num_rows(), .communities = 500, .mean_degree = 20, .seed = 2});
  EXPECT_GT(us(problem_on(dense, 64)), 2 * us(problem_on(large, 64)));
  // Hubs are summed beforehand, at a price.
  const Graph hubs = generate::build(generate::Rmat{.scale = 15, .edges = 400000, .seed = 3});
  AggregateUpdateProblem backward = problem_on(hubs, 64);
  backward.pass = SpmmPass::backward;
  EXPECT_GT(us(backward), us(problem_on(small, 64)));
}

/// Such rows cost their sums beforehand, and no more steps than others when windows come to them.
TEST(FusedUpdateCost, OfLongRowsAloneGrowsWithTheirEdges) {
  const auto us = [](VertexId degree) {
    constexpr VertexId rows = 20000;
    std::vector<EdgeOffset> offsets;
    std::vector<VertexId> columns;
    for (VertexId row = 0; row < rows; ++row) {
      offsets.push_back(std::ssize(columns));
      for (VertexId column = 0; column < degree; ++column) columns.push_back(column);
    }
    offsets.push_back(std::ssize(columns));
    const Graph graph(rows, rows, std::move(offsets), std::move(columns));
    return predicted_fused_update_us(problem_on(graph, 64), h200_traits());
  };
  const double bytes_of_edge = 64 * 4, bytes_per_us = 5e6;
  EXPECT_NEAR(us(80) - us(40), 20000 * 40 * bytes_of_edge / bytes_per_us, 1e-9);
}

}  // namespace
}  // namespace tessera::ops
