// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/vectors.cuh"
#include "ops/dense/cuda/activation_formula.cuh"
#include "ops/dense/cuda/epilogue.hpp"

/// The epilogue of every spmm kernel: what a lane does with reduced features of a row that it
/// holds in registers, before it stores them.
namespace tessera::ops {

/// A part that a kernel is made of, a reduction or a loader: the same, but for a kernel whose rows
/// go through an epilogue.
template <class Part>
struct WithEpilogue : Part {
  using Part::Part;
};

template <class Part>
inline constexpr bool has_epilogue = false;
template <class Part>
inline constexpr bool has_epilogue<WithEpilogue<Part>> = true;

/// A row of Y from feature `feature` on.
struct EpiloguePlace {
  std::int64_t row = 0;
  std::int64_t feature = 0;
  std::int64_t features = 0;  ///< of a whole row; what a lane holds beyond them is not looked at
};

/// The vectors in which a lane moves `width` features of type T: at most 16 bytes each.
template <class T, int width>
using EpilogueVector =
    cuda::Vector<T, (width * static_cast<int>(sizeof(T)) < 16 ? width * static_cast<int>(sizeof(T))
                                                              : 16)>;

/// Whether all of a lane's features are there and lie on the boundaries of such vectors.
template <class T, int width>
__device__ bool fills_vectors(const T* features, const EpiloguePlace& place) {
  constexpr auto bytes = sizeof(typename EpilogueVector<T, width>::Raw);
  return place.feature + width <= place.features &&
         reinterpret_cast<std::uintptr_t>(features) % bytes == 0;
}

/// How often the residual counts.
template <class T>
__device__ float residual_factor(const EpilogueLaunch& epilogue) {
  return epilogue.residual_scale == nullptr
             ? 1.0f
             : 1.0f + cuda::widen(*static_cast<const T*>(epilogue.residual_scale));
}

template <class T, int width>
__device__ void add_stored(const void* from, std::int64_t at, float factor,
                           const EpiloguePlace& place, float (&values)[width]) {
  using Vector = EpilogueVector<T, width>;
  const T* const stored = static_cast<const T*>(from) + at + place.feature;
  if (fills_vectors<T, width>(stored, place)) {
#pragma unroll
    for (int first = 0; first < width; first += Vector::count) {
      float loaded[Vector::count];
      Vector::load(stored + first).widen_to(loaded);
#pragma unroll
      for (int i = 0; i < Vector::count; ++i) values[first + i] += factor * loaded[i];
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < width; ++i) {
    if (place.feature + i < place.features) values[i] += factor * cuda::widen(stored[i]);
  }
}

/// Dropout's factors of a lane's features. A lane begins at a multiple of its width, and rows where
/// it holds several are multiples of four long: what it holds needs no counter that it shares only
/// in part.
template <int width>
__device__ void drop_features(const DropoutConstants& dropout, const EpiloguePlace& place,
                              float (&values)[width]) {
  static_assert(width == 1 || width == 2 || width % 4 == 0);
  const auto first = static_cast<std::uint64_t>(place.row * place.features + place.feature);
  const std::uint32_t step = present_step(dropout);
  const auto kept = static_cast<float>(dropout.kept_factor);
  const auto factor = [&](std::uint32_t word) { return word >= dropout.threshold ? kept : 0.0f; };
  if constexpr (width % 4 == 0) {
#pragma unroll
    for (int i = 0; i < width; i += 4) {
      const uint4 words = philox_words(dropout, step, (first + static_cast<std::uint64_t>(i)) / 4);
      values[i] *= factor(words.x);
      values[i + 1] *= factor(words.y);
      values[i + 2] *= factor(words.z);
      values[i + 3] *= factor(words.w);
    }
  } else {
    const uint4 words = philox_words(dropout, step, first / 4);
    const bool upper = first % 4 >= 2;
    const std::uint32_t even = upper ? words.z : words.x;
    const std::uint32_t odd = upper ? words.w : words.y;
    if constexpr (width == 2) {
      values[0] *= factor(even);
      values[1] *= factor(odd);
    } else {
      values[0] *= factor(first % 2 == 0 ? even : odd);
    }
  }
}

template <class Out, int width>
__device__ void put_features(void* y, std::int64_t y_stride, const EpiloguePlace& place,
                             const float (&values)[width]) {
  using Vector = EpilogueVector<Out, width>;
  Out* const stored = static_cast<Out*>(y) + place.row * y_stride + place.feature;
  if (fills_vectors<Out, width>(stored, place)) {
#pragma unroll
    for (int first = 0; first < width; first += Vector::count) {
      float part[Vector::count];
#pragma unroll
      for (int i = 0; i < Vector::count; ++i) part[i] = values[first + i];
      Vector::narrowed(part).store(stored + first);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < width; ++i) {
    if (place.feature + i < place.features) stored[i] = cuda::narrow<Out>(values[i]);
  }
}

/// The same for rows of any length, whose lanes may begin in the middle of a counter.
template <int width>
__device__ void drop_features_anywhere(const DropoutConstants& dropout, const EpiloguePlace& place,
                                       float (&values)[width]) {
  const auto first = static_cast<std::uint64_t>(place.row * place.features + place.feature);
  const auto skipped = static_cast<unsigned>(first % 4);
  const std::uint32_t step = present_step(dropout);
  const auto kept = static_cast<float>(dropout.kept_factor);
#pragma unroll
  for (int counter = 0; counter < (width + 6) / 4; ++counter) {
    const uint4 words =
        philox_words(dropout, step, first / 4 + static_cast<std::uint64_t>(counter));
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const unsigned word = skipped + static_cast<unsigned>(i - 4 * counter);
      if (word >= 4) continue;
      const std::uint32_t even = word >= 2 ? words.z : words.x;
      const std::uint32_t odd = word >= 2 ? words.w : words.y;
      values[i] *= (word % 2 == 0 ? even : odd) >= dropout.threshold ? kept : 0.0f;
    }
  }
}

/// Calls `put` with the type that features of type T are stored in: 16-bit ones stay what they are
/// or become fp32, and fp32 ones may become either 16-bit type (`check_epilogue`).
template <class T, class Put>
__device__ void with_output_type(Precision output, Put&& put) {
  if constexpr (sizeof(T) == 2) {
    if (output != Precision::fp32) return put(std::type_identity<T>());
  } else {
    if (output == Precision::bf16) return put(std::type_identity<__nv_bfloat16>());
    if (output == Precision::fp16) return put(std::type_identity<__half>());
  }
  put(std::type_identity<float>());
}

/// Adds the bias, applies activation and dropout. Rows of `any_length` may begin and end in the
/// middle of what a lane holds.
template <class T, bool any_length = false, int width>
__device__ void finish_features(const EpilogueLaunch& epilogue, const EpiloguePlace& place,
                                float (&values)[width]) {
  if (epilogue.bias != nullptr) add_stored<T>(epilogue.bias, 0, 1, place, values);
  const DeviceFormula formula(epilogue.formula);
  formula.activate([&](auto&& change) {
#pragma unroll
    for (float& value : values) change(value);
  });
  if (!formula.drops) return;
  if (any_length && place.features % 4 != 0) {
    drop_features_anywhere(formula.dropout, place, values);
  } else {
    drop_features(formula.dropout, place, values);
  }
}

/// The same after the residual; what becomes of it is stored in the output's type.
template <class T, bool any_length = false, int width>
__device__ void store_with_epilogue(const EpilogueLaunch& epilogue, void* y, std::int64_t y_stride,
                                    const EpiloguePlace& place, float (&values)[width]) {
  if (epilogue.residual != nullptr) {
    add_stored<T>(epilogue.residual, place.row * epilogue.residual_stride,
                  residual_factor<T>(epilogue), place, values);
  }
  finish_features<T, any_length>(epilogue, place, values);
  with_output_type<T>(epilogue.output, [&]<class Out>(std::type_identity<Out>) {
    put_features<Out>(y, y_stride, place, values);
  });
}

}  // namespace tessera::ops
