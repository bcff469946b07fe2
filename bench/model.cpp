// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/trainer.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/wide_check.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t drawn_width = 64;
constexpr std::int64_t drawn_classes = 16;

/// Features and labels for a graph that has none.
Dataset drawn_dataset(const Problem& problem) {
  const VertexId vertices = problem.graph.num_rows();
  if (!problem.graph.is_square() || vertices < drawn_classes) {
    throw Error(ErrorCode::unsupported, "models need a square graph of some size",
                problem.graph_name, "use another graph");
  }
  Dataset dataset;
  dataset.name = problem.graph_name;
  dataset.graph = problem.graph;
  const std::int64_t width = problem.features > 0 ? problem.features : drawn_width;
  dataset.features =
      std::make_shared<const Matrix<float>>(random_matrix<float>(vertices, width, problem.seed));
  std::vector<std::int64_t> labels(static_cast<std::size_t>(vertices));
  for (std::size_t v = 0; v < labels.size(); ++v) {
    labels[v] = static_cast<std::int64_t>(v) % drawn_classes;
  }
  dataset.labels = ClassLabels(std::move(labels));
  return dataset;
}

/// The data set itself where it can be learnt from and no width was asked for.
Dataset dataset_of(const Problem& problem) {
  const Dataset* const given = problem.dataset.get();
  const bool usable = given != nullptr && problem.features == 0 && given->num_features() > 0 &&
                      std::holds_alternative<ClassLabels>(given->labels);
  return usable ? *given : drawn_dataset(problem);
}

nn::Tensor logits_of(nn::Model& model, const train::Problem& problem, nn::Placement placement) {
  nn::Topology graph(problem.graph, placement.device());
  nn::InputFeatures features(problem.features, placement, !model.accepts_sparse());
  nn::Context context;
  context.graph = &graph;
  const ops::DenseWorkspace workspace(placement.place());
  context.workspace = &workspace;
  nn::Tensor copy(placement);
  copy.copy_from(model.forward(features.input(), context));
  return copy;
}

/// A model of the paper's shape being trained. Its check compares the logits of fresh weights with
/// those of the same weights in double precision.
class ModelTrial : public Trial {
 public:
  ModelTrial(const Problem& problem, nn::ModelKind kind, bool evaluates)
      : dataset_(dataset_of(problem)),
        config_(nn::paper_defaults(kind, dataset_.name)),
        options_(train::paper_options(kind, dataset_.name)),
        seed_(problem.seed),
        evaluates_(evaluates) {
    options_.task = train::Task::node;
    options_.seed = seed_;
    options_.placement.memory = &default_memory(problem.device);
    options_.plans = problem.plans;
    problem_ = train::prepare(dataset_, config_, options_);
    trainer_ = std::make_unique<train::Trainer>(problem_, problem_.split, config_, options_, seed_);
  }

  Gate check() override {
    const nn::Placement wide{Precision::fp64};
    nn::Model reference(config_, problem_.num_features(), problem_.outputs, seed_, wide);
    const nn::Placement& own = options_.placement;
    nn::Model model(config_, problem_.num_features(), problem_.outputs, seed_, own);
    copy_state(model, reference);
    return wide_gate(logits_of(model, problem_, own), logits_of(reference, problem_, wide));
  }

  void run(Stream) override {
    trainer_->train_epoch();
    if (evaluates_) trainer_->evaluate();
  }

  bool only_queues() const override { return false; }

  /// The features, the adjacency and the parameters, forward and backward.
  std::int64_t bytes() const override {
    const nn::DataShape shape = problem_.shape();
    const std::int64_t entries =
        shape.feature_entries > 0 ? 2 * shape.feature_entries : shape.vertices * shape.features;
    const std::int64_t passes = evaluates_ ? 3 : 2;
    const auto word = static_cast<std::int64_t>(sizeof(float));
    return passes * (word * entries + structure_bytes(problem_.graph, device()));
  }
  std::int64_t features() const override { return problem_.num_features(); }
  std::string kernel() const override {
    return device().kind == DeviceKind::cpu ? "train/cpu/full" : "train/cuda/full";
  }
  std::string plan() const override { return trainer_->model().describe(); }

 private:
  Device device() const { return options_.placement.device(); }

  Dataset dataset_;
  nn::ModelConfig config_;
  train::TrainOptions options_;
  std::uint64_t seed_;
  bool evaluates_;
  train::Problem problem_;
  std::unique_ptr<train::Trainer> trainer_;
};

Suite model_suite(const std::string& name, const std::string& summary, nn::ModelKind kind,
                  bool evaluates) {
  Suite suite;
  suite.op = name + "_" + nn::to_string(kind);
  suite.summary = summary;
  suite.precisions = {Precision::fp32};
  suite.features = {0};
  suite.on_request = true;
  suite.prepare = [kind, evaluates](const Problem& problem) {
    return std::make_unique<ModelTrial>(problem, kind, evaluates);
  };
  return suite;
}

}  // namespace

std::vector<Suite> model_suites() {
  std::vector<Suite> suites;
  for (const CatalogueEntry& entry : nn::model_kinds()) {
    const nn::ModelKind kind = nn::parse_model_kind(entry.name);
    suites.push_back(model_suite("step", "one training step of a model", kind, false));
    suites.push_back(model_suite("epoch", "a training step and its evaluation", kind, true));
  }
  return suites;
}

}  // namespace tessera::bench
