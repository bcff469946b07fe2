// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/embedded.hpp"
#include "tessera/graph/transform.hpp"

#include "core/names.hpp"
#include "graph/index_shuffle.hpp"
#include "graph/random_use.hpp"
#include "graph/select.hpp"

namespace tessera {
namespace {

struct Twin {
  const char* name;
  const char* size;
  const char* description;
};

constexpr std::string_view shuffled_ending = "-shuffled";
constexpr std::uint64_t seed = 1;

/// Of R-MAT so many edges are drawn that as many are left, without loops and duplicates and with
/// their mirror images, as the published comparisons have.
constexpr std::array all_twins = {
    Twin{"cora", "2.7 k vertices, 10.8 k edges", "erdos_renyi?vertices=2708&edges=10800&seed=1"},
    Twin{"pubmed", "19.7 k vertices, 88.7 k edges",
         "erdos_renyi?vertices=19717&edges=88700&seed=1"},
    Twin{"molecules", "1.71 M vertices, 3.59 M edges",
         "molecules?graphs=68585&mean_vertices=25&mean_degree=2.1&seed=1"},
    Twin{"amazon", "410 k vertices, 3.94 M edges",
         "sbm?vertices=410236&communities=20000&mean_degree=9.6&inside=0.8&seed=1"},
    Twin{"rmat17", "131 k vertices, 3.73 M edges",
         "rmat?scale=17&edges=2098017&a=0.57&b=0.19&c=0.19&seed=1"},
    Twin{"proteins", "133 k vertices, 66.3 M edges",
         "sbm?vertices=132534&communities=100&mean_degree=500&inside=0.9&seed=1"},
    Twin{"reddit", "233 k vertices, 111 M edges",
         "sbm?vertices=232965&communities=50&mean_degree=477&inside=0.8&seed=1"},
    Twin{"products", "2.1 M vertices, 114 M edges",
         "rmat?scale=21&edges=61718000&a=0.57&b=0.19&c=0.19&seed=1"},
    Twin{"dbpedia", "18.3 M vertices, 172 M edges",
         "chung_lu?vertices=18300000&edges=172000000&seed=1"},
};

/// The same graph, labels and graph ids under random vertex ids.
void shuffle_vertices(Dataset& dataset, const Progress& progress) {
  report(progress, "shuffling vertices");
  const std::int64_t vertices = dataset.graph.num_rows();
  const IndexShuffle order(static_cast<std::uint64_t>(vertices),
                           Random(seed, generate::shuffle_twin));
  Buffer<VertexId> new_to_old(vertices);
  parallel_for(vertices, even_grain(vertices), [&](std::int64_t v) {
    new_to_old[v] = static_cast<VertexId>(order(static_cast<std::uint64_t>(v)));
  });
  dataset.graph = induced_subgraph(dataset.graph, new_to_old.span());
  dataset.graph_ids = detail::gathered(dataset.graph_ids, new_to_old.span());
  if (const auto* labels = std::get_if<ClassLabels>(&dataset.labels)) {
    dataset.labels = detail::gathered(*labels, new_to_old.span());
  }
}

}  // namespace

std::vector<CatalogueEntry> twins() {
  std::vector<CatalogueEntry> entries;
  for (const auto& [name, size, description] : all_twins) {
    entries.push_back({name, fmt::format("{}: {}", size, description)});
    entries.push_back({fmt::format("{}{}", name, shuffled_ending),
                       fmt::format("{} with random vertex ids", name)});
  }
  return entries;
}

Dataset twin(const std::string& name, const Progress& progress) {
  const bool shuffled = name.ends_with(shuffled_ending);
  const std::string base = shuffled ? name.substr(0, name.size() - shuffled_ending.size()) : name;
  for (const Twin& twin : all_twins) {
    if (base == twin.name) {
      Dataset result = generate_dataset(twin.description, progress);
      if (shuffled) shuffle_vertices(result, progress);
      result.name = name;
      return result;
    }
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown twin '{}'", name), "twin",
              fmt::format("there are {}, each also with '{}' after its name", names_of(all_twins),
                          shuffled_ending));
}

}  // namespace tessera
