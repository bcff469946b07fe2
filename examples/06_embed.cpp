// SPDX-License-Identifier: Apache-2.0
// Predictions inside a program of one's own: a model is trained once and then run again and again
// on features that change, by two threads.
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tessera/tessera.hpp"

namespace nn = tessera::nn;
namespace train = tessera::train;

/// What `tessera train -c FILE` does.
train::Checkpoint trained(const tessera::Dataset& data) {
  const auto path = std::filesystem::temp_directory_path() / "tessera_example_06.tsr";
  train::TrainOptions options = train::paper_options(nn::ModelKind::gcn);
  options.epochs = 50;
  options.checkpoint.path = path.string();
  train::fit(data, nn::paper_defaults(nn::ModelKind::gcn), options);
  train::Checkpoint checkpoint = train::load_checkpoint(path.string());
  std::filesystem::remove(path);
  return checkpoint;
}

/// One thread's work: its own predictor, its own memory.
void serve(const train::Checkpoint& checkpoint, const tessera::Graph& graph, int requests,
           std::vector<std::int64_t>& classes) {
  train::Predictor predictor(checkpoint, graph);
  tessera::Matrix<float> features(predictor.num_vertices(), predictor.num_features(), 0.0f);
  tessera::Matrix<float> logits(predictor.num_items(), predictor.num_outputs());
  for (int request = 0; request < requests; ++request) {
    for (std::int64_t v = 0; v < features.rows(); ++v) {  // what your program knows by now
      features(v, (v + request) % features.cols()) += 1;
    }
    predictor.run(features, logits);  // after the first time nothing is allocated
    const auto width = static_cast<std::size_t>(logits.cols());
    classes[static_cast<std::size_t>(request)] = predictor.class_of({logits.row(0), width});
  }
}

int main() try {
  const tessera::Dataset data = tessera::io::open("embedded:citation");
  const train::Checkpoint checkpoint = trained(data);
  constexpr int requests = 3;
  std::vector<std::int64_t> first(requests), second(requests);
  std::thread other([&] { serve(checkpoint, data.graph, requests, second); });
  serve(checkpoint, data.graph, requests, first);
  other.join();
  for (const std::int64_t name : first) std::printf("vertex 0 is of class %d\n", int(name));
  if (first != second) return 1;  // the same features give the same bits in every thread

  train::Predictor predictor(checkpoint, data.graph);
  tessera::Matrix<float> logits(predictor.num_items(), predictor.num_outputs());
  try {
    predictor.run(tessera::Matrix<float>(2, 2, 0.0f), logits);
    return 1;
  } catch (const tessera::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
} catch (const tessera::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
