// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <type_traits>

#include "ops/attention/cuda/rows/vertex_lanes.cuh"
#include "ops/attention/shortest_row.hpp"

/// The score of an edge, from what its two vertices have. A form has
///   over_features       whether a score is a sum over the features of a head
///   of_values           whether scores are made of values, so that their gradients are one
///   gathers_once        whether a gathered row is both
///   Own, Gathered       what a lane keeps of the own vertex, and loads of a gathered one
///   partial             this lane's share of the raw score
///   value               the score, from the raw one
///   Gradient            what it sums up for the own vertex
///   add                 one edge's gradient of the score into that
///   finish              makes of those sums the gradient; a linear function, so pieces may come
///                       before or after it
/// To add another kind of attention is to add one of these, and to name it in `FormOf`.
namespace tessera::ops {

/// Of rows that count as longer than they are.
inline constexpr float longest_inverse = static_cast<float>(1 / shortest_row);

__device__ inline float leaky_relu_at(float x, float slope) { return x > 0 ? x : slope * x; }

/// leaky_relu(t + s), one number per vertex and head.
template <class Lanes>
class GatScore {
 public:
  static constexpr bool over_features = false;
  static constexpr bool of_values = false;
  static constexpr bool gathers_once = false;
  using Own = float;
  using Gathered = typename Lanes::Type;

  __device__ GatScore(const RowsAttentionLaunch& launch, const Lanes& lanes)
      : launch_(launch), lanes_(lanes), others_(lanes.numbers_of(launch.gathered_scores)) {}

  __device__ Own own(VertexId vertex, bool wanted) const {
    return cuda::widen(Lanes::load_number(lanes_.numbers_of(launch_.own_scores), vertex, wanted));
  }
  __device__ Gathered gathered(VertexId vertex, bool wanted) const {
    return Lanes::load_number(others_, vertex, wanted);
  }
  __device__ Gathered gathered_with(const typename Lanes::Loaded&, VertexId vertex,
                                    bool wanted) const {
    return gathered(vertex, wanted);
  }
  __device__ float partial(Own own, Gathered gathered) const { return own + cuda::widen(gathered); }
  __device__ float value(float raw) const { return leaky_relu_at(raw, launch_.slope); }

  /// A number per head.
  struct Gradient {
    static constexpr int size = 1;
    float sums[1] = {};
  };
  __device__ void add(Own, Gathered, float raw, float gradient, Gradient& to) const {
    to.sums[0] += raw > 0 ? gradient : launch_.slope * gradient;
  }
  __device__ void add_shared(Own, Gathered, float, float, float (&)[Lanes::held], double&) const {}
  __device__ void finish(Own, VertexId, Gradient&) const {}
  __device__ void store(VertexId row, const Gradient& gradient) const {
    if (lanes_.speaks_for_head()) {
      lanes_.store_number(launch_.score_gradient, row, gradient.sums[0]);
    }
  }
  /// Where number i of the gradient stands in a row of scores; whether this lane has it.
  __device__ int column(int) const { return lanes_.head(); }
  __device__ bool has(int) const { return lanes_.speaks_for_head(); }

 private:
  const RowsAttentionLaunch& launch_;
  const Lanes& lanes_;
  typename Lanes::Reader others_;
};

/// What the forms with a sum over features share.
template <class Lanes>
class FeatureScore {
 public:
  static constexpr bool over_features = true;
  static constexpr bool of_values = false;
  static constexpr bool gathers_once = false;
  struct Own {
    float values[Lanes::held];
  };
  using Gathered = typename Lanes::Loaded;
  struct Gradient {
    static constexpr int size = Lanes::held;
    float sums[Lanes::held] = {};
  };

  __device__ FeatureScore(const RowsAttentionLaunch& launch, const Lanes& lanes)
      : launch_(launch), lanes_(lanes), others_(lanes.features_of(launch.gathered_scores)) {}

  __device__ Own own(VertexId vertex, bool wanted) const {
    Own own;
    lanes_.load_widened(launch_.own_scores, vertex, wanted, own.values);
    return own;
  }
  __device__ Gathered gathered(VertexId vertex, bool wanted) const {
    return lanes_.load(others_, vertex, wanted);
  }
  /// Where the vertex's values have been loaded.
  __device__ Gathered gathered_with(const typename Lanes::Loaded&, VertexId vertex,
                                    bool wanted) const {
    return gathered(vertex, wanted);
  }
  __device__ void store(VertexId row, const Gradient& gradient) const {
    lanes_.store(launch_.score_gradient, row, gradient.sums);
  }
  __device__ int column(int i) const { return lanes_.feature(i); }
  __device__ bool has(int i) const { return lanes_.exists(i); }

 protected:
  const RowsAttentionLaunch& launch_;
  const Lanes& lanes_;
  typename Lanes::Reader others_;
};

/// scale * (t . s).
template <class Lanes>
class DotScore : public FeatureScore<Lanes> {
  using Base = FeatureScore<Lanes>;

 public:
  using Base::Base;
  using typename Base::Gathered;
  using typename Base::Gradient;
  using typename Base::Own;

  __device__ float partial(const Own& own, const Gathered& gathered) const {
    return Lanes::product(own.values, gathered);
  }
  __device__ float value(float raw) const { return this->launch_.scale * raw; }

  __device__ void add(const Own&, const Gathered& gathered, float, float gradient,
                      Gradient& to) const {
    Lanes::add(gradient * this->launch_.scale, gathered, to.sums);
  }
  /// The gradient of the scale.
  template <class AnyGathered>
  __device__ void add_shared(const Own&, const AnyGathered&, float raw, float gradient,
                             float (&)[Lanes::held], double& scale_sum) const {
    if (this->launch_.scale_sums == nullptr || !this->lanes_.speaks_for_head()) return;
    scale_sum += static_cast<double>(gradient) * static_cast<double>(raw);
  }
  __device__ void finish(const Own&, VertexId, Gradient&) const {}
};

/// factor * cos(x, y), of which the factor is what a scale is to dot products. The own row has unit
/// length, so that products do not overflow.
template <class Lanes>
class CosineScore : public DotScore<Lanes> {
  using Base = DotScore<Lanes>;
  using Base::launch_, Base::lanes_;

 public:
  static constexpr bool of_values = true;
  static constexpr bool gathers_once = true;
  using typename Base::Gradient;
  using typename Base::Own;
  struct Gathered {
    typename Lanes::Loaded features;
    float inverse_length;
  };

  __device__ CosineScore(const RowsAttentionLaunch& launch, const Lanes& lanes)
      : Base(launch, lanes),
        factor_(cuda::widen(*static_cast<const typename Lanes::Type*>(launch.vector))) {}

  __device__ Own own(VertexId vertex, bool wanted) const {
    Own own = Base::own(vertex, wanted);
    const float inverse = inverse_length(vertex, wanted);
#pragma unroll
    for (float& value : own.values) value *= inverse;
    return own;
  }
  __device__ Gathered gathered(VertexId vertex, bool wanted) const {
    return gathered_with(Base::gathered(vertex, wanted), vertex, wanted);
  }
  __device__ Gathered gathered_with(const typename Lanes::Loaded& values, VertexId vertex,
                                    bool wanted) const {
    return {values, inverse_length(vertex, wanted)};
  }

  __device__ float partial(const Own& own, const Gathered& gathered) const {
    return Base::partial(own, gathered.features) * gathered.inverse_length;
  }
  __device__ float value(float raw) const { return factor_ * raw; }

  __device__ void add(const Own&, const Gathered& gathered, float, float gradient,
                      Gradient& to) const {
    Lanes::add(gradient * factor_ * gathered.inverse_length, gathered.features, to.sums);
  }
  /// A row of fixed length changes at right angles alone. Rows that are taken for longer than they
  /// are have their gradients whole.
  __device__ void finish(const Own& own, VertexId vertex, Gradient& gradient) const {
    const float inverse = inverse_length(vertex, vertex >= 0);
    float along[1] = {0};
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      along[0] = fmaf(own.values[i], gradient.sums[i], along[0]);
    }
    lanes_.add_over_head(along);
    if (inverse >= longest_inverse) along[0] = 0;
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      gradient.sums[i] = inverse * fmaf(-along[0], own.values[i], gradient.sums[i]);
    }
  }

 private:
  /// Of a vertex, or of none. The kernel before may have written them: a read-only load could move
  /// ahead of the wait for it.
  __device__ float inverse_length(VertexId vertex, bool wanted) const {
    return wanted ? launch_.inverse_lengths[vertex] : 0.0f;
  }

  float factor_;
};

/// a . leaky_relu(t + s).
template <class Lanes>
class GatV2Score : public FeatureScore<Lanes> {
  using Base = FeatureScore<Lanes>;

 public:
  using typename Base::Gathered;
  using typename Base::Gradient;
  using typename Base::Own;

  __device__ GatV2Score(const RowsAttentionLaunch& launch, const Lanes& lanes)
      : Base(launch, lanes) {
    lanes.load_widened({launch.vector, 0}, 0, true, vector_);
  }

  __device__ float partial(const Own& own, const Gathered& gathered) const {
    float values[Lanes::held];
    Lanes::widen(gathered, values);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      sum = fmaf(vector_[i], leaky_relu_at(own.values[i] + values[i], this->launch_.slope), sum);
    }
    return sum;
  }
  __device__ float value(float raw) const { return raw; }

  /// `finish` multiplies by the vector.
  __device__ void add(const Own& own, const Gathered& gathered, float, float gradient,
                      Gradient& to) const {
    float values[Lanes::held];
    Lanes::widen(gathered, values);
    const float sloped = gradient * this->launch_.slope;
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      to.sums[i] += own.values[i] + values[i] > 0 ? gradient : sloped;
    }
  }
  /// The gradient of the vector.
  __device__ void add_shared(const Own& own, const Gathered& gathered, float, float gradient,
                             float (&vector_sums)[Lanes::held], double&) const {
    if (this->launch_.vector_sums == nullptr) return;
    float values[Lanes::held];
    Lanes::widen(gathered, values);
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) {
      vector_sums[i] = fmaf(gradient, leaky_relu_at(own.values[i] + values[i], this->launch_.slope),
                            vector_sums[i]);
    }
  }
  __device__ void finish(const Own&, VertexId, Gradient& gradient) const {
#pragma unroll
    for (int i = 0; i < Lanes::held; ++i) gradient.sums[i] *= vector_[i];
  }

 private:
  float vector_[Lanes::held];
};

/// The same where s are the values, which are gathered anyway.
template <class Lanes>
class SharedGatV2Score : public GatV2Score<Lanes> {
 public:
  static constexpr bool gathers_once = true;
  using GatV2Score<Lanes>::GatV2Score;
  using typename GatV2Score<Lanes>::Gathered;

  __device__ Gathered gathered_with(const typename Lanes::Loaded& values, VertexId, bool) const {
    return values;
  }
};

template <AttentionForm form, class Lanes>
using FormOf = std::tuple_element_t<
    static_cast<std::size_t>(form),
    std::tuple<GatScore<Lanes>, GatV2Score<Lanes>, DotScore<Lanes>, CosineScore<Lanes>>>;

/// In the forward pass; `shares`: values are what scores are made of.
template <AttentionForm form, bool shares, class Lanes>
using ForwardFormOf = std::conditional_t<shares, SharedGatV2Score<Lanes>, FormOf<form, Lanes>>;

/// Whether there is a kernel for that.
constexpr bool may_share(const LaneVectors& held, AttentionForm form) {
  return form == AttentionForm::gatv2 && held.loads == LaneLoads::whole;
}

}  // namespace tessera::ops
