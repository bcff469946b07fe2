// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support.hpp"
#include "support/training_data.hpp"
#include "target.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"

/// Checkpoints: loaded, predicted with, and resumed from.
namespace tessera::fuzz {
namespace {

/// One training, stopped after `epochs` epochs of the run `run`.
struct Scene {
  Dataset dataset;
  nn::ModelConfig config;
  train::TrainOptions options;
  std::int64_t run = 0;
  std::int64_t epochs = 1;
  train::Problem problem;
};

struct Stop {};

train::TrainOptions options_with(std::int64_t runs) {
  train::TrainOptions options = test::short_training(2);
  options.runs = runs;
  options.checkpoint = {memory_path("resume"), 100, true};
  return options;
}

nn::ModelConfig tiny(nn::ModelKind kind, bool graph_task = false) {
  nn::ModelConfig config = test::small_model(kind, graph_task);
  config.hidden = 4;
  return config;
}

/// Every kind of model; runs that have just begun, that are over, and that follow another; sparse
/// features, several labels, graphs, clusters; optimisers with two moments, with one and with none.
std::vector<Scene> made_scenes() {
  using nn::ModelKind;
  set_num_threads(1);
  const Dataset vertices = test::learnable_vertices(21);
  const Dataset sparse = test::with_sparse_features(vertices);
  std::vector<Scene> all;
  const auto add = [&](const Dataset& data, const nn::ModelConfig& config, std::int64_t runs,
                       std::int64_t run, std::int64_t epochs) -> Scene& {
    return all.emplace_back(Scene{data, config, options_with(runs), run, epochs, {}});
  };
  add(vertices, tiny(ModelKind::gcn), 1, 0, 1);
  add(vertices, tiny(ModelKind::gat), 2, 1, 1).options.checkpoint.every = 1;
  Scene& graphs = add(test::learnable_graphs(6), tiny(ModelKind::gin, true), 1, 0, 1);
  graphs.options.batching = train::Batching::graphs;
  graphs.options.graphs_per_batch = 2;
  Scene& sage = add(test::learnable_multi_labels(21), tiny(ModelKind::sage), 1, 0, 1);
  sage.options.optimiser.kind = ops::OptimiserKind::sgd;
  sage.options.optimiser.momentum = 0.9;
  add(vertices, tiny(ModelKind::gatv2), 1, 0, 2);
  add(vertices, tiny(ModelKind::agnn), 1, 0, 1).options.optimiser.kind = ops::OptimiserKind::sgd;
  add(sparse, tiny(ModelKind::sgc), 2, 0, 2);
  Scene& cheb = add(vertices, tiny(ModelKind::cheb), 1, 0, 1);
  cheb.options.batching = train::Batching::clusters;
  cheb.options.parts = 2;
  Scene& deep = add(sparse, tiny(ModelKind::gcn), 1, 0, 2);
  deep.config.batch_norm = deep.config.residual = true;
  deep.config.layers = 3;
  add(vertices, tiny(ModelKind::gcn), 1, 0, 1).options.normalise = train::Normalise::standard;
  Dataset& named = add(vertices, tiny(ModelKind::sage), 1, 0, 1).dataset;
  std::vector<std::string> names;
  std::vector<std::int32_t> prefixes;
  for (std::int64_t j = 0; j < named.num_features(); ++j) {
    names.push_back(j < 3 ? "k=" + std::to_string(j) : "f" + std::to_string(j));
    prefixes.push_back(j < 3 ? 1 : -1);
  }
  named.feature_names = Names(names);
  named.category_prefixes = prefixes;
  named.filled_cells = std::vector<std::int64_t>{4, 17};
  named.class_names = Names({"a", "b", "c", "d", "e", "f"});
  for (Scene& scene : all) {
    scene.problem = train::prepare(scene.dataset, scene.config, scene.options);
  }
  return all;
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = made_scenes();
  return all;
}

bool resumed_from(const std::string& input, const Scene& scene) {
  const std::string& path = scene.options.checkpoint.path;
  std::ofstream(path, std::ios::binary) << input;
  const bool resumed =
      expect_words([&] { train::fit(scene.problem, scene.config, scene.options); });
  std::filesystem::remove(path);
  return resumed;
}

std::string checkpoint_of(const Scene& scene) {
  return written(".tsr", [&](const std::string& path) {
    train::TrainOptions options = scene.options;
    options.checkpoint.path = path;
    options.on_epoch = [&](const train::EpochRecord& record) {
      if (record.run == scene.run && record.epoch == scene.epochs) throw Stop();
    };
    try {
      train::fit(scene.problem, scene.config, options);
    } catch (const Stop&) {
    }
  });
}

const std::vector<std::string>& checkpoints() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (const Scene& scene : scenes()) made.push_back(checkpoint_of(scene));
    return made;
  }();
  return all;
}

}  // namespace

std::vector<std::string> seeds() { return checkpoints(); }

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_container(input, number, checkpoints());
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  bool used = false;
  expect_words([&] {
    const train::Checkpoint checkpoint = train::load_checkpoint(file.path());
    for (const Scene& scene : scenes()) {
      if (scene.config.kind != checkpoint.model.kind) continue;
      used |= expect_words([&] { train::predict(checkpoint, scene.dataset); });
      used |= resumed_from(input, scene);
    }
  });
  return used;
}

}  // namespace tessera::fuzz
