// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/random.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

/// Every planned op on a GPU, forward and backward, behind one face.
namespace tessera::test {

constexpr Device memory_gpu{DeviceKind::cuda, 0};
constexpr std::int64_t case_features = 64;
constexpr std::int64_t case_heads = 4;

/// A new graph each time, so that nothing lies on a GPU yet: 700 vertices, with hubs that are cut.
inline Graph memory_graph() {
  constexpr VertexId vertices = 700;
  std::vector<VertexId> sources, targets;
  for (VertexId target = 0; target < vertices; ++target) {
    const VertexId degree = target % 100 == 0 ? vertices : target % 13;
    for (VertexId k = 0; k < degree; ++k) {
      sources.push_back((target * 7 + k) % vertices);
      targets.push_back(target);
    }
  }
  return from_edges(vertices, sources, targets);
}

/// What the cases read and write: fp32, on the GPU, the same numbers every time.
class CaseOperands {
 public:
  explicit CaseOperands(const Graph& graph)
      : vertices_(graph.num_rows()), edges_(graph.num_edges()) {
    for (Buffer<float>* buffer : {&u_, &v_, &w_, &grad_, &out_, &out_u_, &out_v_}) {
      *buffer = drawn(vertices_ * case_features);
    }
    for (Buffer<float>* buffer : {&edge_in_, &edge_out_}) *buffer = drawn(edges_ * case_heads);
    log_sum_ = drawn(vertices_ * case_heads);
    scale_ = Buffer<double>(1, default_memory(memory_gpu));
    synchronise(memory_gpu);
  }

  ops::Operand u() { return matrix(u_, vertices_, case_features); }
  ops::Operand v() { return matrix(v_, vertices_, case_features); }
  ops::Operand w() { return matrix(w_, vertices_, case_features); }
  ops::Operand grad() { return matrix(grad_, vertices_, case_features); }
  ops::Operand out() { return matrix(out_, vertices_, case_features); }
  ops::Operand out_u() { return matrix(out_u_, vertices_, case_features); }
  ops::Operand out_v() { return matrix(out_v_, vertices_, case_features); }
  ops::Operand vector() { return matrix(w_, 1, case_features); }
  ops::Operand edge_in(std::int64_t cols) { return matrix(edge_in_, edges_, cols); }
  ops::Operand edge_out(std::int64_t cols) { return matrix(edge_out_, edges_, cols); }
  ops::Operand log_sum() { return matrix(log_sum_, vertices_, case_heads); }
  double* scale() { return scale_.data(); }

  /// All that cases write, once the stream has got there.
  std::vector<float> results(Stream stream) {
    std::vector<float> all;
    for (Buffer<float>* buffer : {&out_, &out_u_, &out_v_, &edge_out_}) {
      const std::size_t before = all.size();
      all.resize(before + static_cast<std::size_t>(buffer->size()));
      copy_bytes(all.data() + before, buffer->data(),
                 static_cast<std::size_t>(buffer->size()) * sizeof(float), memory_gpu, stream);
    }
    synchronise(memory_gpu, stream);
    return all;
  }

 private:
  static ops::Operand matrix(Buffer<float>& buffer, std::int64_t rows, std::int64_t cols) {
    return matrix_in(buffer, rows, cols);
  }

  static Buffer<float> drawn(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    const Random random(static_cast<std::uint64_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(random.uniform(i)) - 0.5f;
    }
    Buffer<float> buffer(count, default_memory(memory_gpu));
    copy_bytes(buffer.data(), values.data(), values.size() * sizeof(float), memory_gpu);
    return buffer;
  }

  std::int64_t vertices_, edges_;
  Buffer<float> u_, v_, w_, grad_, out_, out_u_, out_v_, edge_in_, edge_out_, log_sum_;
  Buffer<double> scale_;
};

/// A plan that was made, and how it runs: every pass it has, one after another.
struct PlannedCase {
  std::int64_t workspace_bytes = 0;
  std::function<void(CaseOperands&, Stream, Workspace)> run;
};

struct MemoryCase {
  std::string name;
  std::function<PlannedCase(const Graph&, const ops::PlanOptions&)> plan;
};

template <class Options>
Options with(const ops::PlanOptions& base) {
  Options options;
  static_cast<ops::PlanOptions&>(options) = base;
  return options;
}

inline MemoryCase spmm_case(const std::string& kernel, ops::Reduction reduction) {
  return {kernel.empty() ? std::string("spmm_") + to_string(reduction) : kernel,
          [=](const Graph& graph, const ops::PlanOptions& base) {
            auto options = with<ops::SpmmOptions>(base);
            options.kernel = kernel;
            options.features = case_features;
            options.reduction = reduction;
            const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
            return PlannedCase{plan.workspace_bytes(),
                               [plan](CaseOperands& on, Stream stream, Workspace workspace) {
                                 ops::run(plan, {on.u()}, {on.out()}, stream, workspace);
                               }};
          }};
}

inline MemoryCase spmm_backward_case() {
  return {"spmm_backward", [](const Graph& graph, const ops::PlanOptions& base) {
            auto options = with<ops::SpmmOptions>(base);
            options.features = case_features;
            options.backward = true;
            const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
            return PlannedCase{plan.workspace_bytes(),
                               [plan](CaseOperands& on, Stream stream, Workspace workspace) {
                                 ops::run_backward(plan, {on.grad(), on.u()},
                                                   {on.out(), on.edge_out(1)}, stream, workspace);
                               }};
          }};
}

inline MemoryCase sddmm_case() {
  return {"sddmm", [](const Graph& graph, const ops::PlanOptions& base) {
            auto options = with<ops::SddmmOptions>(base);
            options.features = case_features;
            options.heads = case_heads;
            options.backward = true;
            const ops::SddmmPlan plan = ops::plan_sddmm(graph, options);
            return PlannedCase{plan.workspace_bytes(),
                               [plan](CaseOperands& on, Stream stream, Workspace workspace) {
                                 ops::run(plan, on.u(), on.v(), on.edge_out(case_heads), stream,
                                          workspace);
                                 ops::run_backward(plan, on.u(), on.v(), on.edge_in(case_heads),
                                                   on.out_u(), on.out_v(), stream, workspace);
                               }};
          }};
}

inline MemoryCase edge_softmax_case() {
  return {"edge_softmax", [](const Graph& graph, const ops::PlanOptions& base) {
            auto options = with<ops::EdgeSoftmaxOptions>(base);
            options.heads = case_heads;
            const ops::EdgeSoftmaxPlan plan = ops::plan_edge_softmax(graph, options);
            return PlannedCase{plan.workspace_bytes(),
                               [plan](CaseOperands& on, Stream stream, Workspace workspace) {
                                 ops::run(plan, on.edge_in(case_heads), on.edge_out(case_heads),
                                          stream, workspace);
                               }};
          }};
}

inline MemoryCase attention_case(ops::AttentionForm form, const std::string& kernel) {
  return {std::string("attention_") + to_string(form) + kernel,
          [=](const Graph& graph, const ops::PlanOptions& base) {
            auto options = with<ops::AttentionOptions>(base);
            options.kernel = kernel;
            options.form = form;
            options.features = case_features;
            options.heads = case_heads;
            options.backward = true;
            const ops::AttentionPlan plan = ops::plan_attention(graph, options);
            return PlannedCase{
                plan.workspace_bytes(),
                [plan, form](CaseOperands& on, Stream stream, Workspace workspace) {
                  const bool narrow = form == ops::AttentionForm::gat;
                  const auto scores = [&](ops::Operand operand) {
                    return MatrixView<float>(static_cast<float*>(operand.data), operand.rows,
                                             narrow ? case_heads : case_features, memory_gpu);
                  };
                  ops::AttentionInputs inputs;
                  inputs.target = scores(on.u());
                  inputs.source = scores(on.v());
                  inputs.value = on.w();
                  if (form == ops::AttentionForm::gatv2) inputs.vector = on.vector();
                  ops::run(plan, inputs, {on.out(), on.log_sum()}, stream, workspace);
                  ops::AttentionGradOutputs gradients;
                  gradients.target = scores(on.out_u());
                  gradients.source = scores(on.out_v());
                  if (form == ops::AttentionForm::dot) gradients.scale = on.scale();
                  ops::run_backward(plan, inputs, on.out(), on.log_sum(), on.grad(), gradients,
                                    stream, workspace);
                }};
          }};
}

inline std::vector<MemoryCase> memory_cases() {
  std::vector<MemoryCase> cases;
  for (const ops::Reduction reduction : {ops::Reduction::sum, ops::Reduction::max}) {
    cases.push_back(spmm_case("", reduction));
  }
  for (const char* kernel : {"spmm/cuda/rows*", "spmm/cuda/tall*"}) {
    cases.push_back(spmm_case(kernel, ops::Reduction::sum));
  }
  cases.push_back(spmm_backward_case());
  cases.push_back(sddmm_case());
  cases.push_back(edge_softmax_case());
  cases.push_back(attention_case(ops::AttentionForm::gat, ""));
  cases.push_back(attention_case(ops::AttentionForm::gatv2, ""));
  cases.push_back(attention_case(ops::AttentionForm::dot, "attention/cuda/rows"));
  cases.push_back(attention_case(ops::AttentionForm::dot, "attention/cuda/staged"));
  return cases;
}

}  // namespace tessera::test
