// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/row_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/rows/policy.hpp"
#include "tessera/graph/generate.hpp"

namespace tessera::ops {
namespace {

std::vector<EdgeOffset> offsets_of(const std::vector<EdgeOffset>& degrees) {
  std::vector<EdgeOffset> offsets = {0};
  for (const EdgeOffset degree : degrees) offsets.push_back(offsets.back() + degree);
  return offsets;
}

/// Many short rows, empty ones among them, and some of every length up to `longest`.
std::vector<EdgeOffset> skewed_degrees(std::size_t count, EdgeOffset longest, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<EdgeOffset> degrees(count);
  for (EdgeOffset& degree : degrees) {
    degree =
        static_cast<EdgeOffset>(std::pow(static_cast<double>(longest) + 1, uniform(random))) - 1;
  }
  return degrees;
}

RowsSchedule schedule_of(const std::vector<EdgeOffset>& offsets, const RowsPolicy& policy,
                         const RowsCut& cut) {
  return make_rows_schedule({offsets, degree_statistics(offsets)}, policy, cut);
}

/// How often each row is scheduled, and whether its slices are those of the graph.
class Coverage {
 public:
  Coverage(const std::vector<EdgeOffset>& offsets, const RowsPolicy& policy, const RowsCut& cut)
      : offsets_(offsets), times_(offsets.size() - 1) {
    const RowsSchedule schedule = schedule_of(offsets, policy, cut);
    add_rows_up_to(cut.longest_wide_row(policy));
    expect_lists(schedule, policy, cut);
    for (const LongPiece& piece : schedule.pieces) add(piece);
  }

  void expect_each_row_once() const {
    for (std::size_t row = 0; row < times_.size(); ++row) {
      EXPECT_EQ(times_[row], 1) << "row " << row;
    }
  }

 private:
  /// The lists have room for every short and every wide row, and begin each window of neighbours
  /// where the ones before it end.
  void expect_lists(const RowsSchedule& schedule, const RowsPolicy& policy,
                    const RowsCut& cut) const {
    const bool all_short = schedule.starts.empty();
    std::int64_t num_short = 0, num_wide = 0;
    const auto expect_start = [&](std::size_t window) {
      if (all_short) return;
      EXPECT_EQ(schedule.starts.at(window).short_row, policy.listed ? num_short : 0);
      EXPECT_EQ(schedule.starts.at(window).wide_row, num_wide);
    };
    std::size_t windows = 0;
    for (std::size_t row = 0; row + 1 < offsets_.size(); ++row) {
      if (row % list_window_rows == 0) expect_start(windows++);
      const EdgeOffset length = offsets_[row + 1] - offsets_[row];
      if (length <= cut.short_row(policy)) {
        ++num_short;
      } else if (length <= cut.longest_wide_row(policy)) {
        ++num_wide;
      }
    }
    expect_start(windows);
    EXPECT_EQ(schedule.num_short, policy.listed ? num_short : 0);
    EXPECT_EQ(schedule.num_wide, num_wide);
    EXPECT_EQ(all_short, num_short == std::ssize(offsets_) - 1);
  }
  void add_rows_up_to(EdgeOffset longest) {
    for (std::size_t row = 0; row < times_.size(); ++row) {
      if (offsets_[row + 1] - offsets_[row] <= longest) ++times_[row];
    }
  }
  /// Pieces of a row follow each other, from its first edge to its last.
  void add(const LongPiece& piece) {
    const auto row = static_cast<std::size_t>(piece.row);
    if (piece.begin == offsets_[row]) {
      ++times_[row];
    } else {
      EXPECT_EQ(piece.begin, last_end_) << "row " << row;
    }
    EXPECT_LT(piece.begin, piece.end);
    last_end_ = piece.end;
    if (piece.slot < 0) {
      EXPECT_EQ(piece.end, offsets_[row + 1]);
    }
  }

  const std::vector<EdgeOffset>& offsets_;
  std::vector<int> times_;
  EdgeOffset last_end_ = 0;
};

RowsCut chosen_cut(const std::vector<EdgeOffset>& offsets, const RowsPolicy& policy) {
  const DegreeStatistics degrees = degree_statistics(offsets);
  return choose_cut({offsets, degrees}, policy, 1, h200_traits());
}

TEST(SpmmScheduleTest, EveryRowOnceForEveryPolicy) {
  for (const unsigned seed : {1u, 2u}) {
    const auto offsets = offsets_of(skewed_degrees(9000, 5000, seed));
    for (const RowsPolicy& policy : rows_policies) {
      SCOPED_TRACE(
          fmt::format("seed {}, {}x{}x{}", seed, policy.lanes, policy.edges, policy.unroll));
      const RowsCut cut = chosen_cut(offsets, policy);
      Coverage(offsets, policy, cut).expect_each_row_once();
    }
  }
}

TEST(SpmmScheduleTest, FewRowsAndNone) {
  for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 31u, 33u}) {
    const auto offsets = offsets_of(skewed_degrees(count, 300, 7));
    for (const RowsPolicy& policy : rows_policies) {
      const RowsCut cut = chosen_cut(offsets, policy);
      Coverage(offsets, policy, cut).expect_each_row_once();
    }
  }
}

/// Lanes that take a row of X at once: those of a warp where its teams take parts beside each
/// other.
int lanes_at_once(const Graph& graph, std::int64_t features, Precision precision) {
  SpmmProblem problem;
  problem.graph = graph;
  problem.features = features;
  problem.precision = precision;
  const ProblemRows rows(problem);
  return chosen_parts(problem, rows.lengths(), {16, 1, 4, 16, 1, true}, h200_traits()).taken.lanes;
}

TEST(SpmmScheduleTest, PartsThatBeginInsideOfLinesAreTakenBesideEachOther) {
  const Graph graph =
      generate::build(generate::ErdosRenyi{.vertices = 20000, .edges = 800000, .seed = 1});
  for (const std::int64_t features : {68, 100, 104}) {
    EXPECT_EQ(lanes_at_once(graph, features, Precision::fp32), 32) << features;
    EXPECT_EQ(lanes_at_once(graph, 2 * features, Precision::bf16), 32) << features;
  }
  EXPECT_EQ(lanes_at_once(graph, 128, Precision::fp32), 16) << "whole lines";
  for (const std::int64_t features : {0, 1, 60, 132, 264}) {
    EXPECT_EQ(lanes_at_once(graph, features, Precision::fp32), 16)
        << features << ": an odd number of parts";
  }
}

TEST(SpmmScheduleTest, PiecesOfARowAreEqualAndHaveConsecutiveSlots) {
  const RowsPolicy policy = {32, 1, 4};
  RowsCut cut;
  cut.wide_steps = 4;
  const EdgeOffset piece = cut.piece(policy);
  const auto offsets = offsets_of({3, 10 * piece + 1, 2, piece, 2 * piece});
  const RowsSchedule schedule = schedule_of(offsets, policy, cut);
  ASSERT_EQ(schedule.split_rows.size(), 2u);
  EXPECT_EQ(schedule.split_rows[0].num_slots, 11);
  EXPECT_EQ(schedule.split_rows[1].num_slots, 2);
  EXPECT_EQ(schedule.num_slots, 13);
  ASSERT_EQ(schedule.pieces.size(), 14u);
  std::int32_t slot = 0;
  for (const LongPiece& each : schedule.pieces) {
    EXPECT_LE(each.end - each.begin, piece);
    EXPECT_GE(each.end - each.begin, piece / 2);
    if (each.slot >= 0) {
      EXPECT_EQ(each.slot, slot++);
    }
  }
}

TEST(SpmmScheduleTest, EqualShortRowsNeedNothingElse) {
  const auto offsets = offsets_of(std::vector<EdgeOffset>(100000, 3));
  for (const RowsPolicy& policy : rows_policies) {
    const RowsSchedule schedule = schedule_of(offsets, policy, chosen_cut(offsets, policy));
    EXPECT_TRUE(schedule.num_wide == 0 && schedule.pieces.empty());
    EXPECT_EQ(schedule.num_short, policy.listed ? 100000 : 0);
    EXPECT_TRUE(schedule.starts.empty());
  }
}

TEST(SpmmScheduleTest, HubsAreCutAndTheMiddleGoesToWarps) {
  std::vector<EdgeOffset> degrees = skewed_degrees(100000, 16, 5);
  degrees[77] = 100000;
  degrees[78] = 90;
  const auto offsets = offsets_of(degrees);
  const RowsPolicy policy = {4, 1, 4};
  const RowsSchedule schedule = schedule_of(offsets, policy, chosen_cut(offsets, policy));
  ASSERT_EQ(schedule.split_rows.size(), 1u);
  EXPECT_GT(schedule.split_rows[0].num_slots, 8);
  EXPECT_EQ(schedule.num_wide, 1);
}

}  // namespace
}  // namespace tessera::ops
