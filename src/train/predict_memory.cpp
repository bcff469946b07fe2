// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <variant>

#include "tessera/core/parallel.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/train/memory.hpp"

#include "train/batch.hpp"
#include "train/counted_memory.hpp"
#include "train/training_start.hpp"

namespace tessera::train {
namespace {

/// How many moments the optimiser keeps of each number.
std::int64_t num_moments(const ops::OptimiserOptions& options) {
  if (options.kind != ops::OptimiserKind::sgd) return 2;
  return options.momentum != 0 ? 1 : 0;
}

/// A training of which plans are real, and nothing is computed.
class CountedTraining {
 public:
  CountedTraining(const Problem& problem, const nn::ModelConfig& config,
                  const TrainOptions& options)
      : problem_(problem),
        options_(options),
        device_(options.placement.device()),
        tensors_(device_, together_),
        feature_tensors_(device_, together_),
        for_plans_(*options.placement.memory, together_),
        model_(fitted(config, problem), problem.num_features(), problem.outputs, options.seed,
               {options.placement.precision, &tensors_, options.placement.stream}) {
    model_.leave_out_rewrites(options.rewrites_off);
    model_.set_recompute(options.recompute);
    memory_.parameters = tensors_.count().current();
    for (const auto& [path, parameter] : model_.parameters()) {
      if (!parameter->trainable) continue;
      memory_.parameters += num_moments(options.optimiser) * parameter->value.num_bytes();
    }
    if (options.average_weights > 0) {
      for (const auto& [path, tensor] : model_.state()) {
        memory_.parameters += 2 * tensor->num_bytes();
      }
    }
    TrainOptions as_given = options;
    as_given.pattern = {};
    batches_.emplace(problem, placed(problem.split, problem), as_given, form(), options.seed,
                     makes_ahead(options), train_loss(problem, problem.split, options));
  }

  nn::StepExplanation explain() {
    batches_->start_epoch(0);
    Batch& batch =
        draws_samples(options_) ? batches_->batch(0, options_.placement.stream) : batches_->full();
    batches_->wait();
    model_.prepare_to_learn(batch.features.input(), context(batch, true));
    return model_.explain();
  }

  /// What grows is at its largest in an epoch that follows an evaluation.
  TrainingMemory run() {
    const std::int64_t before = tensors_.count().current();
    plan_steps();
    Batch& full = batches_->full();
    std::optional<ops::LossTargets> targets;
    if (batches_->is_full()) {
      targets =
          full.targets_of(full.train_items, problem_.outputs, form().place(), batches_->loss());
    }
    const ops::EvaluationTargets evaluated = full.evaluation_targets(
        placed(problem_.split, problem_), problem_.outputs, form().place(), batches_->loss());
    model_.forward(full.features.input(), context(full, false));
    reset_host_memory_peak();
    plan_steps();
    memory_.activations = tensors_.count().peak() - before;
    memory_.features = feature_tensors_.count().peak();
    // What planning takes for a while counts where there is not more of everything later.
    memory_.graph =
        std::max<std::int64_t>(together_.peak() - tensors_.count().peak() - memory_.features, 0);
    memory_.rest = ops::DenseWorkspace::num_bytes(device_);
    const std::int64_t at_once =
        options_.parallel_runs ? std::min<std::int64_t>(options_.runs, num_threads()) : 1;
    for (std::int64_t* bytes : {&memory_.parameters, &memory_.activations, &memory_.graph,
                                &memory_.features, &memory_.rest}) {
      *bytes *= at_once;
    }
    const bool precomputed = model_.config().precomputed;
    if (options_.placement.memory == &host_memory()) {
      memory_.data = host_memory_use().peak_bytes - for_plans_.count().current();
      if (precomputed) memory_.data += propagated_bytes();
    } else if (precomputed) {
      // Hops alternate between two matrices, before there is a model.
      const std::int64_t beforehand = 2 * propagated_bytes() + memory_.graph;
      memory_.features += std::max<std::int64_t>(beforehand - memory_.total(), 0);
    }
    return memory_;
  }

 private:
  FeatureForm form() {
    FeatureForm form = feature_form(problem_, options_, model_);
    form.densify = form.densify || model_.config().precomputed;
    form.plan_memory = &for_plans_;
    const bool sparse = std::holds_alternative<SparseFeatures>(problem_.features) && !form.densify;
    form.placement.memory = &feature_tensors_;
    if (sparse) form.placement.memory = &for_plans_;
    return form;
  }

  step::Context context(Batch& batch, bool training) {
    step::Context context = batch.context(training, options_.seed, 0);
    context.stream = options_.placement.stream;
    return context;
  }

  /// The largest batch, with those that are made ahead of it, or all where all are kept.
  void plan_steps() {
    const auto [epoch, largest] = batches_->largest();
    batches_->start_epoch(epoch);
    const std::int64_t last = batches_->keeps() ? batches_->batches_per_epoch() - 1 : largest;
    for (std::int64_t i = batches_->keeps() ? 0 : std::max<std::int64_t>(last - 1, 0); i <= last;
         ++i) {
      Batch& batch = batches_->batch(i, options_.placement.stream);
      batches_->wait();  // what is made ahead counts, and takes memory from the same place
      if (batch.train_items.empty()) continue;
      model_.prepare_to_learn(batch.features.input(), context(batch, true));
      batches_->learn_plans(batch);
    }
  }

  std::int64_t propagated_bytes() const {
    return problem_.graph.num_rows() * problem_.num_features() *
           static_cast<std::int64_t>(sizeof(float));
  }

  const ops::PlanOnly nothing_is_computed_;
  const Problem& problem_;
  const TrainOptions& options_;
  Device device_;
  ByteCount together_;
  UnusedMemory tensors_, feature_tensors_;
  ForwardedMemory for_plans_;
  TrainingMemory memory_;
  nn::Model model_;
  std::optional<BatchSource> batches_;
};

}  // namespace

TrainingMemory predict_memory(const Problem& problem, const nn::ModelConfig& config,
                              const TrainOptions& options) {
  return CountedTraining(problem, config, options).run();
}

nn::StepExplanation explain_step(const Problem& problem, const nn::ModelConfig& config,
                                 const TrainOptions& options) {
  return CountedTraining(problem, config, options).explain();
}

}  // namespace tessera::train
