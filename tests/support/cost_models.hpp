// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/device_traits.hpp"
#include "ops/aggregate_update/cost.hpp"
#include "ops/aggregate_update/cuda/windows/cost.hpp"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/attention/cuda/cost.hpp"
#include "ops/edge_softmax/cuda/rows/cost.hpp"
#include "ops/edge_softmax/cuda/rows/launch.hpp"
#include "ops/messages/cuda/rows/cost.hpp"
#include "ops/sddmm/cuda/cost.hpp"
#include "ops/spmm/cuda/hybrid/cost.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/scatter/cost.hpp"
#include "ops/spmm/cuda/short/cost.hpp"
#include "ops/spmm/cuda/tall/cost.hpp"

/// The cost models of CUDA kernels, for a GPU that need not be there. No other test names them.
namespace tessera::test {

struct Workload {
  Graph graph;
  std::int64_t features = 64;
  Precision precision = Precision::bf16;
};

struct CostModel {
  std::string op;
  std::string kernel;
  bool on_windows;  ///< of rows that share sources, on tensor cores; else row by row
  std::function<double(const Workload&, const DeviceTraits&)> us;
  bool any_width = true;  ///< else only 32, 64 and 128 features

  bool takes(std::int64_t features) const {
    return any_width || features == 32 || features == 64 || features == 128;
  }
};

inline ops::SpmmProblem spmm_of(const Workload& work) {
  ops::SpmmProblem problem;
  problem.graph = work.graph;
  problem.features = work.features;
  problem.precision = work.precision;
  return problem;
}

inline ops::SddmmProblem sddmm_of(const Workload& work) {
  ops::SddmmProblem problem;
  problem.graph = work.graph;
  problem.features = work.features;
  problem.precision = work.precision;
  return problem;
}

inline ops::EdgeSoftmaxProblem softmax_of(const Workload& work) {
  ops::EdgeSoftmaxProblem problem{work.graph, {}};
  problem.options.heads = work.features;
  problem.options.precision = work.precision;
  return problem;
}

inline ops::MessagesProblem messages_of(const Workload& work) {
  ops::MessagesProblem problem{work.graph, {}};
  problem.options.features = work.features;
  problem.options.precision = work.precision;
  return problem;
}

inline ops::AttentionProblem attention_of(const Workload& work, ops::AttentionForm form) {
  ops::AttentionProblem problem{work.graph, {}};
  problem.options.form = form;
  problem.options.features = work.features;
  problem.options.precision = work.precision;
  return problem;
}

inline ops::AggregateUpdateProblem update_of(const Workload& work) {
  ops::AggregateUpdateProblem problem{work.graph, {}, ops::SpmmPass::forward};
  problem.options.in = problem.options.out = work.features;
  problem.options.precision = work.precision;
  return problem;
}

/// By the policy that has the least of it.
inline double rows_us(const ops::SpmmProblem& problem, const DeviceTraits& gpu) {
  const ops::ProblemRows rows(problem);
  const std::size_t best = ops::best_rows_policy(problem, rows.lengths(), gpu);
  return ops::predicted_rows_us(problem, ops::rows_policies[best], gpu);
}

inline void add_sums(std::vector<CostModel>& models) {
  models.push_back({"spmm", "rows", false, [](const Workload& work, const DeviceTraits& gpu) {
                      return rows_us(spmm_of(work), gpu);
                    }});
  models.push_back({"spmm", "scatter", false, [](const Workload& work, const DeviceTraits& gpu) {
                      return ops::predict_scatter_us(spmm_of(work), gpu);
                    }});
  for (const ops::TallPolicy& policy : ops::tall_policies) {
    models.push_back(
        {"spmm", policy.name, true, [policy](const Workload& work, const DeviceTraits& gpu) {
           return ops::predict_tall_us(spmm_of(work), policy, gpu);
         }});
  }
  for (const auto encoding : {ops::ShortEncoding::bits, ops::ShortEncoding::quads}) {
    models.push_back(
        {"spmm", "short", true, [encoding](const Workload& work, const DeviceTraits& gpu) {
           return ops::predict_short_us(spmm_of(work), encoding, gpu);
         }});
  }
}

inline void add_dots(std::vector<CostModel>& models) {
  models.push_back({"sddmm", "edges", false, [](const Workload& work, const DeviceTraits& gpu) {
                      double least = std::numeric_limits<double>::infinity();
                      for (const ops::EdgesPolicy& policy : ops::vector_policies) {
                        least =
                            std::min(least, ops::predict_edges_us(sddmm_of(work), policy, 16, gpu));
                      }
                      return least;
                    }});
  for (const ops::ListPolicy& policy : ops::list_policies) {
    models.push_back(
        {"sddmm", "lists", false, [policy](const Workload& work, const DeviceTraits& gpu) {
           return ops::predict_list_us(sddmm_of(work), policy, gpu);
         }});
  }
  models.push_back({"sddmm", "tall", true, [](const Workload& work, const DeviceTraits& gpu) {
                      return ops::predict_tall_dots_us(sddmm_of(work), gpu);
                    }});
  for (const bool direct : {false, true}) {
    models.push_back(
        {"sddmm", "short", true, [direct](const Workload& work, const DeviceTraits& gpu) {
           return ops::predict_short_dots_us(sddmm_of(work), direct, gpu);
         }});
  }
}

inline void add_attention(std::vector<CostModel>& models) {
  using Predict = double (*)(const ops::AttentionProblem&, const DeviceTraits&);
  const auto add = [&](ops::AttentionForm form, const char* kernel, bool on_windows,
                       Predict predict) {
    models.push_back({form == ops::AttentionForm::dot ? "dot attention" : "gatv2 attention", kernel,
                      on_windows, [form, predict](const Workload& work, const DeviceTraits& gpu) {
                        return predict(attention_of(work, form), gpu);
                      }});
  };
  add(ops::AttentionForm::dot, "rows", false, ops::predict_rows_attention_us);
  add(ops::AttentionForm::dot, "tall", true, ops::predict_tall_attention_us);
  add(ops::AttentionForm::dot, "short", true, ops::predict_short_attention_us);
  add(ops::AttentionForm::gatv2, "rows", false, ops::predict_rows_attention_us);
  add(ops::AttentionForm::gatv2, "pairs", false, ops::predict_pairs_attention_us);
  models.back().any_width = false;
  for (const int team : ops::softmax_teams) {
    models.push_back(
        {"edge_softmax", "rows", false, [team](const Workload& work, const DeviceTraits& gpu) {
           return ops::predict_softmax_us(softmax_of(work), team, gpu);
         }});
  }
}

inline void add_messages(std::vector<CostModel>& models) {
  models.push_back({"messages", "rows", false, [](const Workload& work, const DeviceTraits& gpu) {
                      return ops::predict_messages_us(messages_of(work), gpu);
                    }});
}

inline void add_updates(std::vector<CostModel>& models) {
  models.push_back({"update", "fused", false, [](const Workload& work, const DeviceTraits& gpu) {
                      return ops::predicted_fused_update_us(update_of(work), gpu);
                    }});
  models.push_back({"update", "stages", false, [](const Workload& work, const DeviceTraits& gpu) {
                      return rows_us(spmm_of(work), gpu) +
                             ops::predicted_products_us(update_of(work), gpu);
                    }});
  for (const ops::TallPolicy& policy : ops::window_update_policies) {
    models.push_back(
        {"update", "windows", true, [policy](const Workload& work, const DeviceTraits& gpu) {
           return ops::predicted_window_update_us(update_of(work), policy, gpu);
         }});
  }
}

inline std::vector<CostModel> cost_models() {
  std::vector<CostModel> models;
  add_sums(models);
  add_dots(models);
  add_attention(models);
  add_messages(models);
  add_updates(models);
  return models;
}

}  // namespace tessera::test
