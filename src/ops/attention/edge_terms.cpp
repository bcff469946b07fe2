// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/edge_terms.hpp"

#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"

#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// What scores are made of.
template <class T>
struct Terms {
  MatrixView<const T> raw, term, vector;
  T scale, slope;

  explicit Terms(const EdgeTermsCall& call)
      : raw(call.raw.as<T>()),
        term(call.term.as<T>()),
        vector(call.vector.as<T>()),
        scale(static_cast<T>(call.scale)),
        slope(static_cast<T>(call.slope)) {}

  T sum_inside(std::int64_t edge, std::int64_t place) const {
    return scale * raw(edge, place) + term(edge, place);
  }
  T leaky_relu(T x) const { return x > 0 ? x : slope * x; }
  T derivative(T x) const { return x > 0 ? T{1} : slope; }
};

void score(const EdgeTermsCall& call, const Operand& scores, Stream) {
  visit_wide(call.raw.type, [&](auto element) {
    using T = decltype(element);
    const Terms<T> terms(call);
    const MatrixView<T> results = scores.as<T>();
    const std::int64_t width = call.raw.cols / call.heads;
    parallel_for(scores.rows, 256, [&](std::int64_t edge) {
      for (std::int64_t head = 0; head < call.heads; ++head) {
        if (!call.is_gatv2) {
          results(edge, head) = terms.leaky_relu(terms.sum_inside(edge, head));
          continue;
        }
        T sum = 0;
        for (std::int64_t f = head * width; f < (head + 1) * width; ++f) {
          sum += terms.vector(0, f) * terms.leaky_relu(terms.sum_inside(edge, f));
        }
        results(edge, head) = sum;
      }
    });
  });
}

template <class T>
void differentiate_numbers(const Terms<T>& terms, MatrixView<const T> of_scores,
                           MatrixView<T> of_raw, MatrixView<T> of_term) {
  parallel_for(of_scores.rows, 256, [&](std::int64_t edge) {
    for (std::int64_t head = 0; head < of_scores.cols; ++head) {
      const T inside = of_scores(edge, head) * terms.derivative(terms.sum_inside(edge, head));
      if (of_term.data != nullptr) of_term(edge, head) = inside;
      of_raw(edge, head) = inside * terms.scale;
    }
  });
}

template <class T>
void differentiate_by_vector(const EdgeTermsCall& call, MatrixView<const T> of_scores,
                             const EdgeTermsGradients& gradients) {
  const Terms<T> terms(call);
  const MatrixView<T> of_raw = gradients.raw.as<T>();
  const MatrixView<T> of_term = gradients.term.as<T>();
  const std::int64_t edges = call.raw.rows;
  const std::int64_t features = call.raw.cols;
  const std::int64_t pieces = EdgeTermsCall::num_pieces(edges);
  parallel_for(pieces, 1, [&](std::int64_t piece) {
    double* const sums = gradients.sums + piece * features;
    for (std::int64_t f = 0; f < features; ++f) sums[f] = 0;
    for (std::int64_t edge = edges * piece / pieces; edge < edges * (piece + 1) / pieces; ++edge) {
      for (std::int64_t f = 0; f < features; ++f) {
        const T grad = of_scores(edge, f / (features / call.heads));
        const T sum = terms.sum_inside(edge, f);
        const T inside = grad * terms.vector(0, f) * terms.derivative(sum);
        sums[f] += static_cast<double>(grad) * static_cast<double>(terms.leaky_relu(sum));
        of_raw(edge, f) = inside;
        if (of_term.data != nullptr) of_term(edge, f) = inside;
      }
    }
  });
  if (gradients.vector.absent()) return;
  const MatrixView<T> of_vector = gradients.vector.as<T>();
  for (std::int64_t f = 0; f < features; ++f) {
    double sum = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      sum += gradients.sums[piece * features + f];
    }
    of_vector(0, f) = static_cast<T>(sum);
  }
}

void differentiate(const EdgeTermsCall& call, const ConstOperand& of_scores,
                   const EdgeTermsGradients& gradients, Stream) {
  visit_wide(call.raw.type, [&](auto element) {
    using T = decltype(element);
    if (call.is_gatv2) return differentiate_by_vector<T>(call, of_scores.as<T>(), gradients);
    differentiate_numbers<T>(Terms<T>(call), of_scores.as<T>(), gradients.raw.as<T>(),
                             gradients.term.as<T>());
  });
}

void drop(const Operand& numbers, const DropoutConstants& dropout, Stream) {
  const DropoutConstants now = dropout.at_present();
  const Random random(std::uint64_t{now.key[1]} << 32 | now.key[0], now.layer, now.step);
  visit_wide(numbers.type, [&](auto element) {
    using T = decltype(element);
    const MatrixView<T> matrix = numbers.as<T>();
    parallel_for(numbers.rows * numbers.cols, 4096, [&](std::int64_t number) {
      const auto place = static_cast<std::uint64_t>(number);
      const bool kept = random.bits(place / 4)[place % 4] >= now.threshold;
      matrix(number / numbers.cols, number % numbers.cols) *=
          static_cast<T>(kept ? now.kept_factor : 0);
    });
  });
}

}  // namespace

const EdgeTermOps& cpu_edge_term_ops() {
  static constexpr EdgeTermOps ops{score, differentiate, drop, nullptr, nullptr};
  return ops;
}

}  // namespace tessera::ops
