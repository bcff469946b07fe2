// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/graph/relational.hpp"
#include "tessera/nn/layer.hpp"

/// Models of graphs with kinds of vertices and relations.
namespace tessera::nn {

enum class RelationalKind { rgcn, sage, gat };
const char* to_string(RelationalKind kind) noexcept;
/// An unknown name is an `invalid_argument` error that lists those there are.
RelationalKind parse_relational_kind(const std::string& text);

struct RelationalModelOptions {
  RelationalKind kind = RelationalKind::rgcn;
  std::int64_t layers = 2;
  std::int64_t hidden = 64;
  std::int64_t heads = 4;   ///< gat; the last layer has one
  std::int64_t blocks = 1;  ///< rgcn, of all layers but the last: see `RgcnOptions`
  std::int64_t bases = 0;   ///< rgcn: see `RgcnOptions`
  double dropout = 0.5;     ///< behind every layer but the last

  friend bool operator==(const RelationalModelOptions&, const RelationalModelOptions&) = default;
};

/// What of its data a model depends on.
struct RelationalShape {
  std::int64_t features = 0;        ///< of the kind that has most; 0: none has any
  std::int64_t featured_kinds = 0;  ///< kinds with features
  std::int64_t embedded = 0;        ///< vertices of kinds without
  std::int64_t relations = 0;
  std::int64_t outputs = 0;
};

/// A row of `width` numbers for each vertex, kind after kind: a linear map of its features for each
/// kind that has some, and an embedding for each vertex of the others. The input has a row for each
/// vertex of the former, filled up with zeros. Takes the graphs of `encoder_graphs`.
class KindEncoder final : public Layer {
 public:
  KindEncoder(const RelationalShape& shape, std::int64_t width, Placement placement = {});

  std::int64_t num_graphs() const override;
  std::int64_t input_width() const override;
  std::int64_t output_width() const override { return width_; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  RelationalShape shape_;
  std::int64_t width_;
  std::unique_ptr<Parameter> weight_, bias_, embedding_;
};

/// A `KindEncoder`, layers that sum over relations, and a row of outputs for each vertex of one
/// kind. Takes the graphs of `model_graphs`.
class RelationalModel final : public Layer {
 public:
  RelationalModel(const RelationalModelOptions& options, const RelationalShape& shape,
                  Placement placement = {});

  std::int64_t num_graphs() const override;
  std::int64_t input_width() const override { return encoder_.input_width(); }
  std::int64_t output_width() const override { return outputs_; }
  std::string describe() const override;
  bool accepts_sparse() const override { return false; }

 private:
  step::Value build(const StepInputs& inputs) override;

  KindEncoder encoder_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::int64_t outputs_;
};

/// What a `KindEncoder` reads, where `has_features` says which kinds have some.
std::vector<Graph> encoder_graphs(const RelationalGraph& graph,
                                  const std::vector<bool>& has_features);
/// What a `RelationalModel` reads. Its last layer sums over the relations into `kind` alone.
std::vector<Graph> model_graphs(const RelationalModelOptions& options, const RelationalGraph& graph,
                                const std::vector<bool>& has_features, std::int32_t kind);

}  // namespace tessera::nn
