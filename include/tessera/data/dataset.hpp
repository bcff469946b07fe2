// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/core/shared_array.hpp"
#include "tessera/data/names.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {

/// Features kept dense: one row per vertex.
using DenseFeatures = std::shared_ptr<const Matrix<float>>;

/// Features kept sparse: a rectangular Graph with values, row = vertex, column = feature.
using SparseFeatures = Graph;

/// None, dense or sparse.
using Features = std::variant<std::monostate, DenseFeatures, SparseFeatures>;

/// One class per vertex; -1 = unlabelled.
using ClassLabels = SharedArray<std::int64_t>;

/// Several yes/no labels per vertex: vertices x classes of 0 and 1.
using MultiLabels = std::shared_ptr<const Matrix<float>>;

using Labels = std::variant<std::monostate, ClassLabels, MultiLabels>;

/// What is known of edges: a row for each edge of the graph, in its order.
struct EdgeFeatures {
  DenseFeatures matrix;                              ///< null: nothing
  Names names = {};                                  ///< empty: by number
  SharedArray<std::int32_t> category_prefixes = {};  ///< as those of the data set, of these names

  std::int64_t count() const { return matrix == nullptr ? 0 : matrix->cols(); }
  friend bool operator==(const EdgeFeatures& a, const EdgeFeatures& b);
};

/// Numbers that are to be predicted: a row for each vertex, or each graph of a union, and a column
/// for each of them; not-a-number where one is missing.
struct Targets {
  DenseFeatures matrix;  ///< null: there are none
  Names names = {};      ///< of the columns; empty: by number

  bool empty() const { return matrix == nullptr; }
  std::int64_t count() const { return matrix == nullptr ? 0 : matrix->cols(); }
  /// Whether a row has a number at all.
  bool has_any(std::int64_t row) const;
  /// Numbers that are missing are equal.
  friend bool operator==(const Targets& a, const Targets& b);
};

/// What a column is called: by its name, or where none has one "value", and its number beside it
/// where there are several.
std::string target_name(const Names& names, std::int64_t count, std::int64_t column);

/// An array a file carries that Tessera has no use for: kept, so that converting loses nothing.
struct ExtraArray {
  std::string type;  ///< NumPy's name, such as "<i4" or "|b1"
  std::vector<std::int64_t> shape;
  SharedArray<std::byte> bytes;

  friend bool operator==(const ExtraArray&, const ExtraArray&) = default;
};

/// Which vertices are for training, for choosing an epoch and for the test.
struct VertexSplit {
  SharedArray<std::int64_t> train, validation, test;

  friend bool operator==(const VertexSplit&, const VertexSplit&) = default;
};

/// A graph with what is known of its vertices and edges. Who changes its edges calls `change_edges`
/// (tessera/data/change_edges.hpp), so that features stay with theirs.
struct Dataset {
  std::string name;
  Graph graph;
  Features features;
  Labels labels;
  /// Vertex numbers; empty where there is no public split.
  SharedArray<std::int64_t> train, validation, test;
  /// For a union of graphs: which one each vertex belongs to, and each one's class (or empty).
  SharedArray<std::int32_t> graph_ids;
  SharedArray<std::int64_t> graph_labels;
  /// What vertices, classes and features are called where the data came from; empty: by number.
  /// Classes are those of the vertices, or where these have no labels those of the graphs.
  Names vertex_names, class_names, feature_names;
  /// Of features with names: the length of the column's name where a feature is one category of a
  /// column ("colour=red": 6), and -1 where it is a number. Empty: all are numbers.
  SharedArray<std::int32_t> category_prefixes = {};
  /// Features that were missing, and filled in when the data was read: vertex * features + feature,
  /// rising.
  SharedArray<std::int64_t> filled_cells = {};
  std::map<std::string, ExtraArray> extras;
  /// Entries the file listed, before a symmetric one was expanded and duplicates were merged; -1 if
  /// the graph came from no file. Says where the data came from, so `==` ignores it, like `name`.
  EdgeOffset edges_stored = -1;
  /// What reading it guessed, dropped, merged or filled in, one sentence each, for people. Every
  /// report shows them. Ignored by `==`, like `name`.
  std::vector<std::string> notes = {};
  /// Of data with several public splits all of them; the first is `train`, `validation` and `test`.
  std::vector<VertexSplit> splits = {};
  EdgeFeatures edge_features = {};
  /// Of vertices, and of the graphs of a union.
  Targets targets = {}, graph_targets = {};

  std::int64_t num_features() const;
  /// Highest class + 1, or the width of a multi-label matrix; 0 without labels. How many classes
  /// are in use, `class_values` says (tessera/data/classes.hpp).
  std::int64_t num_classes() const;
  /// Graphs in the union; 1 when there are no graph ids.
  std::int64_t num_graphs() const;
  /// What the classes of graphs are called; empty: by number.
  Names graph_class_names() const;
  bool is_multi_label() const { return std::holds_alternative<MultiLabels>(labels); }

  /// Throws `bad_data` unless every part fits the graph, whose rows are the vertices: sizes, labels
  /// >= -1, multi-labels 0 or 1, every vertex in one part of the split at most, graph ids in range,
  /// no edge from one graph of a union to another, features of edges finite and no target infinite.
  /// The graph's weights and scales must be finite, too, unless they may be anything.
  void validate(Nonfinite weights = Nonfinite::reject) const;

  friend bool operator==(const Dataset& a, const Dataset& b);
};

std::ostream& operator<<(std::ostream& out, const Dataset& dataset);

}  // namespace tessera
