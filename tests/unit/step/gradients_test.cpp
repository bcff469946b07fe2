// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/step_scene.hpp"

/// Every kind of node: its adjoint rule against finite differences, and the same results where
/// values share memory and where they do not.
namespace tessera {
namespace {

using step::Program;
using step::Value;
using test::StepScene;

struct Kind {
  std::string name;
  StepScene::Build build;
};

Value weight(StepScene& scene, Program& program, const char* name, std::int64_t rows,
             std::int64_t cols) {
  return program.parameter(scene.parameter(name, rows, cols));
}

Value product(StepScene& scene, Program& program, Value x, const char* name = "w",
              std::int64_t out = 6) {
  return step::linear(program, x, weight(scene, program, name, out, 4));
}

/// Batch norm of a product with a bias, and what follows.
Value norm(StepScene& scene, Program& p, Value x, const step::ActivationKind& kind,
           double dropout) {
  const Value y = step::add_bias(p, product(scene, p, x), weight(scene, p, "b", 1, 6));
  const step::BatchNormValues values{weight(scene, p, "gamma", 1, 6),
                                     weight(scene, p, "beta", 1, 6),
                                     p.state("mean", scene.state("mean", 6, 0)),
                                     p.state("variance", scene.state("variance", 6, 1))};
  const Value normed = step::batch_norm(p, y, values, {.training = true});
  return step::dropout(p, step::activate(p, normed, kind), dropout, 2);
}

/// y = a * b, element by element.
step::CustomOp products_of_elements() {
  step::CustomOp op{.name = "multiply"};
  const auto multiply = [](const step::Pass& pass, std::size_t out, std::size_t a, std::size_t b) {
    if (pass.out(out).absent()) return;
    const auto left = pass.in(a).as<double>(), right = pass.in(b).as<double>();
    const auto y = pass.out(out).as<double>();
    for (std::int64_t i = 0; i < y.rows; ++i) {
      for (std::int64_t j = 0; j < y.cols; ++j) y(i, j) = left(i, j) * right(i, j);
    }
  };
  op.forward = [=](const step::Pass& pass) { multiply(pass, 0, 0, 1); };
  // In: the gradient, the result, a, b.
  op.backward = [=](const step::Pass& pass) {
    multiply(pass, 0, 0, 3);
    multiply(pass, 1, 0, 2);
  };
  return op;
}

Kind activation(ops::Activation kind) {
  return {ops::to_string(kind), [=](StepScene& scene, Program& p, Value x) {
            const Value y = step::add_bias(p, product(scene, p, x), weight(scene, p, "b", 1, 6));
            return step::dropout(p, step::activate(p, y, {.activation = kind}), 0.3, 2);
          }};
}

Kind sum(ops::Reduction reduction) {
  return {std::string("aggregate ") + ops::to_string(reduction),
          [=](StepScene& scene, Program& p, Value x) {
            return step::aggregate(p, product(scene, p, x), {step::pattern, reduction});
          }};
}

Kind attention(ops::AttentionForm form, std::int64_t heads) {
  return {std::string("attend ") + ops::to_string(form),
          [=](StepScene& scene, Program& p, Value x) {
            step::Attention options{.form = form, .heads = heads, .dropout = 0.4, .number = 3};
            options.derivation = step::pattern_with_self_loops;
            step::AttentionValues values;
            values.value = product(scene, p, x);
            if (form == ops::AttentionForm::gat) {
              std::tie(values.source, values.target) = step::head_dots(
                  p, values.value, weight(scene, p, "a", 1, 6), weight(scene, p, "c", 1, 6), heads);
            } else {
              values.source = product(scene, p, x, "s");
              values.target = product(scene, p, x, "t");
            }
            if (form == ops::AttentionForm::gatv2) values.vector = weight(scene, p, "v", 1, 6);
            return step::head_mean(p, step::attend(p, options, values), heads);
          }};
}

Kind messages(ops::Message message) {
  return {std::string("messages ") + ops::to_string(message),
          [=](StepScene& scene, Program& p, Value x) {
            return step::messages(p, product(scene, p, x),
                                  weight(scene, p, "edges", scene.num_edges(), 6), {message});
          }};
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const auto kind : {ops::Activation::none, ops::Activation::relu, ops::Activation::leaky_relu,
                          ops::Activation::elu}) {
    all.push_back(activation(kind));
  }
  for (const auto reduction :
       {ops::Reduction::sum, ops::Reduction::mean, ops::Reduction::max, ops::Reduction::min}) {
    all.push_back(sum(reduction));
  }
  all.push_back(attention(ops::AttentionForm::gat, 2));
  all.push_back(attention(ops::AttentionForm::gatv2, 3));
  all.push_back(attention(ops::AttentionForm::dot, 2));
  all.push_back({"attend cosine", [](StepScene& scene, Program& p, Value x) {
                   const step::Attention options{.form = ops::AttentionForm::cosine,
                                                 .derivation = step::pattern_with_self_loops};
                   return step::attend(
                       p, options, {{}, {}, product(scene, p, x), weight(scene, p, "beta", 1, 1)});
                 }});
  for (const auto message : {ops::Message::sum, ops::Message::relu, ops::Message::product}) {
    all.push_back(messages(message));
  }
  all.push_back({"messages and own rows", [](StepScene& scene, Program& p, Value x) {
                   const Value edges = weight(scene, p, "edges", scene.num_edges(), 4);
                   return step::messages_with_own(p, x, edges, x, weight(scene, p, "eps", 1, 1),
                                                  {});
                 }});
  all.push_back({"messages of mapped edges", [](StepScene& scene, Program& p, Value x) {
                   const Value edges =
                       step::linear(p, p.edge_features(), weight(scene, p, "e", 6, 3));
                   const Value biased = step::add_bias(p, edges, weight(scene, p, "b", 1, 6));
                   const Value own = product(scene, p, x, "own");
                   return step::messages_with_own(p, product(scene, p, x), biased, own,
                                                  weight(scene, p, "eps", 1, 1), {});
                 }});
  all.push_back({"head dot, twice", [](StepScene& scene, Program& p, Value x) {
                   const Value y = product(scene, p, x), a = weight(scene, p, "a", 1, 6);
                   return step::add(p, step::head_dot(p, y, a, 2), step::head_dot(p, y, a, 2));
                 }});
  all.push_back({"a sum with itself", [](StepScene& scene, Program& p, Value x) {
                   const Value y = product(scene, p, x);
                   return step::add(p, y, y);
                 }});
  all.push_back({"polynomial", [](StepScene& scene, Program& p, Value x) {
                   const Value a = product(scene, p, x, "first");
                   const Value b = step::aggregate(p, a, {step::gcn_adjacency});
                   const Value c = step::combine(p, -1, a, 2, step::aggregate(p, b, {}));
                   return step::add(p, step::scaled(p, 0.5, c), product(scene, p, x, "second"));
                 }});
  all.push_back({"sums, a product and a root", [](StepScene& scene, Program& p, Value x) {
                   const Value mean = step::aggregate(p, x, {step::pattern, ops::Reduction::mean});
                   const Value sum =
                       step::add(p, product(scene, p, mean), product(scene, p, x, "root"));
                   const Value y = step::add_bias(p, sum, weight(scene, p, "b", 1, 6));
                   return step::dropout(p, step::activate(p, y, {ops::Activation::relu}), 0.3, 1);
                 }});
  all.push_back({"sums added to a product", [](StepScene& scene, Program& p, Value x) {
                   const Value y = product(scene, p, x), own = product(scene, p, x, "own");
                   const Value sum =
                       step::add(p, step::aggregate(p, y, {step::gcn_adjacency}), own);
                   const Value biased = step::add_bias(p, sum, weight(scene, p, "b", 1, 6));
                   return step::activate(p, biased, {ops::Activation::leaky_relu});
                 }});
  all.push_back({"unit rows", [](StepScene& scene, Program& p, Value x) {
                   return step::unit_rows(p, product(scene, p, x));
                 }});
  all.push_back({"one weight, two uses", [](StepScene& scene, Program& p, Value x) {
                   const Value y = step::linear(p, x, weight(scene, p, "square", 4, 4));
                   return step::linear(p, step::activate(p, y, {ops::Activation::relu}),
                                       weight(scene, p, "square", 4, 4));
                 }});
  all.push_back({"a bias that is two", [](StepScene& scene, Program& p, Value x) {
                   const Value b = weight(scene, p, "b", 1, 6), c = weight(scene, p, "c", 1, 6);
                   return step::add_bias(p, product(scene, p, x), step::add(p, b, c));
                 }});
  all.push_back({"own rows beside sums", [](StepScene& scene, Program& p, Value x) {
                   const Value scale = weight(scene, p, "eps", 1, 1);
                   return step::aggregate_with_own(p, x, x, scale, {step::pattern});
                 }});
  all.push_back({"own rows from elsewhere", [](StepScene& scene, Program& p, Value x) {
                   const Value own = product(scene, p, x, "v", 4);
                   return step::aggregate_with_own(p, x, own, weight(scene, p, "eps", 1, 1),
                                                   {step::pattern});
                 }});
  for (const std::int64_t width : {1, 9}) {
    all.push_back({width < 4 ? "own rows and a narrow product" : "own rows and a wide product",
                   [=](StepScene& scene, Program& p, Value x) {
                     const Value y = product(scene, p, x, "w", width);
                     return step::aggregate_with_own(p, y, y, weight(scene, p, "eps", 1, 1),
                                                     {step::pattern});
                   }});
  }
  all.push_back({"products of one weight", [](StepScene& scene, Program& p, Value x) {
                   const Value own = step::unit_rows(p, x);
                   return step::aggregate_with_own(p, product(scene, p, x), product(scene, p, own),
                                                   weight(scene, p, "eps", 1, 1), {step::pattern});
                 }});
  all.push_back({"first rows", [](StepScene& scene, Program& p, Value x) {
                   return step::add(p, x, step::first_rows(p, product(scene, p, x, "w", 4), 0));
                 }});
  for (const auto kind : {ops::Activation::none, ops::Activation::relu, ops::Activation::elu}) {
    all.push_back({std::string("batch norm ") + ops::to_string(kind),
                   [=](StepScene& scene, Program& p, Value x) {
                     return norm(scene, p, x, {.activation = kind}, 0.3);
                   }});
  }
  all.push_back({"batch norm between products", [](StepScene& scene, Program& p, Value x) {
                   const Value y = norm(scene, p, x, {.activation = ops::Activation::relu}, 0);
                   return step::linear(p, y, weight(scene, p, "second", 3, 6));
                 }});
  all.push_back({"products with relu between", [](StepScene& scene, Program& p, Value x) {
                   Value y = step::add_bias(p, product(scene, p, x), weight(scene, p, "b", 1, 6));
                   y = step::activate(p, y, {.activation = ops::Activation::relu});
                   return step::linear(p, y, weight(scene, p, "second", 3, 6));
                 }});
  all.push_back({"dots of pairs", [](StepScene& scene, Program& p, Value x) {
                   return step::pair_dot(p, product(scene, p, x));
                 }});
  all.push_back({"dots of pairs by heads", [](StepScene& scene, Program& p, Value x) {
                   return step::pair_dot(p, product(scene, p, x), 3);
                 }});
  all.push_back({"sums of pairs", [](StepScene& scene, Program& p, Value x) {
                   return step::pair_sum(p, product(scene, p, x, "u"), product(scene, p, x, "v"));
                 }});
  all.push_back({"sums of pairs of one matrix", [](StepScene& scene, Program& p, Value x) {
                   const Value y = product(scene, p, x);
                   return step::pair_sum(p, y, y);
                 }});
  all.push_back({"an op of functions", [](StepScene& scene, Program& p, Value x) {
                   return step::custom(p, products_of_elements(),
                                       {product(scene, p, x, "u"), product(scene, p, x, "v")});
                 }});
  all.push_back(
      {"the input itself", [](StepScene&, Program& p, Value x) { return step::scaled(p, 1, x); }});
  return all;
}

class StepGradients : public testing::TestWithParam<Kind> {};

TEST_P(StepGradients, MatchFiniteDifferences) {
  StepScene scene(7, 4, GetParam().build);
  scene.expect_gradients();
}

TEST_P(StepGradients, AreTheSameInSharedMemory) {
  StepScene scene(7, 4, GetParam().build);
  const auto shared = scene.run({.rewrites = true, .shares_memory = true});
  const auto apart = scene.run({.rewrites = true, .shares_memory = false});
  EXPECT_EQ(shared.output, apart.output) << shared.program;
  EXPECT_EQ(shared.grad_x, apart.grad_x) << shared.program;
  EXPECT_EQ(shared.gradients, apart.gradients) << shared.program;
}

TEST_P(StepGradients, AreTheSameWithValuesComputedAgain) {
  StepScene scene(7, 4, GetParam().build);
  const auto kept = scene.run({});
  const auto recomputed = scene.run({.recomputes = true});
  EXPECT_EQ(recomputed.output, kept.output) << recomputed.program;
  EXPECT_EQ(recomputed.grad_x, kept.grad_x) << recomputed.program;
  EXPECT_EQ(recomputed.gradients, kept.gradients) << recomputed.program;
  EXPECT_LE(recomputed.arena_bytes, kept.arena_bytes);
}

TEST_P(StepGradients, AreThoseOfTheProgramWithoutRewrites) {
  StepScene scene(7, 4, GetParam().build);
  const auto rewritten = scene.run({.rewrites = true});
  const auto plain = scene.run({.rewrites = false});
  const auto expect_near = [&](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i])));
  };
  expect_near(rewritten.output, plain.output);
  expect_near(rewritten.grad_x, plain.grad_x);
  for (const auto& [name, gradient] : plain.gradients) {
    expect_near(rewritten.gradients.at(name), gradient);
  }
}

std::string name_of(const testing::TestParamInfo<Kind>& kind) {
  std::string name = kind.param.name;
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, StepGradients, testing::ValuesIn(kinds()), name_of);

}  // namespace
}  // namespace tessera
