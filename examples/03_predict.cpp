// SPDX-License-Identifier: Apache-2.0
// Trains a small model, reads its checkpoint back, and classifies vertices without their labels.
#include <cstdio>
#include <filesystem>
#include <string>

#include "tessera/tessera.hpp"

namespace nn = tessera::nn;
namespace train = tessera::train;

int main(int argc, char** argv) {
  tessera::Dataset data = tessera::io::open("embedded:citation");

  std::string path = argc > 1 ? argv[1] : "";
  if (path.empty()) {  // no checkpoint given: make one
    path = (std::filesystem::temp_directory_path() / "tessera_example_03.tsr").string();
    train::TrainOptions options = train::paper_options(nn::ModelKind::sgc);
    options.epochs = 50;
    options.checkpoint.path = path;
    train::fit(data, nn::paper_defaults(nn::ModelKind::sgc), options);
  }

  // A checkpoint knows its model; the data needs neither labels nor a split.
  const auto labels = std::get<tessera::ClassLabels>(data.labels);
  data.labels = std::monostate();
  const train::Checkpoint checkpoint = train::load_checkpoint(path);
  const train::Prediction prediction = train::predict(checkpoint, data);
  if (argc <= 1) std::filesystem::remove(path);

  std::int64_t right = 0;
  for (const std::int64_t vertex : data.test) {
    right += prediction.classes[static_cast<std::size_t>(vertex)] == labels[vertex] ? 1 : 0;
  }
  const double share = static_cast<double>(right) / static_cast<double>(data.test.size());
  std::printf("%s: %.1f %% of %d test vertices are right\n", nn::describe(checkpoint.model).c_str(),
              100 * share, static_cast<int>(data.test.size()));
  return share > 0.6 ? 0 : 1;  // this example is also a test
}
