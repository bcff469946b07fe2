// SPDX-License-Identifier: Apache-2.0
// A layer of one's own: Y = X W_self^T + A X W_near^T + b, and a model of two of them trained on
// the embedded citation graph: by `fit`, and in a loop of one's own.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "tessera/tessera.hpp"

namespace nn = tessera::nn;
namespace ops = tessera::ops;
namespace step = tessera::step;
namespace train = tessera::train;

class Mix final : public nn::Layer {
 public:
  /// `output`: bias, activation and dropout.
  Mix(std::int64_t in, std::int64_t out, const nn::EpilogueOptions& output, nn::Placement placement)
      : Layer(placement),
        self_("self.weight", out, in, nn::Initial::linear(in), placement),
        near_("near.weight", out, in, nn::Initial::linear(in), placement),
        epilogue_(output, out, placement) {
    register_parameter(self_);
    register_parameter(near_);
    if (epilogue_.bias) register_parameter(*epilogue_.bias);
  }

  std::int64_t input_width() const override { return self_.value.cols(); }
  std::int64_t output_width() const override { return self_.value.rows(); }
  std::string describe() const override { return "Mix"; }

 private:
  // What is computed, once: gradients, fused passes and memory follow from it.
  step::Value build(const nn::StepInputs& in) override {
    const step::Value near = step::linear(in.program, in.sources, in.parameter(near_));
    const step::Value self = step::linear(in.program, in.sources, in.parameter(self_));
    const step::Value mean = step::aggregate(in.program, near, {nn::pattern, ops::Reduction::mean});
    return in.finish(step::add(in.program, mean, self), epilogue_);
  }

  nn::Parameter self_, near_;
  nn::Epilogue epilogue_;
};

std::unique_ptr<nn::Layer> two_layers(const nn::DataShape& shape, const nn::Placement& placement) {
  const nn::EpilogueOptions hidden{.activation = ops::Activation::relu, .dropout = 0.5};
  auto model = std::make_unique<nn::Sequential>(placement);
  model->add("first", std::make_unique<Mix>(shape.features, 32, hidden, placement));
  model->add("second", std::make_unique<Mix>(32, shape.outputs, nn::EpilogueOptions(), placement));
  return model;
}

int main() {
  const tessera::Dataset data = tessera::embedded_dataset("citation");
  // The library's loop: split, early stopping, several seeds, GPU. `train::Trainer` is one epoch.
  train::TrainOptions options;
  options.epochs = 100;
  options.optimiser.weight_decay = 5e-4;
  const train::TrainReport report = train::fit(data, two_layers, options);
  std::printf("%s: %.1f %% of the test vertices are right\n", report.model.c_str(),
              100 * report.test.mean);

  // Or a loop of one's own.
  const auto model =
      two_layers({.features = data.num_features(), .outputs = data.num_classes()}, {});
  model->assign_numbers(0);  // so that the dropout of the layers differs
  model->reset_parameters(1);
  model->set_needs_input_gradient(false);
  train::Optimiser optimiser(*model, options.optimiser);
  nn::Topology graph(data.graph);
  nn::InputFeatures features(data.features);
  const auto& labels = std::get<tessera::ClassLabels>(data.labels);
  const auto wanted = ops::LossTargets::classes(labels, data.train, data.num_classes());
  double loss = 0;
  nn::Context context{.graph = &graph, .targets = &wanted, .loss = &loss, .training = true};
  for (std::uint32_t step = 1; step <= 100; ++step) {
    context.step = step;
    model->learn(features.input(), context);
    optimiser.step();
    if (step % 20 == 0) std::printf("step %3u  loss %.3f\n", step, loss);
  }
  return report.test.mean > 0.6 && loss < 0.5 ? 0 : 1;  // this example is also a test
}
