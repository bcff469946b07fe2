// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/train/optimiser.hpp"
#include "tessera/train/triples.hpp"

#include "train/finite_loss.hpp"
#include "train/host.hpp"
#include "train/link_scores.hpp"
#include "train/triple_batch.hpp"

namespace tessera::train {
namespace {

const KnowledgeGraph& checked(const KnowledgeGraph& graph, const TripleOptions& options) {
  const auto reject = [](const std::string& what, const char* fix) {
    throw Error(ErrorCode::invalid_argument, what, "training on triples", fix);
  };
  graph.validate();
  if (graph.train.size() == 0) reject("there are no triples to train on", "give some");
  if (options.triples_per_step < 1 || options.negatives < 1) {
    reject(fmt::format("{} triples in a step and {} negatives of each", options.triples_per_step,
                       options.negatives),
           "give at least one of each");
  }
  if (!(options.edge_dropout >= 0 && options.edge_dropout < 1)) {
    reject(fmt::format("an edge dropout of {}", options.edge_dropout),
           "give at least 0 and less than 1");
  }
  return graph;
}

nn::TripleModelOptions model_of(const KnowledgeGraph& graph, const TripleOptions& options) {
  nn::TripleModelOptions model = options.model;
  model.entities = graph.num_entities();
  model.relations = graph.num_relations();
  return model;
}

/// Of steps that have at most so many triples each, as even as they can be.
std::int64_t size_of_step(std::int64_t triples, std::int64_t most) {
  return triples / ((triples + most - 1) / most);
}

/// The graphs of a pass, on the device.
class Graphs {
 public:
  Graphs(const RelationSegments& segments, std::int64_t layers, const Place& place)
      : segments_{step::Topology(segments.edges, place), step::Topology(segments.relations, place),
                  step::Topology(segments.targets, place)} {
    for (std::int64_t i = 0; i < layers; ++i) {
      for (step::Topology& graph : segments_) list_.push_back(&graph);
    }
  }

  void add_groups(Graph groups, const Place& place) {
    groups_ = std::make_unique<step::Topology>(std::move(groups), place);
    list_.push_back(groups_.get());
  }
  std::span<step::Topology* const> list() const noexcept { return list_; }

 private:
  std::array<step::Topology, 3> segments_;
  std::unique_ptr<step::Topology> groups_;
  std::vector<step::Topology*> list_;
};

}  // namespace

struct TripleTrainer::State {
  State(const KnowledgeGraph& data, const TripleOptions& given)
      : graph(checked(data, given)),
        options(given),
        place(given.placement.place()),
        workspace(place),
        model(drawn(data, given)),
        optimiser(*model, given.optimiser),
        vertices(data.num_entities(), 1, given.placement),
        draw{size_of_step(data.train.size(), given.triples_per_step), given.negatives, given.seed},
        loss_options{ops::PairLossKind::bce, draw.size},
        pairs(draw.size * (1 + draw.negatives), place),
        ends(data.num_entities(), pairs.size(), place),
        step_loss(1, place) {
    vertices.fill(0);
  }

  static std::unique_ptr<nn::TripleModel> drawn(const KnowledgeGraph& graph,
                                                const TripleOptions& options) {
    auto model = std::make_unique<nn::TripleModel>(model_of(graph, options), options.placement);
    model->reset_parameters(options.seed);
    return model;
  }

  Graphs message_graphs(double dropped) const {
    const bool has_layers = options.model.layers > 0;
    const Triples messages = has_layers ? message_triples(graph.train, graph.num_relations(),
                                                          dropped, options.seed, step)
                                        : Triples();
    return {segments_of(messages, graph.num_entities(), 2 * graph.num_relations()),
            options.model.layers, place};
  }

  step::Context context() {
    step::Context context;
    context.seed = options.seed;
    context.step = static_cast<std::uint32_t>(step);
    context.stream = place.stream;
    context.workspace = &workspace;
    return context;
  }

  double train_step() {
    const AskedTriples asked = drawn_triples(graph.train, graph.num_entities(), draw, step);
    pairs.set(0, asked.ends, place.stream);
    ends.list(pairs, place.stream);
    Graphs graphs = message_graphs(options.edge_dropout);
    graphs.add_groups(asked.groups(graph.num_relations()), place);
    step::Context context = this->context();
    context.graphs = graphs.list();
    context.pairs = pairs;
    context.pair_ends = &ends;
    context.pair_loss = &loss_options;
    context.loss = step_loss.data();
    context.training = true;
    context.clock = optimiser.clock();
    model->learn(vertices, context);
    optimiser.step(place.stream, &workspace);
    ++step;
    double loss = 0;
    copy_bytes(&loss, step_loss.data(), sizeof(loss), place.device, place.stream);
    synchronise(place.device, place.stream);
    return loss;
  }

  const KnowledgeGraph& graph;
  TripleOptions options;
  Place place;
  ops::DenseWorkspace workspace;
  std::unique_ptr<nn::TripleModel> model;
  Optimiser optimiser;
  step::Tensor vertices;  ///< what stands for the features that there are not
  TripleDraw draw;
  ops::PairLossOptions loss_options;
  PlacedPairs pairs;
  ops::PairEnds ends;
  Buffer<double> step_loss;
  std::int64_t step = 0, epoch = 0;
};

TripleTrainer::TripleTrainer(const KnowledgeGraph& graph, const TripleOptions& options)
    : state_(std::make_unique<State>(graph, options)) {}
TripleTrainer::~TripleTrainer() = default;

double TripleTrainer::train_epoch() {
  State& state = *state_;
  const std::int64_t steps = state.graph.train.size() / state.draw.size;
  double sum = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    report(state.options.progress, fmt::format("epoch {}", state.epoch + 1), i, steps);
    sum += state.train_step();
  }
  const double loss = sum / static_cast<double>(steps);
  require_finite_loss(loss, ++state.epoch);
  return loss;
}

std::int64_t TripleTrainer::epoch() const noexcept { return state_->epoch; }
nn::TripleModel& TripleTrainer::model() noexcept { return *state_->model; }

Matrix<float> TripleTrainer::entities() {
  State& state = *state_;
  const Graphs graphs = state.message_graphs(0);
  step::Context context = state.context();
  context.graphs = graphs.list();
  return to_host(state.model->encoder().forward(state.vertices, context), state.place.stream);
}

Matrix<float> TripleTrainer::relations() {
  return to_host(state_->model->decoder().relations().value, state_->place.stream);
}

}  // namespace tessera::train
