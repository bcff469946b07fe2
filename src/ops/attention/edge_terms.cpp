// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/edge_terms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"

namespace tessera::ops {
namespace {

constexpr std::int64_t grain = 4096;

/// Calls `body` with an element of the operand's type.
template <class Body>
void visit_wide(const ConstOperand& operand, Body&& body) {
  if (operand.type == ElementType::fp64) {
    body(double{});
  } else {
    body(float{});
  }
}

/// The number's place in a matrix of edges x heads whose rows may lie apart.
template <class T>
T& at(MatrixView<T> matrix, std::int64_t number, std::int64_t heads) {
  return matrix(number / heads, number % heads);
}

template <class T>
T sum_inside(const EdgeTermsCall& terms, std::int64_t number) {
  return static_cast<T>(terms.scale) * at(terms.raw.as<T>(), number, terms.heads) +
         at(terms.term.as<T>(), number, terms.heads);
}

void add(const EdgeTermsCall& terms, const Operand& scores, Stream) {
  visit_wide(terms.raw, [&](auto element) {
    using T = decltype(element);
    parallel_for(terms.num_numbers, grain, [&](std::int64_t number) {
      const T sum = sum_inside<T>(terms, number);
      at(scores.as<T>(), number, terms.heads) = sum > 0 ? sum : static_cast<T>(terms.slope) * sum;
    });
  });
}

void differentiate(const EdgeTermsCall& terms, const Operand& gradients, const Operand& of_terms,
                   Stream) {
  visit_wide(terms.raw, [&](auto element) {
    using T = decltype(element);
    parallel_for(terms.num_numbers, grain, [&](std::int64_t number) {
      T& gradient = at(gradients.as<T>(), number, terms.heads);
      if (!(sum_inside<T>(terms, number) > 0)) gradient *= static_cast<T>(terms.slope);
      if (!of_terms.absent()) at(of_terms.as<T>(), number, terms.heads) = gradient;
      gradient *= static_cast<T>(terms.scale);
    });
  });
}

void copy(const ConstOperand& from, const Operand& to, Stream) {
  visit_wide(from, [&](auto element) {
    using T = decltype(element);
    parallel_for(from.rows * from.cols, grain, [&](std::int64_t number) {
      at(to.as<T>(), number, from.cols) = at(from.as<T>(), number, from.cols);
    });
  });
}

void drop(const Operand& numbers, const DropoutConstants& dropout, Stream) {
  const DropoutConstants now = dropout.at_present();
  const Random random(std::uint64_t{now.key[1]} << 32 | now.key[0], now.layer, now.step);
  visit_wide(numbers, [&](auto element) {
    using T = decltype(element);
    const MatrixView<T> matrix = numbers.as<T>();
    parallel_for(numbers.rows * numbers.cols, grain, [&](std::int64_t number) {
      const auto place = static_cast<std::uint64_t>(number);
      const bool kept = random.bits(place / 4)[place % 4] >= now.threshold;
      at(matrix, number, numbers.cols) *= static_cast<T>(kept ? now.kept_factor : 0);
    });
  });
}

/// -inf for a row without edges.
void log_sums(const Graph& graph, const Operand& scores, const Operand& log_sum) {
  visit_wide(scores, [&](auto element) {
    using T = decltype(element);
    const MatrixView<T> all = scores.as<T>();
    const MatrixView<T> results = log_sum.as<T>();
    parallel_for(graph.num_rows(), 64, [&](std::int64_t row) {
      const EdgeOffset begin = graph.row_offsets()[static_cast<VertexId>(row)];
      const EdgeOffset end = graph.row_offsets()[static_cast<VertexId>(row) + 1];
      for (std::int64_t head = 0; head < scores.cols; ++head) {
        T largest = -std::numeric_limits<T>::infinity();
        for (EdgeOffset edge = begin; edge < end; ++edge) {
          largest = std::max(largest, all(edge, head));
        }
        double sum = 0;
        for (EdgeOffset edge = begin; edge < end; ++edge) {
          sum += std::exp(static_cast<double>(all(edge, head) - largest));
        }
        results(row, head) =
            begin == end ? largest : static_cast<T>(static_cast<double>(largest) + std::log(sum));
      }
    });
  });
}

void softmax(const PreparedEdgeSoftmax& softmax, const Graph& graph, const Operand& scores,
             const Operand& log_sum, Stream stream, const WorkspaceView& workspace) {
  if (!log_sum.absent()) log_sums(graph, scores, log_sum);
  softmax.run(scores, scores, stream, workspace);
}

}  // namespace

const EdgeTermOps& cpu_edge_term_ops() {
  static constexpr EdgeTermOps ops{
      add,  differentiate, score_by_vector_on_cpu, differentiate_by_vector_on_cpu, copy,
      drop, softmax};
  return ops;
}

}  // namespace tessera::ops
