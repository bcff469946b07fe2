// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/attention_kept.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/graph/transform.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#include "bench/sample.hpp"
#include "ops/attention/kernel.hpp"
#include "ops/attention/reference.hpp"

namespace tessera::bench {
namespace {

using ops::AttentionForm;
using ops::AttentionInputs;

/// Log-sums are kept in at least fp32.
template <class T>
using LogSum = std::conditional_t<std::is_same_v<T, double>, double, float>;

ops::AttentionOptions options_of(const Problem& problem, AttentionForm form, bool backward) {
  ops::AttentionOptions options;
  set_run_options(problem, options);
  options.backward = backward;
  options.form = form;
  options.precision = problem.precision;
  options.heads = problem.heads;
  options.features = problem.features;
  return options;
}

/// Each row divided by its length.
Matrix<double> unit_rows(Matrix<double> rows) {
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    double squares = 0;
    for (std::int64_t f = 0; f < rows.cols(); ++f) squares += rows(i, f) * rows(i, f);
    const double length = std::max(std::sqrt(squares), 1e-12);
    for (std::int64_t f = 0; f < rows.cols(); ++f) rows(i, f) /= length;
  }
  return rows;
}

/// The same problem on some rows, in double, with the operands of those rows.
struct SampledInputs {
  RowSample sample;
  Matrix<double> target, source, value, vector;
  double scale = 1;

  AttentionInputs inputs() const { return {target, source, value, vector, scale, Random(0)}; }
};

template <class T>
class Forward : public Trial {
 public:
  Forward(const Problem& problem, AttentionForm form, bool backward = false)
      : plan_(ops::plan_attention(problem.graph, options_of(problem, form, backward))),
        seed_(problem.seed),
        sample_size_(sample_size(problem)),
        scale_(1 / std::sqrt(std::max(1.0, static_cast<double>(width())))),
        target_(random_placed<T>(problem.graph.num_rows(), score_width(), seed_, problem.device)),
        source_(
            random_placed<T>(problem.graph.num_cols(), score_width(), seed_ + 1, problem.device)),
        value_(random_placed<T>(values_are_sources() ? 0 : problem.graph.num_cols(),
                                problem.features, seed_ + 2, problem.device)),
        vector_(random_placed<T>(has_vector() ? 1 : 0, is_cosine() ? 1 : problem.features,
                                 seed_ + 3, problem.device)),
        output_(problem.graph.num_rows(), problem.features, problem.device),
        log_sum_(problem.graph.num_rows(), problem.heads, problem.device),
        kept_(1, ops::kept_numbers(plan_), problem.device) {}

  Gate check() override {
    run({});
    return check_output();
  }
  void run(Stream stream) override {
    ops::run_keeping(plan_, inputs(), {output_, log_sum_}, kept(), stream);
  }
  std::int64_t bytes() const override {
    return structure_bytes(plan_.graph(), plan_.options().device) + target_.bytes() +
           source_.bytes() + value_.bytes() + output_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 protected:
  std::int64_t width() const { return plan_.options().features / plan_.options().heads; }
  bool is_cosine() const { return plan_.options().form == AttentionForm::cosine; }
  bool has_vector() const { return is_cosine() || plan_.options().form == AttentionForm::gatv2; }
  /// As in the layer, whose sources are weighted.
  bool values_are_sources() const { return plan_.options().form == AttentionForm::gatv2; }
  Placed<T>& values() { return values_are_sources() ? source_ : value_; }
  const Placed<T>& values() const { return values_are_sources() ? source_ : value_; }
  /// A cosine has no scores beside its values.
  std::int64_t score_width() const {
    if (is_cosine()) return 0;
    return plan_.options().form == AttentionForm::gat ? plan_.options().heads
                                                      : plan_.options().features;
  }
  AttentionInputs inputs() {
    if (is_cosine()) return {{}, {}, value_, vector_, 1, Random(0)};
    return {target_, source_, values(), vector_, scale_, Random(0)};
  }

  /// What the reference computes: the cosines of sampled rows, which are no longer a square graph,
  /// as products of rows of length 1.
  ops::AttentionOptions sampled_options() const {
    ops::AttentionOptions options = plan_.options();
    if (is_cosine()) options.form = AttentionForm::dot;
    return options;
  }

  SampledInputs sampled(RowSample sample) const {
    SampledInputs result;
    result.value = values().input_rows(sample.cols);
    if (is_cosine()) {
      result.target = unit_rows(value_.input_rows(sample.rows));
      result.source = unit_rows(value_.input_rows(sample.cols));
      result.scale = vector_.input_rows(spread_rows(1, 1))(0, 0);
      result.sample = std::move(sample);
      return result;
    }
    result.target = target_.input_rows(sample.rows);
    result.source = source_.input_rows(sample.cols);
    result.vector = vector_.input_rows(spread_rows(vector_.rows(), 1));
    result.scale = scale_;
    result.sample = std::move(sample);
    return result;
  }

  /// Beside the sums, rounding of the score enters the exponent. Inputs are below 1.
  ErrorMeasure measure() const {
    const double unit = plan_.options().precision == Precision::fp64 ? 0x1p-53 : 0x1p-24;
    const double largest_score =
        plan_.options().form == AttentionForm::gat ? 2 : 2 * static_cast<double>(width());
    return ErrorMeasure(
        {.stored = plan_.options().precision,
         .strict = plan_.kernel().strict,
         .terms = longest_row(plan_.graph()),
         .more = 8 * unit * largest_score + 2 * cosine_error() +
                 2 * ops::attention_weight_error(plan_.kernel().name, plan_.options())});
  }
  /// Kernels may round the rows of length 1 whose products cosines are.
  double cosine_error() const {
    if (!is_cosine()) return 0;
    switch (plan_.options().precision) {
      case Precision::bf16: return 2 * 0x1p-9;
      case Precision::fp16: return 2 * 0x1p-12;
      default: return 0;
    }
  }

  Gate check_output() {
    SampledInputs sample = sampled(sample_rows(plan_.graph(), seed_, sample_size_));
    const Matrix<double> computed = output_.result_rows(sample.sample.rows);
    Matrix<double> expected(computed.rows(), computed.cols());
    Matrix<double> magnitude(computed.rows(), computed.cols());
    const ops::AttentionOptions options = sampled_options();
    ops::reference::attention(sample.sample.graph, options, sample.inputs(), {expected});
    sample.value = absolute(std::move(sample.value));
    ops::reference::attention(sample.sample.graph, options, sample.inputs(), {magnitude});
    const ErrorMeasure errors = measure();
    return {errors.largest_error(computed.view(), expected, magnitude), errors.bound(),
            computed.rows(), output_.rows()};
  }

  ops::Operand kept() { return kept_.cols() > 0 ? ops::Operand(kept_) : ops::Operand(); }

  ops::AttentionPlan plan_;
  std::uint64_t seed_;
  SampleSize sample_size_;
  double scale_;
  Placed<T> target_, source_, value_, vector_, output_;
  Placed<LogSum<T>> log_sum_, kept_;
};

/// Forward and backward: what a training step does. The check covers the output and the gradients
/// of values and sources.
template <class T>
class Step : public Forward<T> {
 public:
  Step(const Problem& problem, AttentionForm form)
      : Forward<T>(problem, form, true),
        grad_output_(random_placed<T>(problem.graph.num_rows(), problem.features, problem.seed + 4,
                                      problem.device)),
        grad_target_(problem.graph.num_rows(), this->score_width(), problem.device),
        grad_source_(problem.graph.num_cols(), this->score_width(), problem.device),
        grad_value_(problem.graph.num_cols(), problem.features, problem.device),
        grad_vector_(this->vector_.rows(), problem.features, problem.device) {}

  void run(Stream stream) override {
    Forward<T>::run(stream);
    ops::AttentionGradOutputs gradients{grad_target_, grad_source_, grad_value_, {}, nullptr};
    if (grad_vector_.rows() > 0) gradients.vector = grad_vector_;
    // A number of this process: on a GPU it would have to wait for it.
    const bool on_host = this->plan_.options().device.kind == DeviceKind::cpu;
    if (this->plan_.options().form == AttentionForm::dot && on_host) gradients.scale = &grad_scale_;
    ops::run_backward_kept(this->plan_, this->inputs(), this->output_, this->log_sum_, this->kept(),
                           grad_output_, gradients, stream);
  }

  Gate check() override {
    run({});
    Gate gate = this->check_output();
    grad_value_.fetch();
    grad_source_.fetch();
    gate.max_error = std::max(gate.max_error, gradient_error() / 4);
    return gate;
  }

  std::int64_t bytes() const override {
    // Backward reads what forward read and wrote, and writes a gradient for each input.
    return 2 * Forward<T>::bytes() + this->output_.bytes() + grad_target_.bytes() +
           grad_source_.bytes() + grad_value_.bytes();
  }

 private:
  /// The rows that some sources send to, whole: all that the gradients of those sources depend on.
  /// Sources with few targets only, because the reference computes every one of these rows.
  SampledInputs rows_of_some_sources(std::vector<VertexId>& sources) const {
    constexpr std::int64_t wanted = 32;
    constexpr EdgeOffset most_targets = 64;
    const Graph by_source = transposed(this->plan_.graph());
    for (const std::int64_t source : spread_rows(by_source.num_rows(), wanted)) {
      const auto vertex = static_cast<VertexId>(source);
      if (by_source.degree(vertex) <= most_targets) sources.push_back(vertex);
    }
    return this->sampled(take_rows(this->plan_.graph(), take_rows(by_source, sources).cols));
  }

  /// The largest error of the gradients of values and GAT's source scores, a quarter of which
  /// counts: a gradient has passed through about four times as many roundings as the output.
  double gradient_error() const {
    std::vector<VertexId> sources;
    const SampledInputs sample = rows_of_some_sources(sources);
    const Matrix<double> grad_output = grad_output_.input_rows(sample.sample.rows);
    const auto gradients_for = [&](const Matrix<double>& of_output, Matrix<double>& of_source) {
      Matrix<double> of_value(sample.value.rows(), sample.value.cols());
      of_source = Matrix<double>(sample.source.rows(), sample.source.cols());
      ops::reference::attention_backward(sample.sample.graph, this->plan_.options(),
                                         sample.inputs(), of_output,
                                         {{}, of_source, of_value, {}, nullptr});
      return of_value;
    };
    Matrix<double> source_gradient, unused;
    const Matrix<double> value_gradient = gradients_for(grad_output, source_gradient);
    const Matrix<double> value_magnitude =
        gradients_for(absolute(grad_output_.input_rows(sample.sample.rows)), unused);
    const Matrix<double> per_head = gradients_for(head_sums(grad_output), unused);

    const ErrorMeasure measure = this->measure();
    double worst = 0;
    for (const VertexId source : sources) {
      const auto& cols = sample.sample.cols;
      const auto place = std::lower_bound(cols.begin(), cols.end(), source);
      if (place == cols.end() || *place != source) continue;
      const std::int64_t j = place - cols.begin();
      for (std::int64_t f = 0; f < value_gradient.cols(); ++f) {
        worst = std::max(worst, measure.error_of(static_cast<double>(grad_value_.host()(source, f)),
                                                 value_gradient(j, f), value_magnitude(j, f)));
      }
      if (this->plan_.options().form != AttentionForm::gat) continue;
      for (std::int64_t head = 0; head < source_gradient.cols(); ++head) {
        const double terms = this->width() == 0 ? 0 : per_head(j, head * this->width());
        worst =
            std::max(worst, measure.error_of(static_cast<double>(grad_source_.host()(source, head)),
                                             source_gradient(j, head), terms));
      }
    }
    return worst;
  }

  /// Twice the sum of |dO| over each head, in every feature of it: bounds the terms of a score's
  /// gradient, since values are below 1.
  Matrix<double> head_sums(const Matrix<double>& grad_output) const {
    Matrix<double> result(grad_output.rows(), grad_output.cols());
    const std::int64_t width = std::max<std::int64_t>(this->width(), 1);
    for (std::int64_t i = 0; i < result.rows(); ++i) {
      for (std::int64_t first = 0; first < result.cols(); first += width) {
        double sum = 0;
        for (std::int64_t f = first; f < first + width; ++f) sum += std::abs(grad_output(i, f));
        for (std::int64_t f = first; f < first + width; ++f) result(i, f) = 2 * sum;
      }
    }
    return result;
  }

  Placed<T> grad_output_, grad_target_, grad_source_, grad_value_, grad_vector_;
  double grad_scale_ = 0;
};

template <template <class> class TrialOf>
Suite suite_of(const std::string& name, const std::string& summary, AttentionForm form) {
  return {name,
          summary,
          {"attention"},
          {Precision::fp32, Precision::fp64, Precision::bf16},
          8,
          [form](const Problem& problem) { return prepare_stored<TrialOf>(problem, form); }};
}

/// One head, square graphs alone.
Suite cosine_suite() {
  Suite suite =
      suite_of<Forward>("attention_cosine", "fused AGNN attention", AttentionForm::cosine);
  suite.usual_heads = 0;
  suite.on_request = true;
  return suite;
}

}  // namespace

std::vector<Suite> attention_suites() {
  return {
      suite_of<Forward>("attention_gat", "fused GAT attention", AttentionForm::gat),
      suite_of<Forward>("attention_gatv2", "fused GATv2 attention", AttentionForm::gatv2),
      suite_of<Forward>("attention_dot", "fused dot-product attention", AttentionForm::dot),
      cosine_suite(),
      suite_of<Step>("attention_gat_step", "GAT attention, forward and backward",
                     AttentionForm::gat),
      suite_of<Step>("attention_gatv2_step", "GATv2 attention, forward and backward",
                     AttentionForm::gatv2),
      suite_of<Step>("attention_dot_step", "dot-product attention, forward and backward",
                     AttentionForm::dot),
  };
}

}  // namespace tessera::bench
