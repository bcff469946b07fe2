// SPDX-License-Identifier: Apache-2.0
#include "data/planted.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"

#include "graph/index_shuffle.hpp"
#include "graph/random_use.hpp"

namespace tessera::data {

DenseFeatures planted_features(const std::vector<std::int32_t>& classes, std::int64_t num_classes,
                               std::int64_t num_features, double signal, std::uint64_t seed) {
  if (num_features < 0 || num_features > (std::int64_t{1} << 31) || !std::isfinite(signal)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} features with signal {}", num_features, signal), "sbm",
                "use 0 to 2^31 features and a finite signal");
  }
  const auto vertices = static_cast<std::int64_t>(classes.size());
  auto features = std::make_shared<Matrix<float>>(vertices, num_features);
  Matrix<float> means(num_classes, num_features);
  const double scale = signal / std::sqrt(std::max(1.0, static_cast<double>(num_features)));
  constexpr std::int64_t grain = 1 << 12;
  const Random mean_random(seed, generate::draw_class_means);
  parallel_for(means.size(), grain, [&](std::int64_t i) {
    means.data()[i] = static_cast<float>(scale * mean_random.normal(static_cast<std::uint64_t>(i)));
  });
  const Random noise_random(seed, generate::draw_noise);
  parallel_for(features->size(), grain, [&](std::int64_t i) {
    const std::int32_t label = classes[static_cast<std::size_t>(i / num_features)];
    features->data()[i] = means(label, i % num_features) +
                          static_cast<float>(noise_random.normal(static_cast<std::uint64_t>(i)));
  });
  return features;
}

void plant_split(Dataset& dataset, std::uint64_t seed) {
  const auto vertices = static_cast<std::uint64_t>(dataset.graph.num_rows());
  const IndexShuffle order(vertices, Random(seed, generate::draw_split));
  const auto sorted_slice = [&](std::uint64_t begin, std::uint64_t end) {
    std::vector<std::int64_t> slice;
    for (std::uint64_t k = begin; k < end; ++k) {
      slice.push_back(static_cast<std::int64_t>(order(k)));
    }
    std::sort(slice.begin(), slice.end());
    return slice;
  };
  const std::uint64_t train_end = (vertices + 9) / 10;
  const std::uint64_t validation_end = std::min(vertices, train_end + (vertices + 4) / 5);
  dataset.train = sorted_slice(0, train_end);
  dataset.validation = sorted_slice(train_end, validation_end);
  dataset.test = sorted_slice(validation_end, vertices);
}

SharedArray<std::int64_t> many_ring_labels(const generate::MoleculeUnion& molecules,
                                           std::int64_t num_graphs) {
  // Twice edges - vertices, summed vertex by vertex.
  std::vector<std::int64_t> labels(static_cast<std::size_t>(num_graphs));
  for (std::size_t v = 0; v < molecules.graph_ids.size(); ++v) {
    labels[static_cast<std::size_t>(molecules.graph_ids[v])] +=
        molecules.graph.degree(static_cast<VertexId>(v)) - 2;
  }
  for (std::int64_t& label : labels) label = label / 2 + 1 > 2 ? 1 : 0;
  return labels;
}

}  // namespace tessera::data
