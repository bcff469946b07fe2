// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>
#include <vector>

#include "tessera/data/embedded.hpp"
#include "tessera/graph/generate.hpp"

#include "core/names.hpp"
#include "data/description.hpp"
#include "data/planted.hpp"

namespace tessera {
namespace {

using data::Description;
using data::Parameter;

/// A block model with what a node classifier needs beside the graph.
struct PlantedModel : generate::BlockModel {
  std::int64_t features = 0;
  double signal = 1;
};

template <class Model>
Dataset make_dataset(const Model& model, const Progress& progress) {
  Dataset result;
  result.graph = generate::build(model, progress);
  return result;
}

Dataset make_dataset(const PlantedModel& model, const Progress& progress) {
  Dataset result;
  result.graph = generate::build(model, progress);
  const std::vector<std::int32_t> communities = generate::communities(model);
  result.labels = ClassLabels(std::vector<std::int64_t>(communities.begin(), communities.end()));
  if (model.features != 0) {
    report(progress, "drawing features");
    result.features = data::planted_features(communities, model.communities, model.features,
                                             model.signal, model.seed);
    data::plant_split(result, model.seed);
  }
  return result;
}

Dataset make_dataset(const generate::Molecules& model, const Progress& progress) {
  generate::MoleculeUnion molecules = generate::build(model, progress);
  Dataset result;
  result.graph_labels = data::many_ring_labels(molecules, model.graphs);
  result.graph = std::move(molecules.graph);
  result.graph_ids = std::move(molecules.graph_ids);
  return result;
}

struct Kind {
  const char* name;
  const char* summary;
  std::string parameters;
  std::function<Dataset(const Description&, const Progress&)> build;
};

template <class Model>
Kind kind(const char* name, const char* summary, std::vector<Parameter<Model>> table) {
  std::string parameters = data::list_parameters(table);
  return {name, summary, std::move(parameters),
          [table = std::move(table)](const Description& description, const Progress& progress) {
            return make_dataset(data::read_parameters(description, table), progress);
          }};
}

template <class Model>
Parameter<Model> symmetric() {
  return {"symmetric", "each edge in both directions", &Model::symmetric};
}
template <class Model>
Parameter<Model> seed() {
  return {"seed", "of the random numbers", &Model::seed};
}

const std::vector<Kind>& kinds() {
  using generate::Bipartite, generate::ChungLu, generate::ErdosRenyi, generate::Molecules,
      generate::Rmat;
  static const std::vector<Kind> all = {
      kind<ErdosRenyi>("erdos_renyi", "edges drawn uniformly among all pairs",
                       {{"vertices", "number of them", &ErdosRenyi::vertices},
                        {"edges", "entries of the matrix", &ErdosRenyi::edges},
                        symmetric<ErdosRenyi>(),
                        seed<ErdosRenyi>()}),
      kind<Rmat>("rmat", "recursive matrix: skewed degrees",
                 {{"scale", "2^scale vertices", &Rmat::scale},
                  {"edges", "drawn before symmetrising", &Rmat::edges},
                  {"a", "share of the upper left quarter", &Rmat::a},
                  {"b", "of the upper right", &Rmat::b},
                  {"c", "of the lower left", &Rmat::c},
                  {"scramble", "random vertex ids", &Rmat::scramble},
                  symmetric<Rmat>(),
                  seed<Rmat>()}),
      kind<PlantedModel>(
          "sbm", "stochastic block model: communities are the labels",
          {{"vertices", "number of them", &PlantedModel::vertices},
           {"communities", "contiguous, of equal size", &PlantedModel::communities},
           {"mean_degree", "edges per vertex", &PlantedModel::mean_degree},
           {"inside", "share of the edges inside communities", &PlantedModel::inside},
           {"features", "dense, Gaussian, with a split; 0 for none", &PlantedModel::features},
           {"signal", "length of a class mean, noise being 1", &PlantedModel::signal},
           symmetric<PlantedModel>(),
           seed<PlantedModel>()}),
      kind<ChungLu>("chung_lu", "power-law degrees",
                    {{"vertices", "number of them", &ChungLu::vertices},
                     {"edges", "entries drawn", &ChungLu::edges},
                     {"exponent", "of the degrees, above 2", &ChungLu::exponent},
                     {"max_degree", "expected; 0 for the root of edges", &ChungLu::max_degree},
                     {"scramble", "random vertex ids", &ChungLu::scramble},
                     symmetric<ChungLu>(),
                     seed<ChungLu>()}),
      kind<Molecules>("molecules", "a union of molecule-like graphs",
                      {{"graphs", "number of them", &Molecules::graphs},
                       {"mean_vertices", "of a graph", &Molecules::mean_vertices},
                       {"mean_degree", "edges per vertex", &Molecules::mean_degree},
                       seed<Molecules>()}),
      kind<Bipartite>("bipartite", "rectangular, edges drawn uniformly",
                      {{"targets", "rows", &Bipartite::targets},
                       {"sources", "columns", &Bipartite::sources},
                       {"edges", "entries of the matrix", &Bipartite::edges},
                       seed<Bipartite>()}),
  };
  return all;
}

}  // namespace

std::vector<CatalogueEntry> generator_kinds() {
  std::vector<CatalogueEntry> entries;
  for (const Kind& kind : kinds()) {
    entries.push_back({kind.name, fmt::format("{}; {}", kind.summary, kind.parameters)});
  }
  return entries;
}

Dataset generate_dataset(const std::string& description, const Progress& progress) {
  const Description parsed = data::parse_description(description);
  const Kind& kind = find_named(kinds(), parsed.kind, "kind of graph", "generate", "there are ");
  Dataset result = kind.build(parsed, progress);
  result.name = description;
  return result;
}

}  // namespace tessera
