// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "tessera/core/placed_array.hpp"
#include "tessera/graph/borrow.hpp"
#include "tessera/graph/process.hpp"

namespace tessera {

namespace detail {
struct CooAccess;
}

/// What an edge weighs, of its value and of a number of each of its ends. docs/ops.md says how
/// another one is added.
enum class WeightFunction {
  product,   ///< value * row_number * col_number: with scales as numbers, what a Graph has
  gaussian,  ///< value * exp(-(row_number - col_number)^2): MoNet's, with one coordinate per vertex
};

const char* to_string(WeightFunction function) noexcept;

/// Edges in memory of somebody else, in no order: edge k is the entry A[rows[k]][cols[k]].
struct BorrowedCoo {
  Indices rows;                        ///< targets
  Indices cols;                        ///< sources
  std::span<const float> values = {};  ///< empty: every value is 1
  /// Kept while the edges, or anything made of them, need the arrays. Null: the caller keeps them
  /// for as long, and changes nothing in them.
  std::shared_ptr<const void> owner = {};
};

/// A sparse matrix as edges in no order, with what a model's rule makes of them. An edge that
/// occurs several times counts several times. Immutable; copies share their arrays.
///
/// A plan on it (`plan_spmm`) either reads the edges as they are (gather-apply-scatter) or makes
/// rows of them first (`graph()`, gather-apply-reduce). Both mean the same matrix.
class Coo {
 public:
  /// No vertices.
  Coo();

  VertexId num_rows() const noexcept { return num_rows_; }
  VertexId num_cols() const noexcept { return num_cols_; }
  /// Without the self loops that the rule adds.
  EdgeOffset num_edges() const noexcept { return rows_.size(); }
  bool has_values() const noexcept { return !values_.empty(); }
  EdgeRule rule() const noexcept { return rule_; }
  float loop_weight() const noexcept { return loop_weight_; }
  WeightFunction function() const noexcept { return function_; }
  /// Where the edges lie. What is made of them is made there.
  const Place& place() const noexcept { return place_; }

  /// The same edges under another rule: `looped` and `gcn` add self loops of this weight where the
  /// edges have none (0: they add none), `looped` forgets values, `gcn` gives the vertices their
  /// scales. Such a matrix is square, and has no numbers of its own.
  Coo with_rule(EdgeRule rule, float loop_weight = 1) const;
  /// The same edges, plain, with numbers of targets and sources that a function weighs them by.
  /// Empty: 1 for all; a gaussian needs both.
  Coo with_numbers(PlacedArray<float> row_numbers, PlacedArray<float> col_numbers,
                   WeightFunction function = WeightFunction::product) const;

  /// The same matrix by rows, where the edges lie: as `process_edges` makes it, with edge ids. Made
  /// at the first call, then kept, and shared by all copies that have the same rule.
  Graph graph() const;
  /// Whether that has been made.
  bool knows_graph() const;

 private:
  friend struct detail::CooAccess;
  struct Kept;

  VertexId num_rows_ = 0;
  VertexId num_cols_ = 0;
  PlacedArray<VertexId> rows_;
  PlacedArray<VertexId> cols_;
  PlacedArray<float> values_;
  PlacedArray<float> row_numbers_;
  PlacedArray<float> col_numbers_;
  WeightFunction function_ = WeightFunction::product;
  EdgeRule rule_ = EdgeRule::plain;
  float loop_weight_ = 1;
  Place place_;
  std::shared_ptr<Kept> kept_;  ///< what was made of the edges, by rule
};

/// Edges that are read where they are: 32-bit indices and values are not copied, 64-bit indices are
/// converted into memory of the result's own. `options.row_order` says whether indices are looked
/// at: on a GPU that waits once.
Coo borrow_coo(VertexId num_rows, VertexId num_cols, const BorrowedCoo& coo,
               const BorrowOptions& options = {});

}  // namespace tessera
