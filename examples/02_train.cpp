// SPDX-License-Identifier: Apache-2.0
// Trains a graph convolution on the embedded citation graph with the hyperparameters of its paper,
// and leaves a checkpoint behind.
#include <cstdio>
#include <string>

#include "tessera/tessera.hpp"

namespace nn = tessera::nn;
namespace train = tessera::train;

int main(int argc, char** argv) {
  const tessera::Dataset data = tessera::io::open("embedded:citation");

  const nn::ModelConfig model = nn::paper_defaults(nn::ModelKind::gcn);
  train::TrainOptions options = train::paper_options(nn::ModelKind::gcn);
  options.epochs = 60;
  options.runs = 2;
  options.on_epoch = [](const train::EpochRecord& record) {
    if (record.epoch % 20 != 0) return;
    std::printf("run %d, epoch %3d: loss %.3f, validation accuracy %.1f %%\n",
                static_cast<int>(record.run) + 1, static_cast<int>(record.epoch), record.loss,
                100 * record.evaluation.validation);
  };
  if (argc > 1) options.checkpoint.path = argv[1];  // 03_predict reads it

  const train::TrainReport report = train::fit(data, model, options);

  std::printf("%s\n", report.model.c_str());
  std::printf("test accuracy %.1f %% (standard deviation %.1f), %.2f ms an epoch\n",
              100 * report.test.mean, 100 * report.test.deviation, report.epoch_ms);
  return report.test.mean > 0.6 ? 0 : 1;  // this example is also a test
}
