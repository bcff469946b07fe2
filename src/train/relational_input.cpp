// SPDX-License-Identifier: Apache-2.0
#include "train/relational_input.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/fingerprint.hpp"

#include "core/listing.hpp"
#include "graph/hash.hpp"
#include "train/features.hpp"
#include "train/standardise.hpp"

namespace tessera::train {
namespace {

void put_row(const Features& features, VertexId vertex, float* to) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    std::copy_n((*dense)->row(vertex), (*dense)->cols(), to);
    return;
  }
  const auto& sparse = std::get<SparseFeatures>(features);
  for (EdgeOffset e = sparse.row_offsets()[vertex]; e < sparse.row_offsets()[vertex + 1]; ++e) {
    to[sparse.col_indices()[e]] = sparse.weight(vertex, e);
  }
}

Features normalised(const Features& features, const Normalisation& normalisation) {
  switch (normalisation.kind) {
    case Normalise::rows: return row_normalised(features);
    case Normalise::standard: return standardised(features, normalisation);
    case Normalise::automatic:
    case Normalise::off: break;
  }
  return features;
}

}  // namespace

std::vector<bool> kinds_with_features(const std::vector<KnownKind>& kinds) {
  std::vector<bool> has_features;
  for (const KnownKind& kind : kinds) has_features.push_back(kind.features > 0);
  return has_features;
}

nn::RelationalShape shape_of(const std::vector<KnownKind>& kinds, std::size_t relations,
                             std::int64_t outputs) {
  nn::RelationalShape shape;
  for (const KnownKind& kind : kinds) {
    shape.features = std::max(shape.features, kind.features);
    shape.featured_kinds += kind.features > 0 ? 1 : 0;
    shape.embedded += kind.embedded;
  }
  shape.relations = static_cast<std::int64_t>(relations);
  shape.outputs = outputs;
  return shape;
}

std::shared_ptr<const Matrix<float>> stacked_features(const std::vector<KnownKind>& kinds,
                                                      const std::vector<Dataset>& data) {
  std::int64_t rows = 0, width = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (kinds[k].features == 0) continue;
    rows += data[k].graph.num_rows();
    width = std::max(width, kinds[k].features);
  }
  if (width == 0) return std::make_shared<const Matrix<float>>(1, 1, 0.0f);
  auto stacked = std::make_shared<Matrix<float>>(rows, width, 0.0f);
  std::int64_t row = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (kinds[k].features == 0) continue;
    if (data[k].num_features() != kinds[k].features) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("vertices of kind {} have {} features, the model was trained with {}",
                              in_quotes(kinds[k].name), data[k].num_features(), kinds[k].features),
                  "features", "use data of the kind that the model was trained on");
    }
    require_finite(data[k].features);
    const Features features = normalised(data[k].features, kinds[k].normalisation);
    for (VertexId v = 0; v < data[k].graph.num_rows(); ++v) {
      put_row(features, v, stacked->row(row++));
    }
  }
  return stacked;
}

std::string fingerprint_of(const RelationalGraph& graph) {
  std::uint64_t hash = 0;
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
    hash = mixed_hash(hash, fingerprint(graph.graph(r)));
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace tessera::train
