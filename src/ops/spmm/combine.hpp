// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/row_schedule.hpp"
#include "ops/spmm/rows.hpp"

/// Puts the partial results of a long row together, in the order of its edges.
namespace tessera::ops {

/// Stores one element of y, as T or wide.
template <class T, class S>
void put(const SpmmRows& rows, VertexId row, std::int64_t feature, S value) {
  const std::int64_t at = static_cast<std::int64_t>(row) * rows.y_stride + feature;
  if (rows.y_is_wide) {
    static_cast<S*>(rows.y)[at] = value;
  } else {
    static_cast<T*>(rows.y)[at] = static_cast<T>(value);
  }
}

/// T is how features are stored, S what they are summed in.
template <class T, class S>
void combine_sums(const SpmmRows& rows, const LongRow& long_row, std::int64_t features) {
  const VertexId row = long_row.row;
  const S scale = rows.row_scale == nullptr ? S(1) : static_cast<const S*>(rows.row_scale)[row];
  const S divisor =
      rows.mean ? static_cast<S>(rows.row_offsets[row + 1] - rows.row_offsets[row]) : S(1);
  const double* const slots = rows.slots + long_row.first_slot * rows.slot_stride;
  for (std::int64_t feature = 0; feature < features; ++feature) {
    double sum = 0;
    for (std::int64_t slot = 0; slot < long_row.num_slots; ++slot) {
      sum += slots[slot * rows.slot_stride + feature];
    }
    put<T>(rows, row, feature, static_cast<S>(sum) * scale / divisor);
  }
}

template <class T, class S>
void combine_best(const SpmmRows& rows, const LongRow& long_row, std::int64_t features) {
  const std::int64_t first = long_row.first_slot * rows.slot_stride;
  for (std::int64_t feature = 0; feature < features; ++feature) {
    std::int64_t best = first + feature;
    for (std::int64_t slot = 1; slot < long_row.num_slots; ++slot) {
      const std::int64_t other = first + slot * rows.slot_stride + feature;
      const double challenger = rows.slots[other];
      const double holder = rows.slots[best];
      if (challenger > holder || (challenger != challenger && holder == holder)) best = other;
    }
    // The value came from the storage's sums, so this narrowing loses nothing.
    put<T>(rows, long_row.row, feature, static_cast<S>(rows.slots[best] * rows.sign));
    if (rows.winners != nullptr) {
      rows.winners[long_row.row * rows.winners_stride + feature] = rows.slot_winners[best];
    }
  }
}

}  // namespace tessera::ops
