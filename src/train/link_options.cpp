// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/link_options.hpp"

#include <array>

#include "tessera/train/options.hpp"

#include "core/names.hpp"

namespace tessera::train {
namespace {

constexpr std::array<Named<LinkLoss>, 3> loss_names = {
    {{LinkLoss::bce, "bce"}, {LinkLoss::bpr, "bpr"}, {LinkLoss::margin, "margin"}}};
constexpr std::array<Named<links::NegativeKind>, 3> negative_names = {
    {{links::NegativeKind::uniform, "uniform"},
     {links::NegativeKind::by_source, "by-source"},
     {links::NegativeKind::by_degree, "by-degree"}}};

}  // namespace

const char* to_string(LinkLoss loss) noexcept { return name_of(loss_names, loss); }
LinkLoss parse_link_loss(const std::string& text) { return parse_name(loss_names, "loss", text); }
const char* to_string(links::NegativeKind kind) noexcept { return name_of(negative_names, kind); }
links::NegativeKind parse_negatives(const std::string& text) {
  return parse_name(negative_names, "kind of negatives", text);
}

nn::ModelConfig link_encoder(nn::ModelKind kind, const std::string& dataset) {
  nn::ModelConfig config = nn::paper_defaults(kind, dataset);
  config.input_dropout = config.dropout = config.attention_dropout = 0;
  config.decay_first_layer_only = false;
  if (kind == nn::ModelKind::gcn || kind == nn::ModelKind::cheb) config.hidden = 32;
  return config;
}

TrainOptions link_training(nn::ModelKind kind) {
  TrainOptions options;
  options.task = Task::links;
  options.optimiser.learning_rate = 0.01;
  options.optimiser.weight_decay = 0;
  if (kind != nn::ModelKind::lightgcn) return options;
  options.links.embedding = 64;
  options.links.loss = LinkLoss::bpr;
  options.links.negatives = links::NegativeKind::by_source;
  return options;
}

}  // namespace tessera::train
