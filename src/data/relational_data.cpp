// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/relational_data.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/listing.hpp"

namespace tessera {
namespace {

bool has_labels(const Dataset& vertices) {
  return !std::holds_alternative<std::monostate>(vertices.labels) || !vertices.targets.empty();
}

}  // namespace

Graph graph_without_edges(VertexId num_vertices) {
  return Graph(num_vertices, num_vertices,
               std::vector<EdgeOffset>(static_cast<std::size_t>(num_vertices) + 1, 0),
               std::vector<VertexId>());
}

void RelationalData::validate() const {
  graph.validate();
  if (kinds.size() != graph.kinds().size()) {
    throw Error(
        ErrorCode::bad_data,
        fmt::format("there are {} kinds, but data of {}", graph.kinds().size(), kinds.size()), name,
        "give what is known of each kind");
  }
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const VertexKind& kind = graph.kinds()[k];
    if (kinds[k].graph.num_rows() != kind.count || kinds[k].graph.num_edges() > 0) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("the data of kind {} is of {} vertices and {} edges, not of {} "
                              "vertices alone",
                              in_quotes(kind.name), kinds[k].graph.num_rows(),
                              kinds[k].graph.num_edges(), kind.count),
                  name, "give a row for each vertex");
    }
    kinds[k].validate();
  }
}

std::int32_t labelled_kind(const RelationalData& data) {
  std::vector<std::string> names;
  std::int32_t found = -1;
  for (std::size_t k = 0; k < data.kinds.size(); ++k) {
    if (!has_labels(data.kinds[k])) continue;
    names.push_back(in_quotes(data.graph.kinds()[k].name));
    found = static_cast<std::int32_t>(k);
  }
  if (names.size() == 1) return found;
  throw Error(ErrorCode::bad_data,
              names.empty() ? "no kind of vertices has labels"
                            : fmt::format("several kinds have labels: {}", listed(names)),
              data.name, "say which column of which kind is learned with --label KIND.COLUMN");
}

RelationalData with_inverses(RelationalData data) {
  data.graph = with_inverses(data.graph);
  return data;
}

}  // namespace tessera
