// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/row_teams.cuh"

namespace tessera::cuda {

/// A row as a team sees it. A lane keeps its part, of at most `kept` chunks; with 0, for long rows,
/// it is read again at each look.
template <class T, int width, bool aligned, int kept>
class TeamRow {
 public:
  using Team = RowTeam<width, aligned>;
  using Place = Elements<width, aligned>;

  __device__ TeamRow(const Team& team, Rows<const T> rows) : team_(team), rows_(rows) {
#pragma unroll
    for (int i = 0; i < kept; ++i) place(i).load(rows, values_[i]);
  }

  __device__ const Team& team() const { return team_; }

  /// Calls `visit(place, values)` for this lane's chunks.
  template <class Visit>
  __device__ void each(Visit&& visit) const {
    if constexpr (kept > 0) {
#pragma unroll
      for (int i = 0; i < kept; ++i) {
        if (place(i).count > 0) visit(place(i), values_[i]);
      }
    } else {
      team_.each([&](const Place& place) {
        float values[width];
        place.load(rows_, values);
        visit(place, values);
      });
    }
  }

  /// Calls `visit(i, place, values)` with the number of the chunk among this lane's; only where it
  /// keeps them.
  template <class Visit>
  __device__ void each_numbered(Visit&& visit) const {
    static_assert(kept > 0);
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      if (place(i).count > 0) visit(i, place(i), values_[i]);
    }
  }

  /// Calls `visit(place, values, first's, second's)` where two more rows go with this one.
  template <class Visit>
  __device__ void each_with(const TeamRow& first, const TeamRow& second, Visit&& visit) const {
    if constexpr (kept > 0) {
#pragma unroll
      for (int i = 0; i < kept; ++i) {
        if (place(i).count > 0) visit(place(i), values_[i], first.values_[i], second.values_[i]);
      }
    } else {
      team_.each([&](const Place& place) {
        float values[3][width];
        place.load(rows_, values[0]);
        place.load(first.rows_, values[1]);
        place.load(second.rows_, values[2]);
        visit(place, values[0], values[1], values[2]);
      });
    }
  }

 private:
  __device__ Place place(int i) const {
    Place place;
    place.row = team_.row;
    place.cols = team_.cols;
    place.col = team_.begin + std::int64_t{team_.lane + i * team_.lanes} * width;
    const std::int64_t left = team_.end - place.col;
    place.count = static_cast<int>(left < 0 ? 0 : (left < width ? left : width));
    return place;
  }

  Team team_;
  Rows<const T> rows_;
  float values_[kept > 0 ? kept : 1][width];
};

}  // namespace tessera::cuda
