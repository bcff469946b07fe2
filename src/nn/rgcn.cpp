// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/rgcn.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/step/relation_nodes.hpp"

namespace tessera::nn {
namespace {

/// Of the graphs of `RelationSegments`.
enum GraphOf : int { edges, relations, targets };

const RgcnOptions& checked(const RgcnOptions& options) {
  const auto reject = [](const std::string& what, const char* fix) {
    throw Error(ErrorCode::invalid_argument, what, "R-GCN", fix);
  };
  if (options.in < 1 || options.out < 1) {
    reject(fmt::format("{} x {} features", options.in, options.out), "give at least one of each");
  }
  if (options.relations < 0) reject("a negative number of relations", "count them from 0");
  if (options.blocks < 1 || options.in % options.blocks != 0 || options.out % options.blocks != 0) {
    reject(fmt::format("{} x {} features do not divide into {} blocks", options.in, options.out,
                       options.blocks),
           "give a number that divides both");
  }
  if (options.bases < 0 || (options.bases > 0 && options.blocks > 1)) {
    reject(fmt::format("{} bases and {} blocks", options.bases, options.blocks),
           "give either bases or blocks");
  }
  return options;
}

/// A row for each relation; with bases a column for each of these.
Parameter weight_of(const RgcnOptions& options, Placement placement) {
  const std::int64_t numbers = options.in / options.blocks * options.out;
  const Initial start = Initial::glorot(options.in / options.blocks, options.out / options.blocks);
  if (options.bases > 0) return {"weight", numbers, options.bases, start, placement};
  return {"weight", options.relations, numbers, start, placement};
}

}  // namespace

Rgcn::Rgcn(const RgcnOptions& options, Placement placement)
    : Layer(placement),
      options_(checked(options)),
      weight_(weight_of(options, placement)),
      epilogue_(options.output, options.out, placement) {
  register_parameter(weight_);
  if (options.bases > 0) {
    comp_.emplace("comp", options.relations, options.bases,
                  Initial::glorot(options.relations, options.bases), placement);
    register_parameter(*comp_);
  }
  if (options.root) {
    root_.emplace("root.weight", options.out, options.in, Initial::glorot(options.in, options.out),
                  placement);
    register_parameter(*root_);
  }
  if (epilogue_.bias) register_parameter(*epilogue_.bias);
}

// A mean for each pair of a vertex and a relation, its product with the weight of the relation, and
// the sum of these by vertex: three ops, however many relations there are.
step::Value Rgcn::build(const StepInputs& in) {
  step::Program& program = in.program;
  step::Value weights = in.parameter(weight_);
  if (comp_) weights = step::linear(program, in.parameter(*comp_), weights);
  const step::Value means =
      step::aggregate(program, in.sources, {pattern, ops::Reduction::mean, edges});
  const step::Value messages =
      step::grouped_linear(program, means, weights, {relations, options_.blocks});
  step::Value y = step::aggregate(program, messages, {pattern, ops::Reduction::sum, targets});
  if (root_) {
    y = step::add(program, y, step::linear(program, in.sources, in.parameter(*root_)));
  }
  return in.finish(y, epilogue_);
}

std::string Rgcn::describe() const {
  const std::string weights = options_.bases > 0    ? fmt::format(", {} bases", options_.bases)
                              : options_.blocks > 1 ? fmt::format(", {} blocks", options_.blocks)
                                                    : std::string();
  return fmt::format("RGCN({}, {}, {} relations{}{})", options_.in, options_.out,
                     options_.relations, weights, nn::describe(options_.output));
}

}  // namespace tessera::nn
