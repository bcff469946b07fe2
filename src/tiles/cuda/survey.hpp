// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "core/size_range.hpp"
#include "cuda/rows.hpp"
#include "tiles/sample.hpp"

namespace tessera::tiles {

/// See tiles/survey.hpp. The graph lies on the place's GPU.
void survey_on_device(const Graph& graph, bool both_sides, const Place& place);

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

  Sums windows[2][sampled_windows.size()];  ///< by side
  Sums panels;                              ///< of the first side
  Sizes weights[num_weights];
};

/// Rows to look at; null indices and no rows: none.
struct SurveyedRows {
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
};

/// Looks at sampled windows and panels.
void count_samples(const std::array<SurveyedRows, 2>& sides, SurveyReport* report, Stream stream);

struct SurveyedWeights {
  const float* numbers = nullptr;
  std::int64_t count = 0;
};
void find_sizes(const std::array<SurveyedWeights, num_weights>& weights, SurveyReport* report,
                Stream stream);

}  // namespace tessera::tiles
