// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/graph/indices.hpp"

namespace tessera {

/// A CSR in memory of somebody else, a framework's sparse tensor for example: row i lists the
/// sources of target i.
struct BorrowedCsr {
  Indices row_offsets;  ///< num_rows + 1, from 0 to the number of edges
  Indices col_indices;
  std::span<const float> values = {};  ///< empty: the graph is unweighted
  /// Kept while the graph, or anything made of it, needs the arrays. Null: the caller keeps them
  /// for as long, and changes nothing in them.
  std::shared_ptr<const void> owner = {};
};

/// What is known of the columns in each row.
enum class RowOrder {
  checked,   ///< looked at once; an error unless they rise, without repetition and in range
  promised,  ///< the caller knows that they do; nothing is looked at
};

struct BorrowOptions {
  Device device = {};  ///< where the arrays lie
  RowOrder row_order = RowOrder::checked;
  /// The memory of all that is made on a GPU. Null: `default_memory(device)`.
  MemoryResource* memory = nullptr;
  /// Arrays that lie on a GPU are read in its order, so they may still be on their way. The stream
  /// must outlive the graph.
  Stream stream = {};

  Place place() const { return {device, memory, stream}; }
};

/// A graph that reads the arrays where they are. On the CPU, 64-bit offsets, 32-bit columns and
/// values are not copied; on a GPU, 32-bit columns and values are not, and offsets of either width
/// are copied to this process, because schedules are made of them. 64-bit columns are converted
/// into memory of the graph's own, 32 bits each, and are an error where they do not fit.
///
/// Sums by rows would take rows in any order; tiles (one bit for each edge), self loops, transposes
/// and gradients of max and min need columns that rise. So unsorted or repeated columns are an
/// error: build such a graph with `from_coo`, which sorts and merges.
Graph borrow_csr(VertexId num_rows, VertexId num_cols, const BorrowedCsr& csr,
                 const BorrowOptions& options = {});

}  // namespace tessera
