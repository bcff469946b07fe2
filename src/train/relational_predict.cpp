// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/fingerprint.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/train/relational.hpp"

#include "core/listing.hpp"
#include "train/data_fingerprint.hpp"
#include "train/host.hpp"
#include "train/name_items.hpp"
#include "train/relational_input.hpp"

namespace tessera::train {
namespace {

constexpr const char* embedding_path = "encoder.embedding.weight";

[[noreturn]] void reject(const std::string& problem, const std::string& where, const char* fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

std::vector<std::string> relation_names(const std::vector<Relation>& relations,
                                        const std::vector<std::string>& kinds) {
  std::vector<std::string> names;
  for (const Relation& relation : relations) {
    names.push_back(fmt::format("{} from {} to {}", in_quotes(relation.name),
                                kinds[static_cast<std::size_t>(relation.source)],
                                kinds[static_cast<std::size_t>(relation.target)]));
  }
  return names;
}

void require_same(const std::vector<std::string>& of_model, const std::vector<std::string>& of_data,
                  const char* what, const std::string& where) {
  if (of_model == of_data) return;
  const auto without = [](std::vector<std::string> all, const std::vector<std::string>& others) {
    std::erase_if(all, [&](const std::string& one) {
      return std::find(others.begin(), others.end(), one) != others.end();
    });
    return all;
  };
  std::string text = fmt::format("{} are not those of the training", what);
  const std::vector<std::string> missing = without(of_model, of_data);
  const std::vector<std::string> others = without(of_data, of_model);
  if (!missing.empty()) text += ": the data lacks " + listed(missing);
  if (!others.empty()) text += ": the model does not know " + listed(others);
  reject(text, where,
         "give the tables of the training, and --symmetrise where relations had inverses then");
}

/// Kinds and relations go by their names and their order, which is that of the names of files.
void require_fit(const RelationalCheckpoint& checkpoint, const RelationalData& data) {
  std::vector<std::string> of_model, of_data;
  for (const KnownKind& kind : checkpoint.kinds) of_model.push_back(in_quotes(kind.name));
  for (const VertexKind& kind : data.graph.kinds()) of_data.push_back(in_quotes(kind.name));
  require_same(of_model, of_data, "kinds of vertices", data.name);
  require_same(relation_names(checkpoint.relations, of_model),
               relation_names(data.graph.relations(), of_data), "relations", data.name);
}

/// The rows that the vertices of a kind without features have among those of the training.
std::vector<std::int64_t> known_rows(const KnownKind& kind, const Dataset& vertices) {
  const std::int64_t count = vertices.graph.num_rows();
  std::vector<std::int64_t> rows;
  constexpr const char* fix = "train the model again with them, or give their kind features";
  if (kind.vertices.empty() || vertices.vertex_names.empty()) {
    if (count > kind.embedded) {
      reject(fmt::format("there are {} vertices of kind {}, the model knows {}", count,
                         in_quotes(kind.name), kind.embedded),
             vertices.name, fix);
    }
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(i);
    return rows;
  }
  std::unordered_map<std::string_view, std::int64_t> number_of;
  for (std::int64_t i = 0; i < kind.vertices.size(); ++i) number_of.emplace(kind.vertices[i], i);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto found = number_of.find(vertices.vertex_names[i]);
    if (found == number_of.end()) {
      reject(fmt::format("{} {} has no features and was not there in training", kind.name,
                         in_quotes(vertices.vertex_names[i])),
             vertices.name, fix);
    }
    rows.push_back(found->second);
  }
  return rows;
}

/// The weights of a model for these vertices: of all embeddings those that they have.
std::vector<StoredTensor> weights_for(const RelationalCheckpoint& checkpoint,
                                      const RelationalData& data) {
  std::vector<StoredTensor> weights = checkpoint.weights;
  for (StoredTensor& tensor : weights) {
    if (tensor.path != embedding_path) continue;
    const auto row_bytes =
        static_cast<std::size_t>(tensor.array.bytes.size() / tensor.array.shape[0]);
    std::vector<std::byte> chosen;
    std::int64_t first = 0, count = 0;
    for (std::size_t k = 0; k < checkpoint.kinds.size(); ++k) {
      if (checkpoint.kinds[k].features > 0) continue;
      for (const std::int64_t row : known_rows(checkpoint.kinds[k], data.kinds[k])) {
        const std::byte* const from =
            tensor.array.bytes.data() + static_cast<std::size_t>(first + row) * row_bytes;
        chosen.insert(chosen.end(), from, from + row_bytes);
        ++count;
      }
      first += checkpoint.kinds[k].embedded;
    }
    tensor.array.shape[0] = count;
    tensor.array.bytes = SharedArray<std::byte>(std::move(chosen));
  }
  // Where none is left, the model has no embedding either.
  std::erase_if(weights, [](const StoredTensor& tensor) {
    return tensor.path == embedding_path && tensor.array.shape[0] == 0;
  });
  return weights;
}

}  // namespace

Checkpoint judged_by(const RelationalCheckpoint& checkpoint, const RelationalData& data) {
  Checkpoint judge;
  judge.outputs = checkpoint.outputs;
  judge.multi_label = checkpoint.multi_label;
  judge.metric = checkpoint.metric;
  judge.class_values = checkpoint.class_values;
  judge.class_names = checkpoint.class_names;
  judge.split = checkpoint.split;
  if (fingerprint_of(data.graph) == checkpoint.fingerprint) {
    const Graph& graph = data.kinds[static_cast<std::size_t>(checkpoint.labelled)].graph;
    judge.settings.push_back(
        {fmt::format("{}edges", fingerprint_prefix), fmt::format("{:016x}", fingerprint(graph))});
  }
  return judge;
}

Prediction predict(const RelationalCheckpoint& checkpoint, const RelationalData& given,
                   const step::Placement& placement) {
  require_fit(checkpoint, given);
  RelationalData data = given;
  std::vector<KnownKind> kinds = checkpoint.kinds;
  Prediction prediction;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (kinds[k].features == 0) {
      kinds[k].embedded = data.kinds[k].graph.num_rows();
      continue;
    }
    AlignedData aligned = train::aligned(kinds[k].input, data.kinds[k]);
    data.kinds[k] = std::move(aligned.dataset);
    for (const std::string& note : aligned.notes) {
      prediction.notes.push_back(kinds[k].name + ", " + note);
    }
  }
  nn::RelationalModel model(checkpoint.model,
                            shape_of(kinds, checkpoint.relations.size(), checkpoint.outputs),
                            placement);
  restore(weights_for(checkpoint, data), model.state(), "checkpoint");
  model.round_parameters(placement.stream);
  std::deque<step::Topology> graphs;
  std::vector<step::Topology*> list;
  for (const Graph& graph : nn::model_graphs(checkpoint.model, data.graph,
                                             kinds_with_features(kinds), checkpoint.labelled)) {
    list.push_back(&graphs.emplace_back(graph, placement.place()));
  }
  const ops::DenseWorkspace workspace(placement.place());
  step::Context context;
  context.graphs = list;
  context.stream = placement.stream;
  context.workspace = &workspace;
  nn::InputFeatures features(stacked_features(kinds, data.kinds), placement, true);
  prediction.logits = to_host(model.forward(features.input(), context), placement.stream);
  name_items(judged_by(checkpoint, data), data.kinds[static_cast<std::size_t>(checkpoint.labelled)],
             prediction);
  return prediction;
}

}  // namespace tessera::train
