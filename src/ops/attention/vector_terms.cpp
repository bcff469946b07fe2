// SPDX-License-Identifier: Apache-2.0
// Terms of edges in the form gatv2, on the CPU.
#include "ops/attention/edge_terms.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

constexpr std::int64_t grain = 64;  ///< edges

template <class T>
struct VectorTerms {
  MatrixView<const T> raw, term, vector;
  std::int64_t width;
  T slope;

  explicit VectorTerms(const VectorTermsCall& terms)
      : raw(terms.raw.as<T>()),
        term(terms.term.as<T>()),
        vector(terms.vector.as<T>()),
        width(terms.raw.cols / terms.heads),
        slope(static_cast<T>(terms.slope)) {}

  T sum_inside(std::int64_t edge, std::int64_t f) const { return raw(edge, f) + term(edge, f); }
  T leaky_relu(T x) const { return x > 0 ? x : slope * x; }
};

/// Calls `body` with the terms in the type that they have.
template <class Body>
void visit(const VectorTermsCall& terms, Body&& body) {
  if (terms.raw.type == ElementType::fp64) {
    body(VectorTerms<double>(terms), double{});
  } else {
    body(VectorTerms<float>(terms), float{});
  }
}

}  // namespace

void score_by_vector_on_cpu(const VectorTermsCall& terms, const Operand& scores, Stream) {
  visit(terms, [&](const auto& all, auto element) {
    using T = decltype(element);
    const MatrixView<T> results = scores.as<T>();
    parallel_for(scores.rows, grain, [&](std::int64_t edge) {
      for (std::int64_t head = 0; head < terms.heads; ++head) {
        T sum = 0;
        for (std::int64_t f = head * all.width; f < (head + 1) * all.width; ++f) {
          sum += all.vector(0, f) * all.leaky_relu(all.sum_inside(edge, f));
        }
        results(edge, head) = sum;
      }
    });
  });
}

void differentiate_by_vector_on_cpu(const VectorTermsCall& terms, const ConstOperand& of_scores,
                                    const VectorTermsGradients& gradients, Stream) {
  const std::int64_t edges = terms.raw.rows;
  const std::int64_t features = terms.raw.cols;
  const std::int64_t pieces = VectorTermsCall::num_pieces(edges);
  visit(terms, [&](const auto& all, auto element) {
    using T = decltype(element);
    const MatrixView<const T> grads = of_scores.as<T>();
    const MatrixView<T> of_raw = gradients.raw.as<T>();
    const MatrixView<T> of_term = gradients.term.as<T>();
    parallel_for(pieces, 1, [&](std::int64_t piece) {
      double* const sums = gradients.sums + piece * features;
      for (std::int64_t f = 0; f < features; ++f) sums[f] = 0;
      for (std::int64_t edge = edges * piece / pieces; edge < edges * (piece + 1) / pieces;
           ++edge) {
        for (std::int64_t f = 0; f < features; ++f) {
          const T grad = grads(edge, f / all.width);
          const T sum = all.sum_inside(edge, f);
          const T inside = grad * all.vector(0, f) * (sum > 0 ? T{1} : all.slope);
          sums[f] += static_cast<double>(grad) * static_cast<double>(all.leaky_relu(sum));
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
  });
}

}  // namespace tessera::ops
