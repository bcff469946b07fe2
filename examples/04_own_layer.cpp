// SPDX-License-Identifier: Apache-2.0
// A layer of one's own: Y = X W_self^T + A X W_near^T + b, with its gradients, and a model of two
// of them trained on the embedded citation graph.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tessera/tessera.hpp"

namespace nn = tessera::nn;
namespace ops = tessera::ops;

struct MixOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  nn::EpilogueOptions output = {};  // bias, activation and dropout, in one pass
};

class Mix final : public nn::Layer {
 public:
  explicit Mix(const MixOptions& options, nn::Placement placement = {})
      : Layer(placement),
        self_("self.weight", options.in, options.out, nn::Initial::linear(options.in), placement),
        near_("near.weight", options.in, options.out, nn::Initial::linear(options.in), placement),
        epilogue_(options.output, options.out, placement) {
    register_parameter(self_.weight);
    register_parameter(near_.weight);
    if (epilogue_.bias) register_parameter(*epilogue_.bias);
  }

  const nn::Tensor& forward(const nn::Input& x, const nn::Context& context) override {
    input_ = x;
    near_.forward(x, 0, product_, context);  // dense or sparse x alike
    nn::propagate(mean_, product_, sum_, context);
    self_.forward(x, 1, sum_, context);  // 1: added to what is there
    return epilogue_.forward_in_place(sum_, number(), context);
  }

  nn::Tensor* backward(nn::Tensor& grad, const nn::Context& context) override {
    epilogue_.backward(grad, number(), context);
    nn::propagate_backward(mean_, grad, grad_product_, context);
    near_.backward_weight(input_, grad_product_, context);
    self_.backward_weight(input_, grad, context);
    if (!needs_input_gradient() || input_.is_sparse()) return nullptr;
    near_.backward_input(grad_product_, 0, grad_input_, context);
    self_.backward_input(grad, 1, grad_input_, context);
    return &grad_input_;
  }

  std::int64_t input_width() const override { return self_.in(); }
  std::int64_t output_width() const override { return self_.out(); }
  std::string describe() const override { return "Mix"; }

 private:
  static constexpr nn::Propagation mean_{"Mix", nn::pattern, ops::Reduction::mean};
  nn::Projection self_, near_;
  nn::Epilogue epilogue_;
  nn::Input input_;
  nn::Tensor product_, sum_, grad_product_, grad_input_;
};

int main() {
  const tessera::Dataset data = tessera::embedded_dataset("citation");
  const tessera::ClassLabels& labels = std::get<tessera::ClassLabels>(data.labels);
  const nn::EpilogueOptions hidden{.activation = ops::Activation::relu, .dropout = 0.5};
  nn::Sequential model;
  model.add("first", std::make_unique<Mix>(MixOptions{data.num_features(), 32, hidden}));
  model.add("second", std::make_unique<Mix>(MixOptions{32, data.num_classes()}));
  model.set_needs_input_gradient(false);
  model.assign_numbers(0);
  model.reset_parameters(1);

  nn::Topology graph(data.graph);
  nn::InputFeatures features(data.features);
  nn::Tensor grad(data.graph.num_rows(), data.num_classes());
  const auto parameters = model.parameters();
  std::vector<nn::Tensor> first, second;  // Adam's moments
  for (const auto& [path, parameter] : parameters) {
    for (auto* moments : {&first, &second}) {
      moments->emplace_back(parameter->value.rows(), parameter->value.cols()).fill(0);
    }
  }
  for (std::uint32_t step = 1; step <= 100; ++step) {
    const nn::Context context{.graph = &graph, .training = true, .seed = 1, .step = step};
    const nn::Tensor& logits = model.forward(features.input(), context);
    const double loss = ops::cross_entropy(logits, labels, data.train, grad);
    model.backward(grad, context);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      nn::Parameter& parameter = *parameters[p].parameter;
      ops::optimiser_step({.weight_decay = 5e-4}, step, parameter.gradient, parameter.value,
                          first[p], second[p]);
    }
    if (step % 20 == 0) std::printf("step %3u  loss %.3f\n", step, loss);
  }
}
