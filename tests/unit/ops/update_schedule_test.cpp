// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/fused/schedule.hpp"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

/// How long rows are cut before a fused kernel comes to them.
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
  for (const cuda::CutRow& row : schedule.long_rows) {
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
}

TEST(FusedUpdateSchedule, IsEmptyWithoutLongRows) {
  const UpdateSchedule schedule = make_update_schedule(offsets_of({3, 0, 32}));
  EXPECT_TRUE(schedule.pieces.empty());
  EXPECT_TRUE(schedule.long_rows.empty());
}

}  // namespace
}  // namespace tessera::ops
