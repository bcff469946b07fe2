// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "support.hpp"
#include "support/training_data.hpp"
#include "target.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/predict.hpp"

/// Checkpoints: loaded, predicted with, and resumed from.
namespace tessera::fuzz {
namespace {

struct Scene {
  Dataset dataset;
  nn::ModelConfig config;
};

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all{
      {test::learnable_vertices(30), test::small_model(nn::ModelKind::gcn)},
      {test::learnable_vertices(30), test::small_model(nn::ModelKind::gat)},
      {test::learnable_graphs(6), test::small_model(nn::ModelKind::gin, true)}};
  return all;
}

train::TrainOptions options_for(const std::string& path) {
  train::TrainOptions options = test::short_training(2);
  options.runs = 2;
  options.checkpoint = {path, 1, true};
  return options;
}

void resume_from(const std::string& input, const Scene& scene) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("tessera-fuzz-resume-" + std::to_string(getpid())))
          .string();
  std::ofstream(path, std::ios::binary) << input;
  expect_words([&] { train::fit(scene.dataset, scene.config, options_for(path)); });
  std::filesystem::remove(path);
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const Scene& scene : scenes()) {
    all.push_back(written(".tsr", [&](const std::string& path) {
      train::TrainOptions options = options_for(path);
      options.epochs = 1;
      train::fit(scene.dataset, scene.config, options);
    }));
  }
  return all;
}

std::string mutated(const std::string& input, std::uint64_t number) {
  static const std::string fallback = seeds().front();
  return mutated_container(input, number, fallback);
}

void run(const std::string& input) {
  const MemoryFile file(input);
  expect_words([&] {
    const train::Checkpoint checkpoint = train::load_checkpoint(file.path());
    for (const Scene& scene : scenes()) {
      if (scene.config.kind != checkpoint.model.kind) continue;
      expect_words([&] { train::predict(checkpoint, scene.dataset); });
      resume_from(input, scene);
    }
  });
}

}  // namespace tessera::fuzz
