// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/data/kinds.hpp"
#include "tessera/links/negatives.hpp"
#include "tessera/links/split.hpp"
#include "tessera/nn/link_model.hpp"

namespace tessera::train {

/// What a model that predicts links learns from.
enum class LinkLoss {
  bce,     ///< `links::bce_loss`: yes or no of each pair
  bpr,     ///< `links::bpr_loss`: a pair before its negatives
  margin,  ///< `links::margin_loss`: the same, until it is by so much
};

const char* to_string(LinkLoss loss) noexcept;
LinkLoss parse_link_loss(const std::string& text);
const char* to_string(links::NegativeKind kind) noexcept;
links::NegativeKind parse_negatives(const std::string& text);

/// How links are trained (`Task::links`).
struct LinkOptions {
  nn::LinkDecoderKind decoder = nn::LinkDecoderKind::dot;
  std::int64_t embedding = 16;  ///< numbers of a vertex
  /// Embeddings are drawn in training, as `nn::LinkModelOptions::variational` says.
  bool variational = false;
  LinkLoss loss = LinkLoss::bce;
  double margin = 1;
  links::LinkShares shares;
  /// The part of each edge, in the order of the graph's columns; empty: drawn by `shares`.
  std::vector<links::LinkPart> parts = {};
  /// A feature of the edges: the latest are for the test, those before them for validation. Empty:
  /// drawn by chance.
  std::string time = {};
  /// Those of training, others in every step; the ones that epochs are judged by are uniform.
  links::NegativeKind negatives = links::NegativeKind::uniform;
  std::int64_t per_positive = 1;
  /// A step asks for so many of the pairs of training at most, of which an epoch has as many steps
  /// as they make, all of one size; the few that are left over are others in each epoch. 0: for all
  /// of them, in one step.
  std::int64_t pairs_per_batch = 0;
  /// Whether negatives of training avoid the edges that are held out, too, as those of PyG's
  /// `RandomLinkSplit`: a model can learn from what is missing which pairs these are.
  bool avoids_held_out = false;
  /// Given: links are from vertices of the first kind to those of the second, which alone are drawn
  /// and listed. The names of the vertices say their kinds.
  Kinds kinds = {};
  /// The length of the lists that `Metric::recall` and `Metric::ndcg` judge.
  std::int64_t top = 20;
};

}  // namespace tessera::train
