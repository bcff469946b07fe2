// SPDX-License-Identifier: Apache-2.0
#include "train/data_fingerprint.hpp"

#include <span>
#include <string>

#include <fmt/format.h>

#include "tessera/graph/fingerprint.hpp"

#include "graph/hash.hpp"

namespace tessera::train {
namespace {

constexpr std::uint64_t start = 0x7e55e7a;

std::uint64_t hash_of_matrix(const Matrix<float>& matrix) {
  const auto size = static_cast<std::size_t>(matrix.size());
  return hash_of(std::span<const float>(matrix.data(), size),
                 mixed_hash(start, static_cast<std::uint64_t>(matrix.cols())));
}

std::uint64_t hash_of_weights(const Graph& graph) {
  std::uint64_t hash = hash_of(graph.values().span(), start);
  hash = hash_of(graph.row_scale().span(), hash);
  return hash_of(graph.col_scale().span(), hash);
}

std::uint64_t hash_of_features(const Features& features) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) return hash_of_matrix(**dense);
  const auto& sparse = std::get<SparseFeatures>(features);
  return mixed_hash(fingerprint(sparse), hash_of_weights(sparse));
}

std::uint64_t hash_of_labels(const Problem& problem) {
  if (problem.number_task()) return hash_of_matrix(*problem.numbers.matrix);
  if (problem.multi_label()) return hash_of_matrix(*problem.targets);
  std::uint64_t hash = hash_of(std::span<const std::int64_t>(problem.labels), start);
  return hash_of(std::span<const std::int64_t>(problem.class_values), hash);
}

std::uint64_t hash_of_split(const Split& split, std::uint64_t hash = start) {
  for (const auto* part : {&split.train, &split.validation, &split.test}) {
    hash = hash_of(std::span<const std::int64_t>(*part), hash);
  }
  return hash;
}

std::uint64_t hash_of_splits(const Problem& problem) {
  if (problem.splits.empty()) return hash_of_split(problem.split);
  std::uint64_t hash = start;
  for (const Split& split : problem.splits) hash = hash_of_split(split, hash);
  return hash;
}

}  // namespace

std::vector<Setting> data_fingerprint(const Problem& problem) {
  std::vector<Setting> settings;
  const auto add = [&](const char* part, std::uint64_t hash) {
    settings.push_back({std::string(fingerprint_prefix) + part, fmt::format("{:016x}", hash)});
  };
  add("edges", fingerprint(problem.graph));
  add("weights", hash_of_weights(problem.graph));
  add("features", hash_of_features(problem.features));
  if (problem.edge_features != nullptr) {
    add("features of edges", hash_of_matrix(*problem.edge_features));
  }
  add("labels", hash_of_labels(problem));
  add("split", hash_of_splits(problem));
  if (problem.graph_task) add("graphs", hash_of(problem.graph_ids.span(), start));
  return settings;
}

}  // namespace tessera::train
