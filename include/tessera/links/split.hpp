// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"

/// Edges as what a model is to predict: which it may see, which it learns to find, and which show
/// how well it does.
namespace tessera::links {

/// Pair k leads from `sources[k]` to `targets[k]`, as an edge of the graph does.
struct Pairs {
  std::vector<VertexId> sources;
  std::vector<VertexId> targets;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(sources.size()); }
  friend bool operator==(const Pairs&, const Pairs&) = default;
};

/// The same as ops take them (ops/pairs.hpp): the sources above the targets.
Matrix<VertexId> as_matrix(const Pairs& pairs);

/// What an edge is for. Edges for supervision are asked for in training, and carry no messages
/// then.
enum class LinkPart : std::uint8_t { train, supervision, validation, test };

/// Shares of the edges, an edge and its reverse counted once; what is left is for training.
/// `supervision` is a share of those for training: at 0 a model is asked for the edges it sees.
struct LinkShares {
  double validation = 0.05;
  double test = 0.1;
  double supervision = 0;

  friend bool operator==(const LinkShares&, const LinkShares&) = default;
};

/// The part of each edge, in the order of the graph's columns (CSR), drawn by chance. An edge and
/// its reverse are always in the same part, so that none gives the other away.
///
/// Shares that are negative or leave nothing for training, and a graph in which a positive share
/// gets no edge, are `invalid_argument` errors; so are rows that list a column twice.
std::vector<LinkPart> draw_link_parts(const Graph& graph, const LinkShares& shares,
                                      std::uint64_t seed);

/// The same by time: the latest edges are for the test, those before them for validation, and of
/// the others the latest are for supervision. `times` has one number per edge, in CSR order; an
/// edge and its reverse are as old as the older of the two. Edges of equal times stay in the order
/// of the graph's rows. A time that is not a number is a `bad_data` error.
std::vector<LinkPart> link_parts_by_time(const Graph& graph, std::span<const double> times,
                                         const LinkShares& shares);

/// What a model gets: the graphs that carry its messages and the pairs that it is asked for.
struct LinkSplit {
  Graph train_graph;
  Graph validation_graph;  ///< has the edges for supervision as well
  Graph test_graph;        ///< has those for validation, too
  /// Of a symmetric graph an edge and its reverse are one pair, the smaller vertex first. Those for
  /// supervision, or where there are none the edges of `train_graph`.
  Pairs train;
  Pairs validation;
  Pairs test;
};

/// Fails where a split by such parts, one for each edge in CSR order, would give edges away: an
/// edge in another part than its reverse is a `bad_data` error that names them. Returns whether an
/// edge and its reverse are one pair to ask for, since the graph is symmetric.
bool check_link_parts(const Graph& graph, std::span<const LinkPart> parts);

/// Splits a graph by parts that `check_link_parts` admits. Values of edges stay with them; scales
/// are refused, since they belong to the degrees of the whole graph: normalise afterwards.
LinkSplit split_links(const Graph& graph, std::span<const LinkPart> parts);

}  // namespace tessera::links
