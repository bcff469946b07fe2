// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/coo.hpp"

namespace tessera::detail {

/// What the library reads of edges in no order beside their public face.
struct CooAccess {
  static Coo make(VertexId num_rows, VertexId num_cols, PlacedArray<VertexId> rows,
                  PlacedArray<VertexId> cols, PlacedArray<float> values, const Place& place);

  static const PlacedArray<VertexId>& rows(const Coo& coo) noexcept { return coo.rows_; }
  static const PlacedArray<VertexId>& cols(const Coo& coo) noexcept { return coo.cols_; }
  static const PlacedArray<float>& values(const Coo& coo) noexcept { return coo.values_; }
  static const PlacedArray<float>& row_numbers(const Coo& coo) noexcept { return coo.row_numbers_; }
  static const PlacedArray<float>& col_numbers(const Coo& coo) noexcept { return coo.col_numbers_; }

  /// Something made of the edges and their rule, shared by all who hold it at the same time: `make`
  /// is called where nobody does.
  static std::shared_ptr<const void> shared(const Coo& coo, const std::string& key,
                                            FunctionRef<std::shared_ptr<const void>()> make);
};

/// Throws `bad_data` that names the first index out of range, for edges that lie on a GPU.
void check_range_on_device(VertexId num_rows, VertexId num_cols, std::span<const VertexId> rows,
                           std::span<const VertexId> cols, const Place& place);

/// The weight of every edge, in the order of the edges, for those that lie on a GPU. `place` is
/// theirs.
Buffer<float> weighed_on_device(const Coo& coo);

/// An array of a GPU that is lent to whoever works there.
PlacedArray<VertexId> placed_on_device(SharedArray<VertexId> values, const Place& place);
PlacedArray<float> placed_on_device(SharedArray<float> values, const Place& place);

}  // namespace tessera::detail
