// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>

#include "tessera/core/shared_array.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {

/// A renumbering of vertices: new vertex i is old vertex `new_to_old()[i]`.
class Permutation {
 public:
  Permutation() = default;
  /// Throws `bad_data` unless every number from 0 to size - 1 occurs once.
  explicit Permutation(SharedArray<VertexId> new_to_old);

  static Permutation identity(VertexId size);
  static Permutation random(VertexId size, std::uint64_t seed);

  VertexId size() const noexcept { return static_cast<VertexId>(new_to_old_.size()); }
  const SharedArray<VertexId>& new_to_old() const noexcept { return new_to_old_; }
  bool is_identity() const;
  Permutation inverse() const;
  /// First this, then `next`.
  Permutation then(const Permutation& next) const;

  friend bool operator==(const Permutation&, const Permutation&) = default;

 private:
  SharedArray<VertexId> new_to_old_;
};

std::ostream& operator<<(std::ostream& out, const Permutation& permutation);

/// P A P^T: rows and columns renumbered together. Values, scales and edge ids move along.
Graph permuted(const Graph& graph, const Permutation& permutation);

/// The whole data set renumbered: features, labels, splits and graph ids move with their vertices.
/// Nothing says which of the extra arrays belong to vertices, so their shape decides: one whose
/// first dimension is the number of vertices moves by rows, a matrix whose second dimension alone
/// is (split masks) by columns, and any other stays as it is.
Dataset permuted(const Dataset& dataset, const Permutation& permutation);

}  // namespace tessera
