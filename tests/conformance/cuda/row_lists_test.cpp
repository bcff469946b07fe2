// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/core/random.hpp"

#include "cuda/array.hpp"
#include "graph/cut.hpp"
#include "ops/aggregate_update/cuda/fused/schedule.hpp"
#include "ops/attention/cuda/row_side.hpp"
#include "ops/rows/row_lists.hpp"
#include "ops/spmm/cuda/hybrid/schedule.hpp"

/// The lists of rows and pieces that a GPU makes for schedules, against those of this process.
namespace tessera {
namespace {

constexpr Device gpu{DeviceKind::cuda, 0};

class GpuRowLists : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
};

/// Rows of some lengths, with columns that tell where they stand.
struct DrawnRows {
  DrawnRows(std::size_t num_rows, int most) {
    for (std::size_t row = 0; row < num_rows; ++row) {
      const auto drawn = static_cast<std::int32_t>(Random(7).uniform(row) * (most + 1));
      offsets.push_back(offsets.back() + drawn);
    }
    columns.resize(static_cast<std::size_t>(offsets.back()));
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<VertexId>(3 * i);
    wide.assign(offsets.begin(), offsets.end());
    matrix.num_rows = static_cast<VertexId>(num_rows);
    matrix.num_edges = offsets.back();
    matrix.narrow_offsets = there(offsets);
    matrix.indices = there(columns);
    matrix.host_offsets = wide;
  }

  template <class T>
  static Buffer<T> there(const std::vector<T>& values) {
    return cuda::to_device(std::span<const T>(values), Place(gpu));
  }
  template <class T>
  static std::vector<T> here(const Buffer<T>& values) {
    const Buffer<T> brought = cuda::to_host(values, Place(gpu));
    return std::vector<T>(brought.begin(), brought.end());
  }

  std::int32_t length(std::size_t row) const { return offsets[row + 1] - offsets[row]; }

  std::vector<std::int32_t> offsets = {0};
  std::vector<EdgeOffset> wide;
  std::vector<VertexId> columns;
  cuda::DeviceRows matrix;
};

/// The list of rows with more than `above` and up to `longest` edges as this process would make it.
std::vector<ops::RowSlice> sorted_slices(const DrawnRows& rows, EdgeOffset above,
                                         EdgeOffset longest, int step, VertexId sorted_rows) {
  std::vector<ops::RowSlice> all;
  const std::size_t num_rows = rows.offsets.size() - 1;
  const auto neighbours = static_cast<std::size_t>(sorted_rows);
  for (std::size_t first = 0; first < num_rows; first += neighbours) {
    std::vector<ops::RowSlice> window;
    for (std::size_t row = first; row < std::min(num_rows, first + neighbours); ++row) {
      const std::int32_t length = rows.length(row);
      if (length > above && length <= longest) {
        window.push_back({rows.offsets[row], static_cast<VertexId>(row), length});
      }
    }
    std::stable_sort(window.begin(), window.end(),
                     [step](const ops::RowSlice& a, const ops::RowSlice& b) {
                       return (a.count + step - 1) / step > (b.count + step - 1) / step;
                     });
    all.insert(all.end(), window.begin(), window.end());
  }
  return all;
}

void expect_same(const ops::RowSlice& found, const ops::RowSlice& expected, std::size_t i) {
  ASSERT_EQ(found.row, expected.row) << "at " << i;
  ASSERT_EQ(found.begin, expected.begin) << "at " << i;
  ASSERT_EQ(found.count, expected.count) << "at " << i;
}

/// Lists of some rows of a matrix are those of a matrix that has no others, with the places and
/// columns that they have in theirs.
TEST_F(GpuRowLists, ListsSomeRowsOfAMatrix) {
  const ops::RowsPolicy policy = {8, 1, 4, 16, 1, true};
  const ops::RowsCut cut = {4, 8, 128};
  const DrawnRows rows(9000, 300);
  std::vector<VertexId> ids;
  for (VertexId row = 0; row < 9000; ++row) {
    if (row / 64 % 3 != 1) ids.push_back(row);
  }
  const ops::SomeRows some(rows.wide, ids);
  const ops::RowsSchedule schedule = ops::make_rows_schedule(some.lengths(), policy, cut);
  Buffer<ops::RowStart> short_rows(schedule.num_short, default_memory(gpu));
  Buffer<ops::RowSlice> wide_rows(schedule.num_wide, default_memory(gpu));
  ops::RowListsLaunch launch;
  const auto there = DrawnRows::there(ids);
  launch.num_rows = static_cast<VertexId>(ids.size());
  launch.ids = there.data();
  launch.offsets = rows.matrix.offsets();
  launch.indices = rows.matrix.indices.data();
  launch.short_row = cut.short_row(policy);
  launch.wide_row = cut.longest_wide_row(policy);
  launch.short_step = policy.step();
  launch.wide_step = whole_warp(policy).step();
  launch.short_rows = short_rows.data();
  launch.wide_rows = wide_rows.data();
  const auto starts = cuda::to_device(launch.set_starts(schedule), Place(gpu));
  launch.starts = starts.data();
  ops::list_rows(launch, {});

  std::vector<int> times(9000);
  const auto expect_own = [&](const ops::RowSlice& slice) {
    const auto row = static_cast<std::size_t>(slice.row);
    ASSERT_EQ(slice.begin, rows.offsets[row]);
    ASSERT_EQ(slice.count, rows.length(row));
    ++times[row];
  };
  for (const ops::RowStart& start : DrawnRows::here(short_rows)) {
    expect_own(start.slice);
    for (int k = 0; k < std::min(4, start.slice.count); ++k) {
      const auto at = static_cast<std::size_t>(start.slice.begin + k);
      ASSERT_EQ(start.columns[k], rows.columns[at]);
    }
  }
  for (const ops::RowSlice& slice : DrawnRows::here(wide_rows)) expect_own(slice);
  for (const ops::LongPiece& piece : schedule.pieces) {
    if (piece.begin == rows.offsets[static_cast<std::size_t>(piece.row)]) {
      ++times[static_cast<std::size_t>(piece.row)];
    }
  }
  for (VertexId row = 0; row < 9000; ++row) {
    ASSERT_EQ(times[static_cast<std::size_t>(row)], row / 64 % 3 != 1 ? 1 : 0) << "row " << row;
  }
}

/// Sorted among so many neighbours.
void expect_lists(VertexId sorted_rows) {
  for (const bool listed : {true, false}) {
    const ops::RowsPolicy policy = {8, 1, 4, 16, 1, listed};
    for (const std::size_t num_rows : {1, 33, 4095, 4096, 4097, 20000, 140000}) {
      for (const int most : {3, 40, 300, 3000}) {
        if (num_rows > 100000 && most > 300) continue;
        SCOPED_TRACE(std::to_string(num_rows) + " rows of up to " + std::to_string(most));
        const DrawnRows rows(num_rows, most);
        const ops::RowsCut cut = {4, 8, 128};
        const ops::RowsSchedule schedule =
            ops::make_rows_schedule({rows.wide, degree_statistics(rows.wide)}, policy, cut);
        Buffer<ops::RowStart> short_rows(schedule.num_short, default_memory(gpu));
        Buffer<ops::RowSlice> wide_rows(schedule.num_wide, default_memory(gpu));
        ops::RowListsLaunch launch;
        launch.num_rows = rows.matrix.num_rows;
        launch.offsets = rows.matrix.offsets();
        launch.indices = rows.matrix.indices.data();
        launch.short_row = cut.short_row(policy);
        launch.wide_row = cut.longest_wide_row(policy);
        launch.short_step = policy.step();
        launch.wide_step = whole_warp(policy).step();
        launch.sorted_rows = sorted_rows;
        launch.short_rows = short_rows.data();
        launch.wide_rows = wide_rows.data();
        const auto starts = cuda::to_device(launch.set_starts(schedule), Place(gpu));
        launch.starts = starts.data();
        ops::list_rows(launch, {});

        const auto short_found = DrawnRows::here(short_rows);
        const auto short_expected =
            sorted_slices(rows, -1, listed ? launch.short_row : -1, launch.short_step, sorted_rows);
        ASSERT_EQ(short_found.size(), short_expected.size());
        for (std::size_t i = 0; i < short_found.size(); ++i) {
          expect_same(short_found[i].slice, short_expected[i], i);
          for (int k = 0; k < 4; ++k) {
            const auto at = static_cast<std::size_t>(short_expected[i].begin + k);
            ASSERT_EQ(short_found[i].columns[k], k < short_expected[i].count ? rows.columns[at] : 0)
                << "at " << i;
          }
        }
        const auto wide_found = DrawnRows::here(wide_rows);
        const auto wide_expected =
            sorted_slices(rows, launch.short_row, launch.wide_row, launch.wide_step, sorted_rows);
        ASSERT_EQ(wide_found.size(), wide_expected.size());
        for (std::size_t i = 0; i < wide_found.size(); ++i) {
          expect_same(wide_found[i], wide_expected[i], i);
        }
      }
    }
  }
}

TEST_F(GpuRowLists, ListsRowsByTheirStepsAndInTheirOrder) { expect_lists(ops::list_window_rows); }

TEST_F(GpuRowLists, ListsNeighboursTogether) { expect_lists(ops::near_list_rows); }

TEST_F(GpuRowLists, ListsPiecesOfAttention) {
  for (const std::size_t num_rows : {1, 33, 1023, 1024, 1025, 20000, 140000}) {
    for (const ops::AttentionCut cut : {ops::AttentionCut{0, 7}, {8, 32}, {20, 20}, {1000, 1000}}) {
      SCOPED_TRACE(std::to_string(num_rows) + " rows, pieces of " +
                   std::to_string(cut.longest_piece));
      const DrawnRows rows(num_rows, 100);
      const ops::AttentionSchedule schedule =
          ops::make_attention_schedule(rows.matrix, degree_statistics(rows.wide), cut, Place(gpu));
      std::vector<ops::RowPiece> expected, whole;
      std::int64_t num_slots = 0;
      std::int32_t num_cut = 0;
      for (std::size_t row = 0; row < num_rows; ++row) {
        const EdgeOffset length = rows.length(row);
        if (length <= cut.short_row) continue;
        ops::RowPiece piece;
        piece.row = static_cast<VertexId>(row);
        if (length <= cut.longest_piece) {
          piece.begin = rows.offsets[row];
          piece.count = static_cast<std::int32_t>(length);
          whole.push_back(piece);
          continue;
        }
        const EqualParts parts = EqualParts::of_at_most(length, cut.longest_piece);
        piece.first_slot = static_cast<std::int32_t>(num_slots);
        piece.num_slots = static_cast<std::int32_t>(parts.count());
        piece.cut_row = num_cut++;
        for (EdgeOffset i = 0; i < parts.count(); ++i) {
          piece.begin = rows.offsets[row] + parts.begin(i);
          piece.count = static_cast<std::int32_t>(parts.end(i) - parts.begin(i));
          piece.slot = static_cast<std::int32_t>(num_slots++);
          expected.push_back(piece);
        }
      }
      expected.insert(expected.end(), whole.begin(), whole.end());
      EXPECT_EQ(schedule.num_slots, num_slots);
      EXPECT_EQ(schedule.num_cut_rows, static_cast<std::uint32_t>(num_cut));
      const auto found = DrawnRows::here(schedule.pieces);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, expected[i].row) << "at " << i;
        ASSERT_EQ(found[i].begin, expected[i].begin) << "at " << i;
        ASSERT_EQ(found[i].count, expected[i].count) << "at " << i;
        ASSERT_EQ(found[i].slot, expected[i].slot) << "at " << i;
        if (found[i].slot < 0) continue;
        ASSERT_EQ(found[i].first_slot, expected[i].first_slot) << "at " << i;
        ASSERT_EQ(found[i].num_slots, expected[i].num_slots) << "at " << i;
        ASSERT_EQ(found[i].cut_row, expected[i].cut_row) << "at " << i;
      }
    }
  }
}

/// Rows of the fused update: of every block those with most edges first, each once.
TEST_F(GpuRowLists, OfTheFusedUpdateFallInEveryBlock) {
  for (const std::size_t num_rows : {1u, 191u, 192u, 257u, 5000u}) {
    for (const int block_rows : {192, 256}) {
      SCOPED_TRACE(num_rows);
      const DrawnRows rows(num_rows, 9);
      std::vector<ops::RowSlice> expected;
      for (std::size_t row = 0; row < num_rows; ++row) {
        expected.push_back({rows.offsets[row], static_cast<VertexId>(row), rows.length(row)});
      }
      for (std::size_t first = 0; first < num_rows; first += static_cast<std::size_t>(block_rows)) {
        const std::size_t end = std::min(num_rows, first + static_cast<std::size_t>(block_rows));
        std::stable_sort(
            expected.begin() + static_cast<std::ptrdiff_t>(first),
            expected.begin() + static_cast<std::ptrdiff_t>(end),
            [](const ops::RowSlice& a, const ops::RowSlice& b) { return a.count > b.count; });
      }
      Buffer<ops::RowSlice> list(static_cast<std::int64_t>(num_rows), Place(gpu));
      ops::list_update_rows(rows.matrix, block_rows, list.data(), Stream{});
      const auto found = DrawnRows::here(list);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].row, expected[i].row);
        EXPECT_EQ(found[i].begin, expected[i].begin);
        EXPECT_EQ(found[i].count, expected[i].count);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
