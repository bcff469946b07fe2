// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/coo.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/once_map.hpp"
#include "graph/coo_access.hpp"
#include "graph/device_build.hpp"
#include "graph/narrow_indices.hpp"
#include "graph/weight_functions.hpp"
#include "tessera/core/error.hpp"

namespace tessera {

struct Coo::Kept {
  OnceMap graphs;  ///< by rule
  OnceMap others;
};

namespace {

constexpr EdgeOffset edges_per_task = 1 << 16;

[[noreturn]] void refuse(const std::string& problem, const char* where,
                         const std::string& fix = {}) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

void check_sizes(VertexId num_rows, VertexId num_cols, const BorrowedCoo& coo) {
  if (num_rows < 0 || num_cols < 0) {
    refuse(fmt::format("negative shape {} x {}", num_rows, num_cols), "borrow_coo");
  }
  if (coo.rows.size() != coo.cols.size()) {
    refuse(fmt::format("{} rows but {} columns", coo.rows.size(), coo.cols.size()), "borrow_coo",
           "give one of each per edge");
  }
  if (!coo.values.empty() && std::ssize(coo.values) != coo.rows.size()) {
    refuse(fmt::format("{} values for {} edges", coo.values.size(), coo.rows.size()), "borrow_coo",
           "give one value per edge, or none");
  }
}

/// Under which what is made by a rule is kept.
std::string rule_key(const Coo& coo) {
  return fmt::format("{} {}", to_string(coo.rule()), coo.loop_weight());
}

SharedArray<VertexId> borrowed(const Indices& indices, std::int64_t bound, const char* word,
                               const BorrowedCoo& coo, const Place& place) {
  if (indices.is_wide()) return detail::narrowed(indices, bound, word, place);
  return {coo.owner, indices.narrow().data(), indices.size()};
}

Buffer<float> weighed(const Coo& coo) {
  using Of = detail::CooAccess;
  if (coo.place().device.kind != DeviceKind::cpu) return detail::weighed_on_device(coo);
  const SharedArray<VertexId>& rows = Of::rows(coo).here();
  const SharedArray<VertexId>& cols = Of::cols(coo).here();
  Buffer<float> weights(coo.num_edges());
  visit_weight(coo.function(), [&](auto function) {
    parallel_for(coo.num_edges(), edges_per_task, [&](EdgeOffset k) {
      weights[k] =
          function(coo.has_values() ? Of::values(coo).here()[k] : 1.0f,
                   Of::row_numbers(coo).here()[rows[k]], Of::col_numbers(coo).here()[cols[k]]);
    });
  });
  return weights;
}

Graph made_by_rows(const Coo& coo) {
  using Of = detail::CooAccess;
  ProcessOptions options;
  options.device = coo.place().device;
  options.memory = coo.place().memory;
  options.stream = coo.place().stream;
  options.duplicates = Duplicates::keep;
  options.nonfinite = Nonfinite::allow;
  options.keep_edge_ids = true;
  options.rule = coo.rule();
  options.loop_weight = coo.loop_weight();
  options.both_sides = false;
  const Stream stream = coo.place().stream;
  const SharedArray<VertexId> rows = Of::rows(coo).there(stream);
  const SharedArray<VertexId> cols = Of::cols(coo).there(stream);
  if (coo.function() != WeightFunction::product) {
    const Buffer<float> weights = weighed(coo);
    return from_coo(coo.num_rows(), coo.num_cols(), rows.span(), cols.span(), weights.span(),
                    options);
  }
  const SharedArray<float> values = Of::values(coo).there(stream);
  if (coo.rule() != EdgeRule::plain) {
    return process_edges(coo.num_rows(), cols.span(), rows.span(), values.span(), options);
  }
  const Graph graph =
      from_coo(coo.num_rows(), coo.num_cols(), rows.span(), cols.span(), values.span(), options);
  return graph.with_scales(Of::row_numbers(coo), Of::col_numbers(coo));
}

}  // namespace

const char* to_string(WeightFunction function) noexcept {
  switch (function) {
    case WeightFunction::product: return "product";
    case WeightFunction::gaussian: return "gaussian";
  }
  return "unknown";
}

Coo::Coo() : kept_(std::make_shared<Kept>()) {}

Coo Coo::with_rule(EdgeRule rule, float loop_weight) const {
  if (rule != EdgeRule::plain && num_rows_ != num_cols_) {
    refuse(fmt::format("{} x {} edges under the rule '{}'", num_rows_, num_cols_, to_string(rule)),
           "Coo::with_rule", "self loops need a square matrix");
  }
  if (!row_numbers_.empty() || !col_numbers_.empty()) {
    if (rule == EdgeRule::plain) return *this;
    refuse("edges that have numbers of their own", "Coo::with_rule", "use the edges without them");
  }
  if (!std::isfinite(loop_weight)) {
    refuse(fmt::format("loop_weight is {}", loop_weight), "Coo::with_rule", "give a finite number");
  }
  Coo other = *this;
  other.rule_ = rule;
  other.loop_weight_ = rule == EdgeRule::plain ? 1 : loop_weight;
  return other;
}

Coo Coo::with_numbers(PlacedArray<float> row_numbers, PlacedArray<float> col_numbers,
                      WeightFunction function) const {
  const auto check = [](const char* name, std::int64_t size, std::int64_t expected) {
    if (size == 0 || size == expected) return;
    refuse(fmt::format("{} has {} entries for {} vertices", name, size, expected),
           "Coo::with_numbers");
  };
  check("row_numbers", row_numbers.size(), num_rows_);
  check("col_numbers", col_numbers.size(), num_cols_);
  if (rule_ != EdgeRule::plain) {
    refuse(fmt::format("edges under the rule '{}'", to_string(rule_)), "Coo::with_numbers",
           "use the plain edges");
  }
  const bool lacks_numbers =
      (num_rows_ > 0 && row_numbers.empty()) || (num_cols_ > 0 && col_numbers.empty());
  if (function == WeightFunction::gaussian && lacks_numbers) {
    refuse("a gaussian of no coordinates", "Coo::with_numbers", "give both ends their numbers");
  }
  Coo other = *this;
  other.row_numbers_ = std::move(row_numbers);
  other.col_numbers_ = std::move(col_numbers);
  other.function_ = function;
  other.kept_ = std::make_shared<Kept>();
  return other;
}

Graph Coo::graph() const {
  const auto make = [this]() -> std::shared_ptr<const void> {
    return std::make_shared<const Graph>(made_by_rows(*this));
  };
  return *std::static_pointer_cast<const Graph>(kept_->graphs.get(rule_key(*this), make));
}

bool Coo::knows_graph() const { return kept_->graphs.known(rule_key(*this)) != nullptr; }

namespace detail {

Coo CooAccess::make(VertexId num_rows, VertexId num_cols, PlacedArray<VertexId> rows,
                    PlacedArray<VertexId> cols, PlacedArray<float> values, const Place& place) {
  Coo coo;
  coo.num_rows_ = num_rows;
  coo.num_cols_ = num_cols;
  coo.rows_ = std::move(rows);
  coo.cols_ = std::move(cols);
  coo.values_ = std::move(values);
  coo.place_ = place;
  return coo;
}

std::shared_ptr<const void> CooAccess::shared(const Coo& coo, const std::string& key,
                                              FunctionRef<std::shared_ptr<const void>()> make) {
  return coo.kept_->others.get(rule_key(coo) + ", " + key, make, Keeping::weakly);
}

}  // namespace detail

Coo borrow_coo(VertexId num_rows, VertexId num_cols, const BorrowedCoo& coo,
               const BorrowOptions& options) {
  require_available(options.device);
  check_sizes(num_rows, num_cols, coo);
  const Place place = options.place();
  SharedArray<VertexId> rows = borrowed(coo.rows, num_rows, "row", coo, place);
  SharedArray<VertexId> cols = borrowed(coo.cols, num_cols, "column", coo, place);
  SharedArray<float> values(coo.owner, coo.values.data(), std::ssize(coo.values));
  const bool looks = options.row_order == RowOrder::checked;
  if (options.device.kind == DeviceKind::cpu) {
    if (looks) {
      detail::require_in_range({num_rows, num_cols, rows.span(), cols.span(), {}, "row", "column"});
    }
    return detail::CooAccess::make(num_rows, num_cols, std::move(rows), std::move(cols),
                                   std::move(values), place);
  }
  if (looks) {
    detail::check_range_on_device(num_rows, num_cols, rows.span(), cols.span(), place);
  }
  return detail::CooAccess::make(num_rows, num_cols,
                                 detail::placed_on_device(std::move(rows), place),
                                 detail::placed_on_device(std::move(cols), place),
                                 detail::placed_on_device(std::move(values), place), place);
}

}  // namespace tessera
