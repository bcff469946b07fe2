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

namespace tessera::train {
namespace {

/// How many moments the optimiser keeps of each number.
std::int64_t num_moments(const ops::OptimiserOptions& options) {
  if (options.kind != ops::OptimiserKind::sgd) return 2;
  return options.momentum != 0 ? 1 : 0;
}

/// How often each item is chosen and its class, for the steps and for the evaluation; there also
/// which part it is in. Several labels are a number each.
std::int64_t label_bytes(const Problem& problem) {
  const std::int64_t of_item = problem.multi_label() ? 4 + 4 * problem.outputs : 4 + 4;
  return problem.num_items * (2 * of_item + 16);
}

/// How many steps an epoch has.
std::int64_t num_batches(const Problem& problem, const TrainOptions& options) {
  const auto batches = [](std::int64_t whole, std::int64_t part) {
    return std::max<std::int64_t>((whole + part - 1) / part, 1);
  };
  switch (options.batching) {
    case Batching::clusters:
      return batches(options.partition ? options.partition->parts : options.parts,
                     options.parts_per_batch);
    case Batching::graphs:
      return batches(std::ssize(problem.split.train), options.graphs_per_batch);
    default: return 1;
  }
}

/// Which part of everything a step sees.
double batch_share(const Problem& problem, const TrainOptions& options) {
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return std::min(
        1.0, static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1)));
  };
  switch (options.batching) {
    case Batching::clusters:
      return share(options.parts_per_batch,
                   options.partition ? options.partition->parts : options.parts);
    case Batching::graphs: return share(options.graphs_per_batch, problem.num_items);
    default: return 1;
  }
}

std::int64_t scaled(std::int64_t bytes, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

/// A model and the data that it sees, of which only plans are real.
class CountedTraining {
 public:
  CountedTraining(const Problem& problem, const nn::ModelConfig& config,
                  const TrainOptions& options)
      : options_(options),
        placement_(options.placement),
        unused_(options.placement.device(), together_),
        for_plans_(*options.placement.memory, together_),
        tensors_{placement_.precision, &unused_, placement_.stream},
        plans_(options.plans) {
    plans_.epochs = options.epochs;
    const ops::PlanOnly nothing_is_computed;
    model_.emplace(config, problem.num_features(), problem.outputs, options.seed, tensors_);
    model_->leave_out_rewrites(options.rewrites_off);
    model_->set_recompute(options.recompute);
    memory_.parameters = unused_.count().current();
    for (const auto& [path, parameter] : model_->parameters()) {
      if (!parameter->trainable) continue;
      memory_.parameters += num_moments(options.optimiser) * parameter->value.num_bytes();
    }
    if (options.average_weights > 0) {
      for (const auto& [path, tensor] : model_->state()) {
        memory_.parameters += 2 * tensor->num_bytes();
      }
    }
    take_features(problem, config);
    graph_.emplace(problem.graph, for_plans(), plans_);
    if (problem.graph_task) {
      pooling_.emplace(step::pooling_graph(problem.graph_ids, problem.num_items), for_plans(),
                       plans_);
    }
  }

  nn::StepExplanation explain() {
    const ops::PlanOnly nothing_is_computed;
    step::Context context;
    context.graph = &*graph_;
    context.pooling = pooling_ ? &*pooling_ : nullptr;
    context.stream = placement_.stream;
    context.training = true;
    model_->prepare_to_learn(input(), context);
    return model_->explain();
  }

  TrainingMemory run(const Problem& problem) {
    const std::int64_t before = unused_.count().current();
    const ops::PlanOnly nothing_is_computed;
    step::Context context;
    context.graph = &*graph_;
    context.pooling = pooling_ ? &*pooling_ : nullptr;
    context.stream = placement_.stream;
    // Evaluation sees everything, a step its batch. Plans of steps serve evaluation, too, but not
    // the other way round: whatever comes first in training comes first here.
    const bool is_full = options_.batching == Batching::full && !options_.process_every_step;
    if (!is_full) model_->forward(input(), context);
    const std::int64_t forward = unused_.count().peak() - before;
    context.training = true;
    model_->prepare_to_learn(input(), context);
    context.training = false;
    model_->forward(input(), context);
    const std::int64_t both = unused_.count().peak() - before;
    const double share = batch_share(problem, options_);
    memory_.activations = forward + scaled(both - forward, share);
    // What planning takes for a while counts where there is not more of everything later.
    memory_.graph = together_.peak() - unused_.count().peak();
    // On the CPU labels stay where this process has them.
    const bool on_cpu = placement_.device().kind == DeviceKind::cpu;
    if (!on_cpu || placement_.memory == &host_memory()) {
      memory_.rest = label_bytes(problem) + ops::DenseWorkspace::num_bytes(placement_.device());
    }
    if (!is_full) add_batches(share, num_batches(problem, options_));
    if (options_.process_every_step) memory_.graph += edge_bytes(problem.graph);
    const std::int64_t at_once =
        options_.parallel_runs ? std::min<std::int64_t>(options_.runs, num_threads()) : 1;
    for (std::int64_t* bytes : {&memory_.parameters, &memory_.activations, &memory_.graph,
                                &memory_.features, &memory_.rest}) {
      *bytes *= at_once;
    }
    if (placement_.memory == &host_memory()) {
      memory_.data = host_memory_use().current_bytes - for_plans_.count().current();
      if (model_->config().precomputed) memory_.data += propagated_bytes(problem);
    } else if (model_->config().precomputed) {
      // Hops alternate between two matrices, before there is a model.
      const std::int64_t beforehand = 2 * propagated_bytes(problem) + memory_.graph;
      memory_.features += std::max<std::int64_t>(beforehand - memory_.total(), 0);
    }
    return memory_;
  }

 private:
  Place for_plans() { return {placement_.device(), &for_plans_, placement_.stream}; }

  void take_features(const Problem& problem, const nn::ModelConfig& config) {
    const auto* const sparse = std::get_if<SparseFeatures>(&problem.features);
    const bool stays_sparse = model_->accepts_sparse() && !takes_whole_rows(problem, options_);
    if (sparse != nullptr && stays_sparse && !config.precomputed) {
      sparse_.emplace(*sparse, for_plans(), plans_);
      return;
    }
    const std::int64_t before = unused_.count().current();
    dense_.emplace(problem.graph.num_rows(), problem.num_features(), tensors_);
    memory_.features = unused_.count().current() - before;
  }

  static std::int64_t propagated_bytes(const Problem& problem) {
    return problem.graph.num_rows() * problem.num_features() *
           static_cast<std::int64_t>(sizeof(float));
  }

  /// Edges that are processed in every step: two ends each, and a value where there are any.
  static std::int64_t edge_bytes(const Graph& graph) {
    return graph.num_edges() * (graph.has_values() ? 12 : 8);
  }

  /// Parts are kept where a step sees one alone. Others are made anew for every step, and the next
  /// ones already where the device has a queue to work on meanwhile, which the one before the
  /// current one may still be in.
  void add_batches(double share, std::int64_t per_epoch) {
    const bool keeps = !makes_batches_anew(options_);
    const bool works_ahead = why_not_recorded(placement_.device()).empty();
    const std::int64_t ahead = works_ahead ? batches_ahead(options_, per_epoch) : 0;
    const double made = keeps ? 1 : static_cast<double>(ahead > 0 ? 2 + ahead : 1) * share;
    memory_.features += scaled(memory_.features, made);
    memory_.graph += scaled(memory_.graph, made);
  }

  step::Input input() { return dense_ ? step::Input(*dense_) : step::Input(*sparse_); }

  const TrainOptions& options_;
  const step::Placement& placement_;
  ByteCount together_;
  UnusedMemory unused_;
  ForwardedMemory for_plans_;
  step::Placement tensors_;
  ops::PlanOptions plans_;
  TrainingMemory memory_;
  std::optional<nn::Model> model_;
  std::optional<step::Tensor> dense_;
  std::optional<step::Topology> sparse_;
  std::optional<step::Topology> graph_;
  std::optional<step::Topology> pooling_;
};

}  // namespace

TrainingMemory predict_memory(const Problem& problem, const nn::ModelConfig& config,
                              const TrainOptions& options) {
  return CountedTraining(problem, config, options).run(problem);
}

nn::StepExplanation explain_step(const Problem& problem, const nn::ModelConfig& config,
                                 const TrainOptions& options) {
  return CountedTraining(problem, config, options).explain();
}

}  // namespace tessera::train
