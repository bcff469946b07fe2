// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/progress.hpp"
#include "tessera/graph/graph.hpp"

/// Seeded random graphs. Each is built in parallel, is the same for any number of threads, and has
/// no self loops and no duplicate edges. `symmetric` graphs hold each edge in both directions, and
/// both count; an odd number of entries is then rounded. Parameters without a meaning and graphs
/// that cannot exist, such as more edges than pairs, are `invalid_argument` errors.
namespace tessera::generate {

/// Exactly `edges` entries, drawn uniformly among all pairs.
struct ErdosRenyi {
  VertexId vertices = 1000;
  EdgeOffset edges = 10000;
  bool symmetric = true;
  std::uint64_t seed = 1;
};

/// Recursive matrix (Chakrabarti et al. 2004): 2^scale vertices, skewed degrees. `edges` are drawn
/// before symmetrising and dropping duplicates. `scramble` hides the recursion behind random ids.
struct Rmat {
  int scale = 14;
  EdgeOffset edges = 200000;
  double a = 0.57;
  double b = 0.19;
  double c = 0.19;
  bool scramble = true;
  bool symmetric = true;
  std::uint64_t seed = 1;
};

/// Stochastic block model with contiguous communities of (nearly) equal size: exactly
/// vertices * mean_degree entries, of which a share `inside` has both ends in one community.
struct BlockModel {
  VertexId vertices = 1000;
  VertexId communities = 10;
  double mean_degree = 20;
  double inside = 0.8;
  bool symmetric = true;
  std::uint64_t seed = 1;
};

/// Chung-Lu with power-law weights: the expected degree of the vertex of rank r falls as
/// (r + r0)^(-1 / (exponent - 1)) from `max_degree` on (0: the square root of `edges`), exponent >
/// 2. `edges` entries are drawn; pairs of hubs that come twice are dropped, which the default keeps
/// to a few. Without `scramble` vertices are numbered by rank.
struct ChungLu {
  VertexId vertices = 1000;
  EdgeOffset edges = 10000;
  double exponent = 2.5;
  EdgeOffset max_degree = 0;
  bool scramble = true;
  bool symmetric = true;
  std::uint64_t seed = 1;
};

/// A disjoint union of small molecule-like graphs: chains with branches and a few rings, each
/// connected, at most four neighbours a vertex, symmetric. Sizes vary evenly from half to one and a
/// half times `mean_vertices`; rings are added to each tree until it has the mean degree.
struct Molecules {
  std::int64_t graphs = 100;
  double mean_vertices = 25;
  double mean_degree = 2.1;
  std::uint64_t seed = 1;
};

/// Rectangular: `targets` rows, `sources` columns, exactly `edges` entries drawn uniformly.
struct Bipartite {
  VertexId targets = 1000;
  VertexId sources = 500;
  EdgeOffset edges = 10000;
  std::uint64_t seed = 1;
};

Graph build(const ErdosRenyi& parameters, const Progress& progress = {});
Graph build(const Rmat& parameters, const Progress& progress = {});
Graph build(const BlockModel& parameters, const Progress& progress = {});
Graph build(const ChungLu& parameters, const Progress& progress = {});
Graph build(const Bipartite& parameters, const Progress& progress = {});

struct MoleculeUnion {
  Graph graph;
  std::vector<std::int32_t> graph_ids;  ///< which molecule each vertex belongs to
};
MoleculeUnion build(const Molecules& parameters, const Progress& progress = {});

/// The planted community of every vertex.
std::vector<std::int32_t> communities(const BlockModel& parameters);

}  // namespace tessera::generate
