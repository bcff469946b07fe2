// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gat_windows.cuh"
#include "ops/attention/cuda/short/workers.cuh"
#include "ops/windows/vertex_terms.cuh"

/// What is known of terms of GAT before their weights are: those of a window's own rows, and
/// whether weights of a piece may be made of factors.
namespace tessera::ops {

/// The terms of rows g and g + 8 of a window, 0 where it has no such row.
template <class T>
struct OwnGatTerms {
  T raw[2];

  __device__ void load(const WindowsLaunch& launch, const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      raw[row] = place < piece.num_rows
                     ? gat_term<T>(launch.target, launch.target_stride, piece.first_row + place)
                     : cuda::narrow<T>(0.0f);
    }
  }
  /// In powers of two.
  __device__ float l(int row) const { return gat_power(cuda::widen(raw[row])); }
};

/// Terms for which factors serve make weights of 2^-8 to 2^16. Over 2^8, a hundred thousand of them
/// times features of 2^-100 to 2^100 add up within fp32.
struct FactoredTerms {
  static constexpr float largest = 8;
  static constexpr float base = 8;

  template <class T>
  __device__ static bool serve(const WindowsLaunch& launch, const OwnGatTerms<T>& own) {
    return launch.slope >= 0 && launch.slope <= 1 && fabsf(own.l(0)) <= largest &&
           fabsf(own.l(1)) <= largest;
  }
  /// `raw` is the largest magnitude of terms of columns, as they lie in memory. What is not a
  /// number makes not-a-number of its weights, by factors too.
  __device__ static bool serve(float raw) { return raw * log2_of_e <= largest; }
};

/// Whether they do for all rows and columns of a piece.
template <class T>
__device__ bool factors_serve(const WindowsLaunch& launch, const tiles::Piece& piece) {
  OwnGatTerms<T> own;
  own.load(launch, piece);
  float largest = 0;
  for (int i = WarpLane::number(); i < piece.num_steps * tiles::step_columns; i += 32) {
    const VertexId column =
        launch.columns[std::int64_t{piece.first_step} * tiles::step_columns + i];
    const T term = gat_term<T>(launch.source, launch.source_stride, column);
    largest = fmaxf(largest, fabsf(cuda::widen(term)));
  }
  return __all_sync(~0u, FactoredTerms::serve(launch, own) && FactoredTerms::serve(largest)) != 0;
}

/// What the forward passes share. Lanes leave an `Exchange` for each other, one for every step. A
/// pass has `attend_by_exponentials`, for pieces for which factors do not serve.
template <class Pass, class LaunchOfPass, class T, int width, class Exchange>
class GatForward : public ShortPass {
 public:
  using Launch = LaunchOfPass;
  static constexpr int shared_bytes =
      GatWindows<width>::bytes + 2 * static_cast<int>(sizeof(Exchange));

  __device__ GatForward(const Launch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        values_(launch.value, launch.value_stride, width, WarpLane::group() * 8),
        sources_(launch.source, launch.source_stride, 1, 0),
        unit_(WarpLane::number() < 16 ? log2_of_e : log2_of_e * launch.slope) {}

  __device__ void run(std::int32_t begin, std::int32_t end) {
    Pass& pass = static_cast<Pass&>(*this);
    std::int32_t left =
        GatWindows<width>::walk(pass, launch_, values_, begin, end, memory_ + 2 * sizeof(Exchange));
    for (; left < end; ++left) {
      const tiles::Piece piece = launch_.pieces[left];
      if (!factors_serve<T>(launch_, piece)) pass.attend_by_exponentials(piece);
    }
  }

  __device__ void load_own(const tiles::Piece& piece) { next_own_.load(launch_, piece); }
  __device__ void bring(VertexId column) {
    term_ = __ldg(reinterpret_cast<const T*>(sources_.at(column)));
  }
  __device__ bool fits() const { return __all_sync(~0u, FactoredTerms::serve(largest_)) != 0; }

 protected:
  /// A piece with what was asked for of its rows.
  __device__ void take_own() {
    own_ = next_own_;
    largest_ = FactoredTerms::serve(launch_, own_) ? 0.0f : cuda::infinity;
  }
  /// What this lane leaves for others, of the column that it has brought: half of the lanes find
  /// the factors of either side.
  __device__ Exchange& next_exchange() {
    shared_term_ = cuda::widen(term_);
    turn_ ^= sizeof(Exchange);
    return *reinterpret_cast<Exchange*>(memory_ + turn_);
  }
  __device__ float shared_factor() const {
    return power_of_2(fmaf(shared_term_, unit_, -FactoredTerms::base));
  }
  /// What was left for this step.
  __device__ const Exchange& exchange() {
    largest_ = fmaxf(largest_, fabsf(shared_term_));
    return *reinterpret_cast<const Exchange*>(memory_ + turn_);
  }

  const Launch& launch_;
  char* memory_;
  GatRows values_;
  GatRows sources_;
  float unit_;               ///< of the exponent that this lane finds
  T term_;                   ///< of the column that it brings
  float shared_term_ = 0;    ///< of the column whose factor it left for others
  OwnGatTerms<T> own_;       ///< of this piece
  OwnGatTerms<T> next_own_;  ///< of the next
  float largest_ = 0;        ///< of terms of columns that this lane brought
  unsigned turn_ = 0;        ///< which of two exchanges was filled last
};

}  // namespace tessera::ops
