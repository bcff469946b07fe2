// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "core/size_range.hpp"
#include "cuda/rows.hpp"
#include "tiles/hub_windows.hpp"
#include "tiles/sample.hpp"

namespace tessera::tiles {

/// Finds out what cost models and schedules ask of a graph that lies on the place's GPU: samples of
/// its windows, the offsets of its columns, the sizes of its weights. All of it is found there and
/// comes here together, with one wait, so that no array of the size of the edges does. What is
/// known already is not looked for again.
///
/// `both_sides`: the columns, too, which are then ready for who asks for them (cuda/rows.hpp).
/// `short_windows`: all windows of 8 and of 16 rows are counted, too, for plans that may want tiles
/// of them.
void survey_on_device(const Graph& graph, bool both_sides, bool short_windows, const Place& place);

/// Values and two scales.
inline constexpr std::size_t num_weights = 3;

/// What a GPU counts, all 0 before. The same types on both sides.
struct SurveyReport {
  struct Sums {
    unsigned long long edges, columns, dense_edges;
  };
  struct Sizes {
    unsigned inverted_smallest, largest, largest_of_all;  ///< as SizeBits; the first inverted

    SizeBits bits() const { return {~inverted_smallest, largest, largest_of_all}; }
  };

  Sums windows[2][sampled_windows.size()];        ///< by side, of those that were sampled
  std::int32_t sampled_columns[2][most_sampled];  ///< by side, as tiles::sampled_columns
  unsigned long long dense_edges[2][sampled_windows.size()];  ///< of all, where all are counted
  HubWindow hub_windows[sampled_hubs];
  Sizes weights[num_weights];
  std::uint32_t sides_differ;  ///< not 0: rows are not what columns are
};

/// Rows to look at; null indices and no rows: none.
struct SurveyedRows {
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
};

/// Where the columns of each window go, by side and kind; null where only samples are looked at.
using WindowColumnCounts = std::array<std::array<std::int32_t*, sampled_windows.size()>, 2>;

/// Looks at windows.
void count_windows(const std::array<SurveyedRows, 2>& sides, const WindowColumnCounts& counts,
                   SurveyReport* report, Stream stream);

/// Looks at rows with the same hub, of a square graph.
void count_hub_windows(const SurveyedRows& rows, EdgeOffset num_edges, SurveyReport* report,
                       Stream stream);

/// Finds whether two sides of a square graph are the same, edge by edge.
void compare_sides(const std::array<SurveyedRows, 2>& sides, EdgeOffset num_edges,
                   SurveyReport* report, Stream stream);

struct SurveyedWeights {
  const float* numbers = nullptr;
  std::int64_t count = 0;
};
void find_sizes(const std::array<SurveyedWeights, num_weights>& weights, SurveyReport* report,
                Stream stream);

}  // namespace tessera::tiles
