// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/side_stream.hpp"
#include "core/transfer_memory.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/nn/bit_network.hpp"
#include "tessera/nn/model.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/rounding.hpp"
#include "tessera/train/bit_batches.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"

/// Inference over batches of parts (QGTC's end-to-end workloads): Cluster-GCN of 3 x 16 and GIN of
/// 3 x 64, in codes or in floating point, copies of every batch to the device included.
namespace tessera::bench {
namespace {

constexpr std::int64_t part_vertices = 100;
constexpr std::int64_t most_parts = 1500;
constexpr std::int64_t parts_per_batch = 20;
constexpr std::int64_t drawn_width = 64;
constexpr std::int64_t classes = 16;

/// Where ids follow communities, as in generated graphs, ranges of them cut less than this.
constexpr double small_cut = 0.5;

Partition parts_of(const Problem& problem) {
  if (problem.partition != nullptr) return *problem.partition;
  const Graph& graph = problem.graph;
  PartitionOptions options;
  options.parts = problem.parts > 0 ? problem.parts
                                    : static_cast<std::int32_t>(std::clamp<std::int64_t>(
                                          graph.num_rows() / part_vertices, 1, most_parts));
  options.seed = problem.seed;
  options.method = "contiguous";
  Partition ranges = partition(graph, options);
  if (assess(graph, ranges).cut_share < small_cut) return ranges;
  options.method = "auto";
  return partition(graph, options);
}

Matrix<float> features_of(const Problem& problem) {
  const Dataset* const data = problem.dataset.get();
  const std::int64_t own = data != nullptr ? data->num_features() : 0;
  const std::int64_t width = problem.features > 0 ? problem.features : own > 0 ? own : drawn_width;
  const auto* const dense = data != nullptr ? std::get_if<DenseFeatures>(&data->features) : nullptr;
  if (dense == nullptr || width != own) {
    return random_matrix<float>(problem.graph.num_rows(), width, problem.seed);
  }
  Matrix<float> copy((*dense)->rows(), (*dense)->cols());
  std::copy((*dense)->span().begin(), (*dense)->span().end(), copy.data());
  return copy;
}

/// A graph in parts, and what every model over it says with all its edges between parts left out.
struct Workload {
  Workload(const Problem& problem, nn::ModelKind kind, int bits)
      : partition(parts_of(problem)),
        graph(train::within_parts(without_self_loops(step::pattern(problem.graph)), partition)),
        features(features_of(problem)),
        seed(problem.seed) {
    config.kind = kind;
    config.layers = 3;
    config.hidden = kind == nn::ModelKind::gin ? 64 : 16;
    config.batch_norm = kind == nn::ModelKind::gin;
    if (bits > 0) config.bits = {bits};
    if (bits > 0) {
      ops::round_to_codes(features, bits, ops::RoundingRange::matrix, range, features);
    }
    model = std::make_unique<nn::Model>(config, features.cols(), classes, seed);
    step::Topology topology(graph);
    step::Tensor input;
    input.upload(features);
    step::Context context;
    const ops::DenseWorkspace workspace{Place()};
    context.graph = &topology;
    context.workspace = &workspace;
    expected.copy_from(model->forward(input, context));
    const auto logits = expected.as<float>();
    for (std::int64_t i = 0; i < logits.rows; ++i) {
      for (std::int64_t j = 0; j < logits.cols; ++j) {
        largest = std::max(largest, std::abs(static_cast<double>(logits(i, j))));
      }
    }
  }

  /// The mean distance from what is expected, relative to the greatest number of all.
  template <class RowOf>
  double error(const Matrix<float>& computed, std::span<const VertexId> vertices,
               RowOf&& row_of) const {
    const auto right = expected.as<float>();
    double sum = 0;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      if (vertices[i] < 0) continue;
      for (std::int64_t j = 0; j < right.cols; ++j, ++count) {
        sum += std::abs(static_cast<double>(computed(static_cast<std::int64_t>(row_of(i)), j)) -
                        static_cast<double>(right(vertices[i], j)));
      }
    }
    return count == 0 ? 0 : sum / static_cast<double>(count) / largest;
  }

  Partition partition;
  Graph graph;
  Matrix<float> features;
  Matrix<float> range{1, 2};
  std::uint64_t seed;
  nn::ModelConfig config;
  std::unique_ptr<nn::Model> model;
  step::Tensor expected;  ///< logits of all vertices, on the CPU
  double largest = 1e-30;
};

/// Where both sides round, codes fall to the other side of a step now and then, and the steps of
/// few bits are long.
constexpr double error_bound = 0.02;
constexpr double error_bound_of_few_bits = 0.2;

class BitBatchTrial final : public Trial {
 public:
  BitBatchTrial(const Problem& problem, nn::ModelKind kind, int bits)
      : load_(problem, kind, bits),
        device_(problem.device),
        bound_(bits > 4 ? error_bound : error_bound_of_few_bits),
        steps_(steps_of(load_, bits)),
        batches_(load_.graph, load_.partition, parts_per_batch, load_.features, steps_, device_),
        runner_(steps_, batches_, options_of(problem)) {}

  /// Against rounded numbers in fp32, and on a GPU bit for bit against the CPU.
  Gate check() override {
    runner_.run();
    Gate gate{0, bound_, 0, load_.graph.num_rows()};
    for (std::int64_t batch = 0; batch < batches_.size(); ++batch) {
      const Matrix<float> values = runner_.values(batch);
      gate.max_error = std::max(gate.max_error, load_.error(values, batches_.members(batch),
                                                            [](std::size_t i) { return i; }));
      gate.rows_checked +=
          std::count_if(batches_.members(batch).begin(), batches_.members(batch).end(),
                        [](VertexId vertex) { return vertex >= 0; });
    }
    if (device_.kind == DeviceKind::cpu) return gate;
    nn::BitNetworkOptions options;
    options.lists = batches_.has_lists();
    nn::BitNetwork here(steps_, batches_.vertices(), batches_.block(), options);
    Matrix<float> values(batches_.vertices(), here.output_width());
    here.run(batches_.view(batches_.data(0), {}), values);
    const Matrix<float> there = runner_.values(0);
    if (!std::equal(values.span().begin(), values.span().end(), there.span().begin())) {
      gate.max_error = 1;
    }
    return gate;
  }

  void run(Stream) override { runner_.run(); }
  bool only_queues() const override { return false; }
  std::vector<Figure> figures() const override {
    return {{"batches", static_cast<double>(batches_.size())},
            {"bytes_to_device", static_cast<double>(batches_.size() * batches_.bytes())},
            {"tiles_with_edges", tiles_with_edges()},
            {"tiles_stored", tiles_stored()}};
  }
  std::int64_t bytes() const override { return batches_.size() * batches_.bytes(); }
  std::int64_t features() const override { return load_.features.cols(); }
  std::string kernel() const override { return "bit_gemm"; }
  std::string plan() const override { return runner_.explain().summary; }

 private:
  /// Of the tiles of 8 x 128 that a batch's adjacency has as one matrix, its parts one after
  /// another (QGTC's Figure 8): the share that has an edge ...
  double tiles_with_edges() const {
    double with_edges = 0;
    double all = 0;
    for (std::int64_t batch = 0; batch < batches_.size(); ++batch) {
      std::vector<std::int64_t> place(static_cast<std::size_t>(load_.graph.num_rows()));
      std::vector<VertexId> vertices;
      for (const VertexId vertex : batches_.members(batch)) {
        if (vertex < 0) continue;
        place[static_cast<std::size_t>(vertex)] = std::ssize(vertices);
        vertices.push_back(vertex);
      }
      const std::int64_t across = (std::ssize(vertices) + 127) / 128;
      std::vector<bool> tiles(static_cast<std::size_t>((std::ssize(vertices) + 7) / 8 * across));
      for (std::size_t row = 0; row < vertices.size(); ++row) {
        for (const VertexId source : load_.graph.neighbours(vertices[row])) {
          const std::int64_t col = place[static_cast<std::size_t>(source)] / 128;
          tiles[row / 8 * static_cast<std::size_t>(across) + static_cast<std::size_t>(col)] = true;
        }
      }
      with_edges += static_cast<double>(std::count(tiles.begin(), tiles.end(), true));
      all += static_cast<double>(tiles.size());
    }
    return all > 0 ? with_edges / all : 0;
  }
  /// ... and the share that the blocks of a batch hold.
  double tiles_stored() const {
    return static_cast<double>(batches_.block()) / static_cast<double>(batches_.vertices());
  }

  static nn::BitSteps steps_of(const Workload& load, int bits) {
    nn::BitSteps steps = load.model->bit_steps();
    steps.set_feature_range(nn::affine_of(load.range.span(), bits));
    return steps;
  }
  static nn::BitNetworkOptions options_of(const Problem& problem) {
    nn::BitNetworkOptions options;
    set_plan_options(problem, options.plans);
    return options;
  }

  Workload load_;
  Device device_;
  double bound_;
  nn::BitSteps steps_;
  train::BitBatches batches_;
  train::BitBatchRunner runner_;
};

/// The same in floating point: features and graph of each batch are copied as they would have to
/// be, offsets and sources of 4 bytes each. Plans for its graph are kept, and read no copy.
class FloatBatchTrial final : public Trial {
 public:
  FloatBatchTrial(const Problem& problem, nn::ModelKind kind, Precision precision)
      : load_(problem, kind, 0), device_(problem.device), precision_(precision) {
    const auto parts = members(load_.partition);
    const std::int64_t batches = (std::ssize(parts) + parts_per_batch - 1) / parts_per_batch;
    const std::int64_t most = train::BitBatchRunner::most_lanes;
    const std::int64_t count =
        device_.kind == DeviceKind::cpu ? 1 : std::clamp<std::int64_t>(batches, 1, most);
    for (std::int64_t i = 0; i < count; ++i) lanes_.push_back(std::make_unique<Lane>(*this));
    for (std::size_t first = 0; first < parts.size(); first += parts_per_batch) {
      const std::size_t end = std::min(parts.size(), first + parts_per_batch);
      std::vector<VertexId> vertices;
      for (std::size_t part = first; part < end; ++part) {
        vertices.insert(vertices.end(), parts[part].begin(), parts[part].end());
      }
      std::sort(vertices.begin(), vertices.end());
      add(std::move(vertices), problem.plans);
    }
  }

  Gate check() override {
    Gate gate{0, error_bound, 0, load_.graph.num_rows()};
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const step::Tensor& logits = queue(i, lane_of(i).stream);
      step::Placement wide = logits.placement();
      wide.precision = Precision::fp32;
      step::Tensor copy(wide);
      copy.copy_from(logits, lane_of(i).stream);
      Matrix<float> values(copy.rows(), copy.cols());
      ops::download(copy, values, device_, lane_of(i).stream);
      gate.max_error = std::max(gate.max_error, load_.error(values, batches_[i]->vertices,
                                                            [](std::size_t k) { return k; }));
      gate.rows_checked += values.rows();
    }
    return gate;
  }

  void run(Stream) override {
    if (lanes_.front()->recording.empty()) {
      for (std::size_t i = 0; i < batches_.size(); ++i) queue(i, lane_of(i).stream);
    } else {
      for (const auto& lane : lanes_) lane->recording.replay(lane->stream);
    }
    for (const auto& lane : lanes_) synchronise(device_, lane->stream);
    if (!lanes_.front()->recording.empty() || !why_not_recorded(device_).empty()) return;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      lanes_[lane]->recording = Recording::of(device_, [&](Stream stream) {
        for (std::size_t i = lane; i < batches_.size(); i += lanes_.size()) queue(i, stream);
      });
    }
  }
  bool only_queues() const override { return false; }
  std::vector<Figure> figures() const override {
    return {{"batches", static_cast<double>(batches_.size())},
            {"bytes_to_device", static_cast<double>(bytes())}};
  }
  std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const auto& batch : batches_) sum += batch->data.size();
    return sum;
  }
  std::int64_t features() const override { return load_.features.cols(); }
  std::string kernel() const override { return "spmm"; }

 private:
  struct Lane {
    explicit Lane(const FloatBatchTrial& trial)
        : stream(trial.device_),
          placement{trial.precision_, &default_memory(trial.device_), stream},
          model(trial.load_.config, trial.load_.features.cols(), classes, trial.load_.seed,
                placement),
          input(0, 0, placement),
          workspace(placement.place()) {}

    SideStream stream;
    step::Placement placement;
    nn::Model model;
    step::Tensor input;
    ops::DenseWorkspace workspace;
    Buffer<std::byte> structure;  ///< where graphs are copied to
    Recording recording;          ///< of all its batches; empty until they have run once
  };

  struct Batch {
    std::vector<VertexId> vertices;
    step::Topology topology;
    Buffer<std::byte> data;  ///< features, then the graph
  };

  Lane& lane_of(std::size_t batch) { return *lanes_[batch % lanes_.size()]; }

  void add(std::vector<VertexId> vertices, const ops::PlanOptions& plans) {
    Matrix<float> rows(std::ssize(vertices), load_.features.cols());
    for (std::int64_t i = 0; i < rows.rows(); ++i) {
      std::copy_n(load_.features.row(vertices[static_cast<std::size_t>(i)]), rows.cols(),
                  rows.row(i));
    }
    step::Tensor stored(step::Placement{precision_});
    stored.upload(rows);
    const Graph graph = induced_subgraph(load_.graph, vertices);
    const std::int64_t structure = (graph.num_rows() + 1 + graph.num_edges()) * 4;
    Buffer<std::byte> data(stored.num_bytes() + structure, transfer_memory(device_));
    std::copy_n(stored.bytes(), stored.num_bytes(), data.data());
    std::fill_n(data.data() + stored.num_bytes(), structure, std::byte{0});
    Lane& lane = lane_of(batches_.size());
    if (lane.structure.size() < structure) {
      lane.structure = Buffer<std::byte>(structure, lane.placement.place());
    }
    step::Topology topology(graph, lane.placement.place(), plans);
    batches_.push_back(
        std::make_unique<Batch>(Batch{std::move(vertices), std::move(topology), std::move(data)}));
  }

  const step::Tensor& queue(std::size_t i, Stream stream) {
    Batch& batch = *batches_[i];
    Lane& lane = lane_of(i);
    lane.input.resize(std::ssize(batch.vertices), load_.features.cols());
    const auto features = static_cast<std::size_t>(lane.input.num_bytes());
    copy_bytes(lane.input.bytes(), batch.data.data(), features, device_, stream);
    if (device_.kind != DeviceKind::cpu) {
      copy_bytes(lane.structure.data(), batch.data.data() + features,
                 static_cast<std::size_t>(batch.data.size()) - features, device_, stream);
    }
    step::Context context;
    context.graph = &batch.topology;
    context.stream = stream;
    context.workspace = &lane.workspace;
    return lane.model.forward(lane.input, context);
  }

  Workload load_;
  Device device_;
  Precision precision_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<Batch>> batches_;
};

Suite suite_of(nn::ModelKind kind, int bits) {
  const bool gin = kind == nn::ModelKind::gin;
  const std::string name = gin ? "batches_gin" : "batches_gcn";
  Suite suite;
  suite.op = bits > 0 ? name + "_" + std::to_string(bits) : name;
  suite.summary = "inference over batches of 20 parts of about 100 vertices, " +
                  std::string(gin ? "GIN of 3 x 64" : "GCN of 3 x 16") +
                  (bits > 0 ? " in codes of so many bits" : " in floating point");
  suite.precisions = {Precision::fp32};
  if (bits == 0) suite.precisions.push_back(Precision::bf16);
  suite.prepare = [kind, bits](const Problem& problem) -> std::unique_ptr<Trial> {
    if (bits > 0) return std::make_unique<BitBatchTrial>(problem, kind, bits);
    return std::make_unique<FloatBatchTrial>(problem, kind, problem.precision);
  };
  suite.features = {0};
  suite.on_request = true;
  return suite;
}

}  // namespace

std::vector<Suite> batch_suites() {
  std::vector<Suite> suites;
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::gin}) {
    for (const int bits : {0, 2, 4, 8}) suites.push_back(suite_of(kind, bits));
  }
  return suites;
}

}  // namespace tessera::bench
