// SPDX-License-Identifier: Apache-2.0
// Products of codes of few bits, exact in integers. Codes come as planes of bits: a tensor of
// int32, bits x padded rows x words, as quant::BitTensor has them.
#include "tessera/ops/bits.hpp"

#include <map>
#include <optional>

#include "counters.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

using BitPlanned = std::shared_ptr<Planned<ops::BitPlan>>;

Error bad(const std::string& what, const char* where, const char* fix) {
  return Error(ErrorCode::invalid_argument, what, where, fix);
}

/// The planes of a tensor, held against the shape that they must have.
quant::BitTensorView<std::uint32_t> planes_of(const Tensor& words, std::int64_t rows,
                                              std::int64_t depth, const char* name) {
  if (words.scalar_type() != ScalarType::Int || words.dim() != 3 || words.size(0) < 1 ||
      words.size(0) > quant::max_bits) {
    throw bad("planes that are not 1 to 16 x rows x words of int32", name, "use tessera.bits");
  }
  const quant::BitTensor shape =
      quant::bit_tensor_shape(static_cast<int>(words.size(0)), rows, depth);
  const bool fits = words.size(1) == shape.padded_rows && words.size(2) == shape.words_per_row &&
                    words.stride(2) == 1 && words.stride(1) == words.size(2) &&
                    words.stride(0) == words.size(1) * words.size(2);
  if (!fits) {
    throw bad("planes that do not hold " + std::to_string(rows) + " x " + std::to_string(depth) +
                  " codes in one piece",
              name, "use tessera.bits");
  }
  return shape.over(static_cast<std::uint32_t*>(words.data_ptr()), device_of(words));
}

/// What becomes of the sums.
struct Ending {
  ops::BitOutput output;
  ops::BitActivation activation;
  std::optional<quant::Affine> requantise = {};

  Ending(std::int64_t output_number, std::int64_t activation_number, std::int64_t bits,
         double lower, double scale)
      : output(static_cast<ops::BitOutput>(output_number)),
        activation(static_cast<ops::BitActivation>(activation_number)) {
    if (output_number < 0 || output == ops::BitOutput::bytes || output_number > 5) {
      throw bad("an output of the number " + std::to_string(output_number), "output", "use 0 to 4");
    }
    if (!gives_codes()) return;
    quant::check_bits(static_cast<int>(bits), "bits");
    requantise = quant::Affine{.bits = static_cast<int>(bits),
                               .lower = {static_cast<float>(lower)},
                               .scale = {static_cast<float>(scale)}};
  }

  bool gives_codes() const {
    return output == ops::BitOutput::rows || output == ops::BitOutput::columns;
  }
};

/// The factors and summands of values, each a float tensor or absent.
struct Factors {
  std::optional<Tensor> row_scale;
  std::optional<Tensor> col_scale;
  std::optional<Tensor> row_terms;
  std::optional<Tensor> col_terms;
  std::optional<Tensor> bias;

  Factors(std::optional<Tensor> of_rows, std::optional<Tensor> of_cols,
          std::optional<Tensor> terms_of_rows, std::optional<Tensor> terms_of_cols,
          std::optional<Tensor> of_bias)
      : row_scale(std::move(of_rows)),
        col_scale(std::move(of_cols)),
        row_terms(std::move(terms_of_rows)),
        col_terms(std::move(terms_of_cols)),
        bias(std::move(of_bias)) {
    for (std::optional<Tensor>* factor : {&row_scale, &col_scale, &row_terms, &col_terms, &bias}) {
      if (*factor) *factor = torch::stable::contiguous(in_type(**factor, ScalarType::Float));
    }
  }

  std::int64_t terms() const { return row_terms ? row_terms->size(1) : 0; }

  ops::BitEpilogue epilogue(std::int64_t rows, std::int64_t cols) const {
    ops::BitEpilogue found;
    found.row_scale = view(row_scale, rows, 1, "row_scale");
    found.col_scale = view(col_scale, 1, cols, "col_scale");
    found.row_terms = view(row_terms, rows, terms(), "row_terms");
    found.col_terms = view(col_terms, terms(), cols, "col_terms");
    found.bias = view(bias, 1, cols, "bias");
    return found;
  }

 private:
  static MatrixView<const float> view(const std::optional<Tensor>& tensor, std::int64_t rows,
                                      std::int64_t cols, const char* name) {
    if (!tensor) return {};
    if (tensor->numel() != rows * cols) {
      throw bad(std::to_string(tensor->numel()) + " numbers for " + std::to_string(rows) + " x " +
                    std::to_string(cols),
                name, "give one for each");
    }
    return {static_cast<const float*>(tensor->const_data_ptr()), rows, cols, device_of(*tensor)};
  }
};

ops::BitOptions options_for(const Place& place, const Ending& ending, std::int64_t terms,
                            std::int64_t cols, int b_bits) {
  ops::BitOptions options;
  set_common(options, place, 0);
  options.cols = cols;
  options.b_bits = b_bits;
  options.output = ending.output;
  options.activation = ending.activation;
  options.requantise = ending.requantise;
  options.terms = static_cast<int>(terms);
  return options;
}

PlanNumbers numbers_of(const Ending& ending, std::int64_t terms, std::int64_t cols, int b_bits) {
  PlanNumbers numbers{5,
                      static_cast<double>(ending.output),
                      static_cast<double>(ending.activation),
                      static_cast<double>(terms),
                      static_cast<double>(cols),
                      static_cast<double>(b_bits)};
  if (ending.requantise) {
    numbers[6] = ending.requantise->bits;
    numbers[7] = ending.requantise->lower[0];
    numbers[8] = ending.requantise->scale[0];
  }
  return numbers;
}

/// Plans of products of two matrices, which belong to no graph: the last 64 shapes.
class GemmPlans {
 public:
  using Key = std::tuple<PlanNumbers, std::int64_t, std::int64_t, int, int>;

  template <class Make>
  BitPlanned find(const Key& key, const Place& place, Make&& make) {
    const std::scoped_lock lock(mutex_);
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    if (is_capturing(place)) {
      throw bad("while capturing a CUDA graph: this product was not planned before", "capture",
                "run the whole step once before torch.cuda.graph");
    }
    if (plans_.size() >= 64) plans_.clear();
    auto planned = std::make_shared<Planned<ops::BitPlan>>();
    planned->plan = make();
    ++counters().plans;
    return plans_.emplace(key, planned).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<Key, BitPlanned> plans_;
};

/// Never destroyed, as the cache of graphs is not.
GemmPlans& gemm_plans() {
  static auto* const plans = new GemmPlans;
  return *plans;
}

/// A tensor of what the plan gives, and where a run writes.
struct Result {
  Tensor tensor;
  ops::BitOutputs outputs = {};

  Result(const Tensor& beside, const Ending& ending, std::int64_t rows, std::int64_t cols)
      : tensor(make(beside, ending, rows, cols)) {
    switch (ending.output) {
      case ops::BitOutput::sums32: outputs.sums32 = matrix<std::int32_t>(); break;
      case ops::BitOutput::sums64: outputs.sums64 = matrix<std::int64_t>(); break;
      case ops::BitOutput::values: outputs.values = matrix<float>(); break;
      case ops::BitOutput::rows: outputs.codes = planes_of(tensor, rows, cols, "result"); break;
      default: outputs.codes = planes_of(tensor, cols, rows, "result"); break;
    }
  }

 private:
  template <class T>
  MatrixView<T> matrix() const {
    return {static_cast<T*>(tensor.data_ptr()), tensor.size(0), tensor.size(1), device_of(tensor)};
  }

  static Tensor make(const Tensor& beside, const Ending& ending, std::int64_t rows,
                     std::int64_t cols) {
    if (!ending.gives_codes()) {
      const ScalarType types[] = {ScalarType::Int, ScalarType::Long, ScalarType::Float};
      return empty_beside(beside, rows, cols, types[static_cast<int>(ending.output)]);
    }
    const bool by_rows = ending.output == ops::BitOutput::rows;
    const quant::BitTensor shape = quant::bit_tensor_shape(
        ending.requantise->bits, by_rows ? rows : cols, by_rows ? cols : rows);
    Tensor words = torch::stable::empty(
        std::array<std::int64_t, 3>{shape.bits, shape.padded_rows, shape.words_per_row},
        ScalarType::Int, std::nullopt, beside.device());
    return torch::stable::zero_(words);
  }
};

void run(const BitPlanned& planned, const ops::BitInputs& inputs, const Result& result) {
  const BorrowedWorkspace workspace(result.tensor, planned->plan);
  const std::scoped_lock lock(planned->mutex);
  ops::run(planned->plan, inputs, result.outputs, place_of(result.tensor).stream, workspace);
  note_run(planned->plan, "forward");
}

Tensor bit_gemm(Tensor a, Tensor b, std::optional<Tensor> row_scale,
                std::optional<Tensor> col_scale, std::optional<Tensor> row_terms,
                std::optional<Tensor> col_terms, std::optional<Tensor> bias, std::int64_t rows,
                std::int64_t cols, std::int64_t depth, std::int64_t activation, std::int64_t output,
                std::int64_t bits, double lower, double scale) {
  const DeviceScope scope(a);
  const Ending ending(output, activation, bits, lower, scale);
  const Factors factors(row_scale, col_scale, row_terms, col_terms, bias);
  ops::BitInputs inputs;
  inputs.a = planes_of(a, rows, depth, "a");
  inputs.b = planes_of(b, cols, depth, "b");
  inputs.epilogue = factors.epilogue(rows, cols);
  Result result(a, ending, rows, cols);
  if (rows == 0 || cols == 0) return result.tensor;
  const Place place = place_of(a);
  const auto planned = gemm_plans().find(
      {numbers_of(ending, factors.terms(), cols, inputs.b.bits), rows, depth, inputs.a.bits,
       place.device.kind == DeviceKind::cpu ? -1 : place.device.index},
      place, [&] {
        ops::BitOptions options = options_for(place, ending, factors.terms(), cols, inputs.b.bits);
        options.rows = rows;
        options.depth = depth;
        options.a_bits = inputs.a.bits;
        return ops::plan_bit_gemm(options);
      });
  run(planned, inputs, result);
  return result.tensor;
}

Tensor bit_aggregate(Tensor b, std::optional<Tensor> row_scale, std::optional<Tensor> col_scale,
                     std::optional<Tensor> row_terms, std::optional<Tensor> col_terms,
                     std::optional<Tensor> bias, Tensor index, std::optional<Tensor> offsets,
                     std::int64_t targets, std::int64_t sources, std::int64_t layout,
                     std::int64_t loops, std::int64_t features, std::int64_t activation,
                     std::int64_t output, std::int64_t bits, double lower, double scale) {
  const DeviceScope scope(b);
  const Ending ending(output, activation, bits, lower, scale);
  const Factors factors(row_scale, col_scale, row_terms, col_terms, bias);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  structure->require_each_edge_once();
  ops::BitInputs inputs;
  inputs.b = planes_of(b, sources, features, "b");
  inputs.epilogue = factors.epilogue(targets, features);
  Result result(b, ending, targets, features);
  if (targets == 0 || features == 0) return result.tensor;
  const Place place = place_of(b);
  const auto planned = structure->plan<ops::BitPlan>(
      numbers_of(ending, factors.terms(), features, inputs.b.bits), place, [&] {
        return ops::plan_bit_aggregate(
            structure->graph(Norm::none, 1),
            options_for(place, ending, factors.terms(), features, inputs.b.bits));
      });
  run(planned, inputs, result);
  return result.tensor;
}

}  // namespace

void register_bits(torch::stable::detail::StableLibrary& library) {
  library.impl("bit_gemm", TORCH_BOX(&Guarded<&bit_gemm>::run));
  library.impl("bit_aggregate", TORCH_BOX(&Guarded<&bit_aggregate>::run));
}

}  // namespace tessera::torch_ops
