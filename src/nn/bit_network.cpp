// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/bit_network.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "nn/bit_epilogue.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/bit_chain.hpp"

namespace tessera::nn {
namespace {

using Codes = quant::BitTensorView<const std::uint32_t>;

/// Workspaces that are lent begin there.
constexpr std::size_t workspace_boundary = 256;

template <class T>
Buffer<T> on_device(const T* values, std::int64_t count, const Place& place) {
  Buffer<T> buffer(count, place);
  copy_bytes(buffer.data(), values, static_cast<std::size_t>(count) * sizeof(T), place.device,
             place.stream);
  return buffer;
}

/// Steps as they run in one kernel, or in one for each sum.
ops::BitChainProblem chain_of(const BitSteps& chain, std::int64_t vertices, std::int64_t block,
                              bool lists, const ops::PlanOptions& plans,
                              const std::vector<EpilogueNumbers>& numbers) {
  ops::BitChainProblem problem{{}, vertices, block, lists, plans};
  for (std::size_t i = 0; i < chain.steps().size(); ++i) {
    const BitStep& given = chain.steps()[i];
    ops::BitChainStep step;
    step.aggregates = given.aggregates;
    step.in = given.in;
    step.out = given.out;
    step.bits = given.input.bits;
    step.weights = given.weights;
    step.columns = numbers[i].parts(numbers[i].all.data(), {});
    step.terms = static_cast<int>(numbers[i].terms);
    step.activation = given.activation;
    if (i + 1 < chain.steps().size()) {
      const BitStep& next = chain.steps()[i + 1];
      step.requantise = next.input;
      step.scales_result = next.aggregates;
    }
    problem.steps.push_back(std::move(step));
  }
  return problem;
}

/// A step with its plan, and what it keeps on the device.
struct PlannedStep {
  std::string name;
  bool aggregates = false;
  std::int64_t terms = 0;
  std::int64_t out = 0;
  ops::BitPlan plan;
  quant::BitTensor weights;  ///< shape alone
  Buffer<std::uint32_t> weight_words;
  Buffer<float> numbers;  ///< of the epilogue, as it is built
  ops::BitEpilogue epilogue;
  std::optional<quant::BitTensor> output;  ///< shape; absent: values
  bool gives_bytes = false;                ///< in place of planes
  bool takes_bytes = false;
  std::size_t slot = 0;  ///< where its codes go
  bool scales_result = false;
  bool adds_own = false;
};

/// That so many codes fill in a plane.
std::int64_t words_of_row(std::int64_t codes) { return (codes + 31) / 32; }

}  // namespace

struct BitNetwork::State {
  State(const BitSteps& chain, const Graph* pattern, std::int64_t num_vertices,
        std::int64_t dense_block, const BitNetworkOptions& given)
      : vertices(num_vertices),
        block(dense_block),
        lists(pattern == nullptr && given.lists),
        plans(given.plans),
        place(given.plans.place()) {
    if (chain.steps().empty()) {
      throw Error(ErrorCode::invalid_argument, "no product of codes", "BitNetwork",
                  "give the steps of a model with bits");
    }
    plans.kernel.clear();
    plans.backward = false;
    plans.own_workspace = false;
    const auto count = static_cast<std::size_t>(chain.num_steps());
    const std::size_t kept = given.keeps_last_input && chain.last_layer() > 0
                                 ? static_cast<std::size_t>(chain.last_layer()) - 1
                                 : count;
    std::vector<EpilogueNumbers> numbers;
    for (std::size_t i = 0; i < count; ++i) {
      const BitStep& step = chain.steps()[i];
      check_own(step, pattern == nullptr);
      numbers.push_back(epilogue_numbers(step, i == 0 && given.scales_features,
                                         pattern == nullptr ? 0 : step.own));
    }
    if (pattern == nullptr && kept == count && !given.scales_features) {
      whole = ops::make_bit_chain(chain_of(chain, vertices, block, lists, plans, numbers));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const BitStep* const next = i + 1 < count ? &chain.steps()[i + 1] : nullptr;
      add(chain.steps()[i], next, pattern, numbers[i], i == kept);
      steps.back().slot = i == kept ? 2 : i % 2;
    }
    if (kept < count) last_input = kept;
    if (whole == nullptr) make_room();
  }

  static void check_own(const BitStep& step, bool dense) {
    if (!dense || step.own == 0 || step.own == 1) return;
    throw Error(ErrorCode::unsupported,
                fmt::format("a vertex that counts {} times in a dense adjacency", step.own),
                step.layer, "use eps 0, or the edges of a graph");
  }

  /// `kept`: somebody asks for the codes that come out.
  void add(const BitStep& step, const BitStep* next, const Graph* pattern,
           const EpilogueNumbers& numbers, bool kept) {
    PlannedStep planned;
    planned.name = fmt::format("{}: {}", step.layer, step.aggregates ? "sum" : "product");
    planned.aggregates = step.aggregates;
    planned.out = step.out;
    if (whole != nullptr) return steps.push_back(std::move(planned));
    const bool dense = pattern == nullptr && !lists;
    planned.adds_own = pattern != nullptr && step.own != 0;
    planned.terms = numbers.terms;
    ops::BitOptions options;
    static_cast<ops::PlanOptions&>(options) = plans;
    options.rows = vertices;
    options.cols = step.out;
    options.activation = step.activation;
    options.terms = static_cast<int>(numbers.terms);
    options.output = ops::BitOutput::values;
    if (next != nullptr) {
      const bool by_columns = next->aggregates && dense;
      planned.gives_bytes = next->aggregates && !dense && next->input.bits <= 8 && !kept;
      options.output = by_columns            ? ops::BitOutput::columns
                       : planned.gives_bytes ? ops::BitOutput::bytes
                                             : ops::BitOutput::rows;
      options.requantise = next->input;
      planned.output = quant::bit_tensor_shape(next->input.bits, by_columns ? step.out : vertices,
                                               by_columns ? vertices : step.out);
      planned.scales_result = next->aggregates;
      // Rows may have any number of words: narrow layers need no more than they fill.
      if (options.output == ops::BitOutput::rows) {
        options.codes_words = planned.output->words_per_row = words_of_row(step.out);
      }
    }
    if (step.aggregates) {
      options.b_bits = step.input.bits;
      if (!dense && !steps.empty()) {
        options.b_bytes = planned.takes_bytes = steps.back().gives_bytes;
        if (!options.b_bytes) options.b_words = words_of_row(step.out);
      }
      if (pattern != nullptr) {
        options.own = step.own;
        planned.plan = ops::plan_bit_aggregate(*pattern, options);
      } else {
        options.depth = vertices;
        options.block = block;
        planned.plan = lists ? ops::plan_bit_lists(options) : ops::plan_bit_gemm(options);
      }
    } else {
      options.depth = step.in;
      options.terms_of_a = numbers.terms > 0;
      const bool is_short = steps.empty() ? pattern == nullptr : words_of_row(step.in) % 4 != 0;
      if (is_short) options.a_words = words_of_row(step.in);
      options.a_bits = step.input.bits;
      options.b_bits = step.weights.bits;
      planned.plan = ops::plan_bit_gemm(options);
      planned.weights = step.weights;
      planned.weight_words = on_device(step.weights.words.data(), step.weights.words.size(), place);
    }
    planned.numbers =
        on_device(numbers.all.data(), static_cast<std::int64_t>(numbers.all.size()), place);
    planned.epilogue = numbers.parts(planned.numbers.data(), place.device);
    steps.push_back(std::move(planned));
  }

  /// Words.
  static std::int64_t room_of(const PlannedStep& step) {
    if (!step.gives_bytes) return step.output->num_words();
    return checked_area(step.output->rows, byte_stride(step.out)) / 4;
  }
  static std::int64_t byte_stride(std::int64_t cols) { return (cols + 15) / 16 * 16; }

  void make_room() {
    std::int64_t words[3] = {};
    std::int64_t bytes = 0;
    for (const PlannedStep& step : steps) {
      if (step.output) words[step.slot] = std::max(words[step.slot], room_of(step));
      bytes = std::max(bytes, step.plan.workspace_bytes());
    }
    for (std::size_t slot = 0; slot < 3; ++slot) {
      slots[slot] = Buffer<std::uint32_t>(words[slot], place);
    }
    workspace = Buffer<std::byte>(bytes + static_cast<std::int64_t>(workspace_boundary), place);
  }

  Workspace lent_workspace() {
    void* at = workspace.data();
    auto room = static_cast<std::size_t>(workspace.size());
    const auto bytes = room - workspace_boundary;
    std::align(workspace_boundary, bytes, at, room);
    return {at, static_cast<std::int64_t>(bytes)};
  }

  void run(const BitVertices& given, MatrixView<float> values, Stream stream) {
    if (whole != nullptr) {
      return whole->run(
          {given.features, given.adjacency, given.block_starts, given.list_offsets,
           given.list_sources, given.row_scale.data, given.col_scale.data, given.row_weights.data},
          values, stream);
    }
    Codes codes = given.features;
    MatrixView<const std::uint8_t> bytes;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      PlannedStep& step = steps[i];
      ops::BitInputs inputs;
      inputs.epilogue = step.epilogue;
      if (step.aggregates) {
        inputs.block_starts = given.block_starts;
        if (lists) {
          inputs.list_offsets = given.list_offsets;
          inputs.list_sources = given.list_sources;
        } else {
          inputs.a = given.adjacency;
        }
        if (step.takes_bytes) {
          inputs.b_bytes = bytes;
        } else {
          inputs.b = codes;
        }
        if (step.adds_own && given.row_scale.data != nullptr) {
          throw Error(ErrorCode::unsupported, "vertices of their own in sums that are scaled",
                      step.name, "use a pattern without scales");
        }
        inputs.epilogue.row_scale = given.row_scale;
        if (step.terms > 0) inputs.epilogue.row_terms = given.row_weights;
      } else {
        inputs.a = codes;
        inputs.b = step.weights.over(step.weight_words.data(), place.device);
        if (i == 0) inputs.epilogue.row_scale = given.feature_scale;
      }
      if (step.scales_result) inputs.epilogue.result_scale = given.col_scale;
      ops::BitOutputs outputs;
      if (step.gives_bytes) {
        outputs.bytes = {reinterpret_cast<std::uint8_t*>(slots[step.slot].data()), vertices,
                         step.out, byte_stride(step.out), place.device};
        bytes = outputs.bytes;
      } else if (step.output) {
        outputs.codes = step.output->over(slots[step.slot].data(), place.device);
      } else {
        outputs.values = values;
      }
      ops::run(step.plan, inputs, outputs, stream, lent_workspace());
      codes = outputs.codes;
    }
  }

  std::int64_t vertices;
  std::int64_t block;  ///< of an adjacency that comes with the runs ...
  bool lists;          ///< ... as lists
  ops::PlanOptions plans;
  Place place;
  std::unique_ptr<const ops::BitChain> whole;  ///< all steps together; null: one by one
  std::vector<PlannedStep> steps;
  std::optional<std::size_t> last_input;  ///< the step that makes it
  /// Codes alternate between two; a third keeps those that somebody asks for.
  Buffer<std::uint32_t> slots[3];
  Buffer<std::byte> workspace;
};

BitAdjacency bit_adjacency(const Graph& derived) {
  if (derived.has_values()) {
    throw Error(ErrorCode::unsupported, "edges with weights of their own in a model of integers",
                "adjacency",
                "use a graph without weights, or predict with rounded numbers (--rounded)");
  }
  BitAdjacency adjacency;
  adjacency.pattern = derived.with_scales({}, {});
  const VertexId rows = derived.num_rows();
  const auto copy = [&](bool present, auto&& scale) {
    return present ? std::vector<float>(scale().begin(), scale().end()) : std::vector<float>();
  };
  adjacency.row_scale = copy(derived.has_row_scale(), [&] { return derived.row_scale().span(); });
  adjacency.col_scale = copy(derived.has_col_scale(), [&] { return derived.col_scale().span(); });
  adjacency.row_weights.resize(static_cast<std::size_t>(rows));
  for (VertexId row = 0; row < rows; ++row) {
    const auto i = static_cast<std::size_t>(row);
    const float scale = adjacency.row_scale.empty() ? 1.0f : adjacency.row_scale[i];
    adjacency.row_weights[i] = scale * static_cast<float>(derived.degree(row));
  }
  return adjacency;
}

BitNetwork::BitNetwork(const BitSteps& steps, const Graph& pattern,
                       const BitNetworkOptions& options)
    : state_(std::make_unique<State>(steps, &pattern, pattern.num_rows(), 0, options)) {}

BitNetwork::BitNetwork(const BitSteps& steps, std::int64_t vertices, std::int64_t block,
                       const BitNetworkOptions& options)
    : state_(std::make_unique<State>(steps, nullptr, vertices, block, options)) {}

BitNetwork::BitNetwork(BitNetwork&&) noexcept = default;
BitNetwork& BitNetwork::operator=(BitNetwork&&) noexcept = default;
BitNetwork::~BitNetwork() = default;

void BitNetwork::run(const BitVertices& vertices, MatrixView<float> values, Stream stream) {
  state_->run(vertices, values, stream);
}

std::int64_t BitNetwork::output_width() const { return state_->steps.back().out; }

Codes BitNetwork::last_input() const {
  if (!state_->last_input) {
    throw Error(ErrorCode::unsupported, "codes that were not kept", "BitNetwork",
                "set keeps_last_input, and use a model of more than one layer");
  }
  const PlannedStep& step = state_->steps[*state_->last_input];
  return step.output->over(state_->slots[step.slot].data(), state_->place.device);
}

std::int64_t BitNetwork::weight_bytes() const {
  if (state_->whole != nullptr) return state_->whole->weight_bytes();
  std::int64_t bytes = 0;
  for (const PlannedStep& step : state_->steps) {
    bytes += step.weight_words.size() * 4 + step.numbers.size() * 4;
  }
  return bytes;
}

std::int64_t BitNetwork::activation_bytes() const {
  if (state_->whole != nullptr) return state_->whole->activation_bytes();
  std::int64_t bytes = 0;
  for (const auto& slot : state_->slots) bytes += slot.size() * 4;
  return bytes;
}

std::int64_t BitNetwork::full_activation_bytes() const {
  std::int64_t numbers[3] = {};
  for (const PlannedStep& step : state_->steps) {
    if (&step == &state_->steps.back()) continue;  // gives values to the caller
    numbers[step.slot] = std::max(numbers[step.slot], checked_area(state_->vertices, step.out));
  }
  return (numbers[0] + numbers[1] + numbers[2]) * static_cast<std::int64_t>(sizeof(float));
}

ops::Explanation BitNetwork::explain() const {
  ops::Explanation explanation;
  explanation.summary = fmt::format("{} products of codes in integers", state_->steps.size());
  if (state_->whole != nullptr) explanation.summary += ", all in " + state_->whole->name();
  for (const PlannedStep& step : state_->steps) {
    explanation.children.push_back(state_->whole == nullptr ? step.plan.explain()
                                                            : ops::Explanation());
    explanation.children.back().name = step.name;
  }
  return explanation;
}

}  // namespace tessera::nn
