// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reorder/nm/adjacency.hpp"

namespace tessera::reorder::detail {

/// Some columns and the rows that constrain them, both numbered from 0. A group of columns
/// conforms whatever the others are, so that parts can be grouped on their own.
class ColumnPart {
 public:
  ColumnPart(const Adjacency& adjacency, std::span<const VertexId> columns);

  Adjacency rows_of() const { return {column_offsets_, rows_of_columns_}; }
  Adjacency columns_of() const { return {row_offsets_, columns_}; }
  std::int64_t num_entries() const { return row_offsets_.back(); }

 private:
  std::vector<VertexId> rows_;  // that matter, rising
  std::vector<EdgeOffset> row_offsets_ = {0}, column_offsets_ = {0};
  std::vector<VertexId> columns_, rows_of_columns_;
};

}  // namespace tessera::reorder::detail
