// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/attention_case.hpp"
#include "support/attention_kernels.hpp"

namespace tessera::test {

/// A row whose largest weights meet rows of V that are 0: the result is what many small weights
/// make of theirs. Every 64th column has a score of `top`, the others one of 0.
template <class T>
void check_small_weights(const std::string& kernel, AttentionForm form, std::int64_t width) {
  AttentionOptions options = options_of(kernel, form, 1, width, 0);
  options.precision = ops::PrecisionOf<T>::value;
  if (!supports(kernel, options)) return testing::note_declined(describe(options));
  constexpr VertexId columns = 6400;
  constexpr float size = 1024;
  std::vector<VertexId> all(columns);
  std::iota(all.begin(), all.end(), 0);
  const Graph graph(1, columns, SharedArray<EdgeOffset>(std::vector<EdgeOffset>{0, columns}),
                    SharedArray<VertexId>(std::move(all)));
  for (const float top : {8.0f, 15.0f, 16.0f, 18.0f}) {
    SCOPED_TRACE(describe(options) + ", top " + std::to_string(top));
    AttentionCase<T> run(graph, options, 4000);
    run.scale = 1;
    for (Matrix<T>* matrix : {&run.target, &run.source, &run.vector}) {
      std::fill(matrix->span().begin(), matrix->span().end(), static_cast<T>(0.0f));
    }
    if (form == AttentionForm::dot) run.target(0, 0) = static_cast<T>(1.0f);
    run.vector(0, 0) = static_cast<T>(1.0f);
    for (VertexId j = 0; j < columns; ++j) {
      const bool large = j % 64 == 0;
      if (large) run.source(j, 0) = static_cast<T>(top);
      for (std::int64_t f = 0; f < width; ++f) {
        run.value(j, f) = static_cast<T>(large ? 0.0f : size);
      }
    }
    run.run_all();
    const float expected = size * 63 / (63 + std::exp(top));
    const float tolerance = expected * (std::is_same_v<T, Bfloat16> ? 8e-3f : 1e-3f);
    for (const T element : run.output.span()) {
      ASSERT_NEAR(static_cast<float>(element), expected, tolerance);
    }
  }
}

}  // namespace tessera::test
