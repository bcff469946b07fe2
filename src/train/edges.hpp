// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tessera/data/dataset.hpp"
#include "tessera/step/tensor.hpp"
#include "tessera/train/model_input.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {

/// Throws where a model reads features of edges and there are none.
void require_edges(const Dataset& dataset, const nn::ModelConfig& config);
/// Says of other models that what there is plays no part.
void note_edges(const Dataset& dataset, const nn::ModelConfig& config, Problem& problem);

/// Gives a problem the features of edges, where there are any.
void take_edges(const Dataset& dataset, Problem& problem);

/// How those of a problem are brought into one range for training: as features of vertices, but
/// without names they stay as they are unless an option asks for more.
Normalisation edge_normalisation(const TrainOptions& options, const Problem& problem);

/// Does to the features of a problem's edges what training did, and notes it there.
void normalise_edges(const Normalisation& normalisation, Problem& problem);

/// Those of a problem in memory of a device, for its topology; null where there are none.
std::shared_ptr<const step::Tensor> features_of_edges(const Problem& problem,
                                                      const step::Placement& placement);

/// The features of edges as those of the vertices of a data set, so that whatever knows names,
/// categories and means of features knows theirs.
Dataset edges_as_vertices(const Dataset& dataset);

/// A data set whose edges have the features that a model expects (`aligned`).
AlignedData with_aligned_edges(const ModelInput& edges, AlignedData data);

}  // namespace tessera::train
