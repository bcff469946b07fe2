// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/problem.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/nn/input.hpp"
#include "tessera/nn/powers.hpp"

#include "train/batch.hpp"
#include "train/blockwise_pass.hpp"
#include "train/class_weights.hpp"
#include "train/data_fingerprint.hpp"
#include "train/edges.hpp"
#include "train/features.hpp"
#include "train/host.hpp"
#include "train/items.hpp"
#include "train/link_problem.hpp"
#include "train/neighbour_options.hpp"
#include "train/number_targets.hpp"
#include "train/pattern_order.hpp"
#include "train/standardise.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

std::size_t index_of(std::int64_t item) { return static_cast<std::size_t>(item); }

Features vertex_numbers(const Graph& graph) {
  std::vector<std::int64_t> columns(index_of(graph.num_rows()));
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  return one_hot(columns, graph.num_rows());
}

/// Vertices of this many neighbours and more look alike.
constexpr std::int64_t highest_degree = 511;

Features degrees(const Graph& graph) {
  std::vector<std::int64_t> columns(index_of(graph.num_rows()));
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    columns[index_of(v)] = std::min<std::int64_t>(graph.degree(v), highest_degree);
  }
  return one_hot(columns, highest_degree + 1);
}

void add_missing_features(const Dataset& dataset, Problem& problem) {
  const auto* const labels = std::get_if<ClassLabels>(&dataset.labels);
  if (!problem.graph_task) {
    problem.features = vertex_numbers(dataset.graph);
    problem.notes.emplace_back("no features in the data: each vertex gets one of its own");
  } else if (labels != nullptr) {
    problem.features = one_hot(*labels, dataset.num_classes());
    problem.notes.emplace_back("no features in the data: vertex labels are used");
  } else {
    problem.features = degrees(dataset.graph);
    problem.notes.emplace_back("no features in the data: degrees are used");
  }
}

/// For a model that reads no features, since it learns an embedding of each vertex.
void take_vertex_numbers(const Dataset& dataset, Problem& problem) {
  if (dataset.num_features() > 0) {
    problem.notes.emplace_back("features of the data play no part in lightgcn");
  }
  problem.features = vertex_numbers(dataset.graph);
}

/// Features in an order of the vertices, or back again.
Features moved(const Features& features, const Permutation& order) {
  return order.size() == 0 ? features : take_rows(features, order.new_to_old());
}

void propagate_beforehand(const nn::ModelConfig& config, const TrainOptions& options,
                          Problem& problem) {
  const std::int64_t hops = nn::precomputed_hops(config);
  report(options.progress, "propagating features");
  ops::PlanOptions once = options.plans;
  once.epochs = hops;
  // What is computed once is rounded once, at the end.
  const step::Placement placement = options.placement.wide();
  const Permutation order = std::exchange(problem.order, {});
  nn::InputFeatures features(moved(problem.features, order), placement, false, once);
  step::Topology topology(order.size() == 0 ? problem.graph : permuted(problem.graph, order),
                          placement.place(), once);
  const step::Tensor product = nn::propagated(features.input(), topology, hops, placement);
  problem.features =
      moved(std::make_shared<const Matrix<float>>(to_host(product)), order.inverse());
  problem.notes.push_back(
      fmt::format("features propagated {} {} beforehand", hops, hops == 1 ? "hop" : "hops"));
}

/// Of numbers what the loss is closest to.
Metric chosen_metric(const Problem& problem, const TrainOptions& options) {
  const Metric asked = options.metric;
  if (problem.number_task() || is_of_numbers(asked)) {
    if (asked == Metric::automatic) {
      return options.numbers.loss == ops::NumberLoss::squared ? Metric::rmse : Metric::mae;
    }
    if (problem.number_task() == is_of_numbers(asked)) return asked;
    reject(fmt::format("{} of {}", to_string(asked), problem.number_task() ? "numbers" : "classes"),
           "metric",
           problem.number_task() ? "use rmse, mae or r2" : "use accuracy, or --task numbers");
  }
  if (asked == Metric::automatic) {
    return problem.multi_label() ? Metric::micro_f1 : Metric::accuracy;
  }
  if (is_of_lists(asked)) {
    reject(fmt::format("{} of classes", to_string(asked)), "metric",
           "use accuracy, or Task::links");
  }
  if (problem.multi_label() && asked == Metric::accuracy) {
    reject("accuracy of several labels per item", "metric", "use micro_f1 or roc_auc");
  }
  if (!problem.multi_label() && asked == Metric::micro_f1) {
    reject("micro_f1 of one label per item is its accuracy", "metric", "use accuracy");
  }
  return asked;
}

/// Numbers have no classes that weigh, and bits are made for classes.
void require_number_options(const nn::ModelConfig& config, const TrainOptions& options) {
  const auto refuse = [](bool given, const char* what) {
    if (given) reject("does not go with numbers", what, "leave it out, or learn classes");
  };
  refuse(!options.class_weights.none(), "class_weights");
  refuse(options.label_smoothing > 0, "label_smoothing");
  refuse(!config.bits.empty(), "bits");
}

/// Whether some edge has no edge back. Of very many rows some stand for all.
bool is_directed(const Graph& graph) {
  constexpr EdgeOffset edges_to_look_at = 1 << 24;
  const std::int64_t stride = std::max<std::int64_t>(1, graph.num_edges() / edges_to_look_at);
  return parallel_reduce(
      graph.num_rows() / stride, std::int64_t{1} << 10, false,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          const auto row = static_cast<VertexId>(k * stride);
          for (const VertexId source : graph.neighbours(row)) {
            const auto back = graph.neighbours(source);
            if (!std::binary_search(back.begin(), back.end(), row)) return true;
          }
        }
        return false;
      },
      [](bool a, bool b) { return a || b; });
}

void require_fit(const nn::ModelConfig& config, bool graph_task) {
  nn::validate(config);
  if (config.readout.has_value() == graph_task) return;
  reject(graph_task ? "whole graphs are asked for, but the model has no readout"
                    : "single vertices are asked for, but the model has a readout",
         "model",
         graph_task ? "set a readout (--readout sum)" : "leave the readout out (--readout)");
}

/// Vertices whose features training may look at. The graphs of a union that are tested are unknown
/// until then. In one graph every step sees the features of all vertices anyway, and the few that
/// are for training would say little of the columns.
Features seen_in_training(const Problem& problem) {
  if (!problem.graph_task) return problem.features;
  std::vector<bool> trained(index_of(problem.num_items), false);
  for (const std::int64_t graph : problem.split.train) trained[index_of(graph)] = true;
  std::vector<VertexId> vertices;
  for (VertexId v = 0; v < problem.graph.num_rows(); ++v) {
    if (trained[index_of(problem.graph_ids[v])]) vertices.push_back(v);
  }
  return take_rows(problem.features, vertices);
}

Normalisation standard(const Dataset& dataset, const TrainOptions& options, Problem& problem) {
  if (dataset.num_features() == 0) {
    reject("the data has no features to bring to mean 0 and deviation 1", dataset.name,
           "use --normalise off");
  }
  if (problem.graph_task && options.folds > 0) {
    reject("every fold would have means and deviations of its own", "normalise",
           "use --normalise rows or off, or a split instead of --folds");
  }
  if (std::holds_alternative<SparseFeatures>(problem.features)) {
    problem.notes.emplace_back(
        "features are sparse: divided by the deviations of their columns, means stay");
  }
  return standard_normalisation(seen_in_training(problem));
}

Normalisation chosen_normalisation(const Dataset& dataset, const nn::ModelConfig& config,
                                   const TrainOptions& options, Problem& problem) {
  if (config.kind == nn::ModelKind::lightgcn) return {};
  switch (options.normalise) {
    case Normalise::off: return {};
    case Normalise::rows: return {Normalise::rows, {}, {}};
    case Normalise::standard: return standard(dataset, options, problem);
    case Normalise::automatic: break;
  }
  if (problem.graph_task) return {};
  // A table's columns have units of their own: adding up a row of them means nothing.
  if (!dataset.feature_names.empty()) {
    problem.notes.emplace_back(
        "features have names: columns brought to mean 0 and deviation 1 (--normalise)");
    return standard(dataset, options, problem);
  }
  if (any_negative(problem.features)) return {};
  return {Normalise::rows, {}, {}};
}

void require_width(const Normalisation& normalisation, const Problem& problem) {
  if (normalisation.kind != Normalise::standard) return;
  const std::int64_t width = std::ssize(normalisation.means);
  if (problem.num_features() == width) return;
  reject(fmt::format("the data has {} features, the model was trained with {}",
                     problem.num_features(), width),
         problem.name, "use data of the kind the model was trained on");
}

/// Of weights that play no part, or of which some sums have no root.
void note_weights(const nn::ModelConfig& config, Problem& problem) {
  using Kind = nn::ModelKind;
  if (!problem.graph.is_weighted()) return;
  const bool count = config.kind == Kind::gcn || config.kind == Kind::sgc ||
                     config.kind == Kind::cheb || config.kind == Kind::lightgcn;
  if (!count) {
    problem.notes.push_back(
        fmt::format("the weights of edges play no part in {}", nn::to_string(config.kind)));
    return;
  }
  const auto values = problem.graph.values().span();
  if (std::any_of(values.begin(), values.end(), [](float value) { return value < 0; })) {
    problem.notes.emplace_back(
        "some weights are negative: vertices whose weights sum to 0 or less take no part in sums");
  }
}

Problem start(const Dataset& dataset, const nn::ModelConfig& config, bool graph_task) {
  require_fit(config, graph_task);
  dataset.validate();
  if (!dataset.graph.is_square()) {
    reject(fmt::format("the graph is {} x {}", dataset.graph.num_rows(), dataset.graph.num_cols()),
           dataset.name, "use a graph whose targets are its sources");
  }
  Problem problem;
  problem.name = dataset.name;
  problem.graph_task = graph_task;
  problem.graph = dataset.graph;
  problem.features = dataset.features;
  if (config.kind == nn::ModelKind::lightgcn) {
    take_vertex_numbers(dataset, problem);
  } else if (dataset.num_features() == 0) {
    add_missing_features(dataset, problem);
  }
  require_finite(problem.features);
  note_weights(config, problem);
  if (is_directed(problem.graph)) {
    problem.notes.emplace_back(
        "the graph is directed: messages follow its edges one way only; --symmetrise makes them go "
        "both ways");
  }
  return problem;
}

/// Attention and messages have values of their own for each edge, which no pattern makes faster.
void reject_useless_pattern(const nn::ModelConfig& config, const TrainOptions& options) {
  using Kind = nn::ModelKind;
  const bool has_values_of_edges = config.kind == Kind::gat || config.kind == Kind::gatv2 ||
                                   config.kind == Kind::agnn || nn::reads_edges(config);
  if (!has_values_of_edges || options.pattern.kind == PatternChoice::Kind::off) return;
  reject(fmt::format("a pattern does nothing for {}", nn::to_string(config.kind)), "pattern",
         "leave it out, or use gcn, sage, gin, sgc or cheb");
}

/// Batches have orders of their own; what is propagated beforehand is propagated over all vertices.
void find_order(const nn::ModelConfig& config, const TrainOptions& options, Problem& problem) {
  problem.product_width = config.hidden;
  // Forward, backward, evaluation; what is propagated beforehand multiplies with no batch.
  problem.products_per_epoch = config.precomputed ? 0 : 3 * config.layers;
  if (options.pattern.kind == PatternChoice::Kind::off) return;
  if (problem.graph.has_repeated_edges()) {
    reject("a pattern of edges of which some are listed twice", "pattern",
           "leave it out, or read the data with --duplicates first");
  }
  if (options.batching != Batching::full && !config.precomputed) {
    problem.notes.push_back(fmt::format("the vertices of each batch are reordered: pattern {}",
                                        to_string(options.pattern)));
    return;
  }
  const std::int64_t products = config.precomputed
                                    ? nn::precomputed_hops(config)
                                    : problem.products_per_epoch * options.epochs * options.runs;
  PatternOrder found = find_pattern_order(
      problem.graph, options.pattern,
      expected_products(options, config.precomputed ? problem.num_features() : config.hidden,
                        products),
      options.seed, options.progress);
  problem.order = std::move(found.order);
  problem.notes.push_back(std::move(found.note));
}

void finish_features(const nn::ModelConfig& config, const Normalisation& normalisation,
                     const TrainOptions& options, Problem& problem) {
  problem.normalisation = normalisation;
  problem.counts_entries = config.input_dropout > 0 || !config.bits.empty();
  if (normalisation.kind == Normalise::standard) {
    problem.features = standardised(problem.features, normalisation);
  }
  // Before rows are normalised: their factors are no part of the codes.
  if (!config.bits.empty()) {
    problem.features = rounded(problem.features, nn::layer_bits(config, 0), problem.feature_reach);
  }
  if (normalisation.kind == Normalise::rows) problem.features = row_normalised(problem.features);
  if (config.precomputed) propagate_beforehand(config, options, problem);
}

}  // namespace

std::int64_t Problem::num_features() const {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) return (*dense)->cols();
  if (const auto* sparse = std::get_if<SparseFeatures>(&features)) return sparse->num_cols();
  return 0;
}

nn::ModelConfig fitted(const nn::ModelConfig& config, const Problem& problem) {
  nn::ModelConfig sized = config;
  const bool reads = nn::reads_edges(config) && problem.edge_features != nullptr;
  sized.edge_features = reads ? problem.edge_features->cols() : 0;
  return sized;
}

nn::DataShape Problem::shape() const {
  nn::DataShape shape;
  shape.vertices = graph.num_rows();
  shape.edges = graph.num_edges();
  shape.features = num_features();
  if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    shape.feature_entries = sparse->num_edges();
  }
  shape.outputs = outputs;
  shape.graphs = graph_task ? num_items : 1;
  return shape;
}

Task chosen_task(const Dataset& dataset, Task task) {
  if (task != Task::automatic) return task;
  if (!dataset.graph_labels.empty()) return Task::graph;
  if (!dataset.graph_targets.empty()) return Task::numbers;
  const bool has_classes = !std::holds_alternative<std::monostate>(dataset.labels);
  return !has_classes && !dataset.targets.empty() ? Task::numbers : Task::node;
}

bool is_graph_task(const Dataset& dataset, Task task) {
  const Task chosen = chosen_task(dataset, task);
  if (chosen != Task::numbers) return chosen == Task::graph;
  if (!dataset.graph_targets.empty() || !dataset.targets.empty()) {
    return !dataset.graph_targets.empty();
  }
  return !dataset.graph_labels.empty();
}

namespace {

/// `takes_edges`: the model may read features of edges.
Problem prepared(const Dataset& dataset, const nn::ModelConfig& config, const TrainOptions& options,
                 bool takes_edges) {
  validate(options);
  const bool link_task = options.task == Task::links;
  if (link_task) require_link_options(config, options);
  if (link_task && nn::reads_edges(config)) {
    reject("links are learned without features of edges", "model", "use gin");
  }
  if (!link_task && config.kind == nn::ModelKind::lightgcn) {
    reject("lightgcn predicts links, not classes", "model", "use another model, or Task::links");
  }
  reject_useless_pattern(config, options);
  if (!link_task && options.batching == Batching::neighbours) {
    require_neighbour_options(config, options, is_graph_task(dataset, options.task));
  }
  Problem problem = start(dataset, config, is_graph_task(dataset, options.task));
  if (takes_edges && !link_task) take_edges(dataset, problem);
  if (link_task) {
    take_links(dataset, options, problem);
  } else {
    if (chosen_task(dataset, options.task) == Task::numbers) {
      require_number_options(config, options);
      take_numbers(dataset, problem);
    } else {
      take_labels(dataset, options.task, problem);
    }
    problem.metric = chosen_metric(problem, options);
    make_split(dataset, options, problem);
  }
  problem.fingerprint = data_fingerprint(problem);
  problem.input = input_of(dataset);
  train_loss(problem, problem.split, options);  // throws where weights do not fit the classes
  find_order(config, options, problem);
  finish_features(config, chosen_normalisation(dataset, config, options, problem), options,
                  problem);
  normalise_edges(edge_normalisation(options, problem), problem);
  if (options.batching == Batching::graphs && !problem.graph_task) {
    reject("batches of graphs, but vertices are to be classified", "batching",
           "use full, clusters, neighbours or walks");
  }
  if (options.process_every_step && problem.graph_task) {
    reject("one graph is processed in every step, but graphs are to be classified",
           "process_every_step", "train with batches of graphs, which are made anew in every step");
  }
  if ((options.batching == Batching::clusters || options.batching == Batching::walks) &&
      problem.graph_task) {
    reject(
        fmt::format("batches of {}, but graphs are to be classified", to_string(options.batching)),
        "batching", "use full or graphs");
  }
  if (options.rows_at_a_time > 0) {
    if (link_task) {
      reject("links are learned on all vertices at once", "rows_at_a_time", "leave it out");
    }
    require_blocks(config, problem.graph_task);
  }
  if (problem.graph.has_repeated_edges() &&
      (options.rows_at_a_time > 0 || (draws_samples(options) && !link_task))) {
    reject("some edges are listed twice, which neither drawn batches nor blocks of rows count",
           options.rows_at_a_time > 0 ? "rows_at_a_time" : "batching",
           "read the data with --duplicates first or sum, or leave it out");
  }
  return problem;
}

}  // namespace

Problem prepare(const Dataset& dataset, const nn::ModelConfig& config,
                const TrainOptions& options) {
  if (options.task != Task::links) require_edges(dataset, config);
  Problem problem = prepared(dataset, config, options, nn::reads_edges(config));
  if (options.task != Task::links) note_edges(dataset, config, problem);
  return problem;
}

Problem prepare(const Dataset& dataset, const TrainOptions& options) {
  nn::ModelConfig any;
  if (is_graph_task(dataset, options.task)) any.readout = ops::Reduction::sum;
  Problem problem = prepared(dataset, any, options, true);
  problem.counts_entries = true;
  return problem;
}

Problem prepare_features(const Dataset& dataset, const nn::ModelConfig& config, bool graph_task,
                         const Normalisation& normalisation, const TrainOptions& options,
                         const std::vector<float>& feature_reach) {
  Problem problem = start(dataset, config, graph_task);
  require_edges(dataset, config);
  note_edges(dataset, config, problem);
  if (nn::reads_edges(config)) take_edges(dataset, problem);
  if (graph_task && dataset.graph_ids.empty()) {
    reject("the data set is one graph, but the model classifies graphs of a union", dataset.name,
           "use data with graph ids");
  }
  problem.graph_ids = dataset.graph_ids;
  problem.num_items = graph_task ? dataset.num_graphs() : dataset.graph.num_rows();
  require_width(normalisation, problem);
  problem.feature_reach = feature_reach;
  finish_features(config, normalisation, options, problem);
  return problem;
}

}  // namespace tessera::train
