// SPDX-License-Identifier: Apache-2.0
#include "structure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "counters.hpp"
#include "graph/access.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/borrow.hpp"
#include "tessera/graph/build.hpp"

namespace tessera::torch_ops {
namespace {

Indices indices_of(const Tensor& tensor) {
  const auto size = static_cast<std::size_t>(tensor.numel());
  if (tensor.scalar_type() == ScalarType::Int) {
    return std::span(static_cast<const std::int32_t*>(tensor.const_data_ptr()), size);
  }
  return std::span(static_cast<const std::int64_t*>(tensor.const_data_ptr()), size);
}

VertexId checked_count(std::int64_t count, const char* what) {
  if (count >= 0 && count <= std::numeric_limits<VertexId>::max()) {
    return static_cast<VertexId>(count);
  }
  throw Error(ErrorCode::invalid_argument, std::to_string(count) + " " + what, "graph",
              "use between 0 and 2^31 - 1");
}

void check_index(const Tensor& tensor, const char* name) {
  const ScalarType type = tensor.scalar_type();
  if (type == ScalarType::Long || type == ScalarType::Int) return;
  throw Error(ErrorCode::invalid_argument, "indices that are not whole numbers", name,
              "use int64 or int32");
}

/// What owns memory of torch's for arrays of the library.
template <class T>
SharedArray<T> borrowed(const Tensor& tensor) {
  return {std::make_shared<Tensor>(tensor), static_cast<const T*>(tensor.const_data_ptr()),
          tensor.numel()};
}

Tensor row_of(const Tensor& index, std::int64_t row) {
  return torch::stable::contiguous(torch::stable::select(index, 0, row));
}

/// One number for each edge of a CSR: the row that it is in.
Tensor row_numbers(const Tensor& offsets, const Tensor& index) {
  const Tensor sizes = call<Tensor>("aten::diff", "", offsets, std::int64_t{1}, std::int64_t{-1},
                                    std::optional<Tensor>(), std::optional<Tensor>());
  const Tensor expanded =
      call<Tensor>("aten::repeat_interleave", "Tensor", in_type(sizes, ScalarType::Long),
                   std::optional<std::int64_t>());
  if (expanded.size(0) != index.size(0)) {
    throw Error(ErrorCode::invalid_argument,
                "the offsets end at " + std::to_string(expanded.size(0)) + ", but there are " +
                    std::to_string(index.size(0)) + " indices",
                "graph", "give offsets from 0 to the number of indices");
  }
  return in_type(expanded, index.scalar_type());
}

/// The position in the rows of each edge that the graph was built from.
Tensor edge_positions(const Graph& graph, const Tensor& beside, const Place& place) {
  const SharedArray<EdgeOffset> ids = detail::GraphAccess::edge_ids(graph).there(place.stream);
  const std::array<std::int64_t, 1> size{ids.size()};
  const std::array<std::int64_t, 1> stride{1};
  const Tensor view = torch::stable::from_blob(const_cast<EdgeOffset*>(ids.data()), size, stride,
                                               beside.device(), ScalarType::Long);
  return torch::stable::clone(view);
}

bool is_compressed(Layout layout) {
  return layout == Layout::by_target || layout == Layout::by_source;
}

}  // namespace

GraphArguments::GraphArguments(Tensor of_index, std::optional<Tensor> of_offsets,
                               std::int64_t num_targets, std::int64_t num_sources,
                               std::int64_t layout_number, std::int64_t loops_number)
    : index(std::move(of_index)),
      offsets(std::move(of_offsets)),
      targets(num_targets),
      sources(num_sources),
      layout(static_cast<Layout>(layout_number)),
      loops(static_cast<Loops>(loops_number)) {
  check_index(index, "edge_index");
  if (offsets.has_value() != is_compressed(layout)) {
    throw Error(ErrorCode::invalid_argument, "offsets do not belong to this layout", "graph");
  }
  if (offsets) check_index(*offsets, "offsets");
  const bool fits =
      is_compressed(layout) ? index.dim() == 1 : index.dim() == 2 && index.size(0) == 2;
  if (!fits) {
    throw Error(ErrorCode::invalid_argument, "indices of a shape that holds no edges", "edge_index",
                "use 2 x edges");
  }
}

GraphArguments GraphArguments::own() const {
  GraphArguments arguments = *this;
  arguments.index = call<Tensor>("aten::detach", "", index);
  if (offsets) arguments.offsets = call<Tensor>("aten::detach", "", *offsets);
  return arguments;
}

void Structure::require_no_capture(const Place& place, const char* what) {
  if (!is_capturing(place)) return;
  throw Error(ErrorCode::invalid_argument, std::string("while capturing a CUDA graph: ") + what,
              "capture", "run the whole step once before torch.cuda.graph");
}

void Structure::count_plan() { ++counters().plans; }

Structure::Structure(const GraphArguments& own_arguments) : arguments_(own_arguments) {
  const GraphArguments& arguments = arguments_;
  const Place place = place_of(arguments.index);
  require_no_capture(place, "this graph was not used before, or its indices changed");
  const VertexId num_targets = checked_count(arguments.targets, "targets");
  const VertexId num_sources = checked_count(arguments.sources, "sources");
  ++counters().graphs;

  if (arguments.layout == Layout::by_target && arguments.loops == Loops::as_given) {
    const Tensor index = torch::stable::contiguous(arguments.index);
    const Tensor offsets = torch::stable::contiguous(*arguments.offsets);
    BorrowOptions options;
    options.device = place.device;
    options.memory = place.memory;
    options.stream = place.stream;
    const auto owner = std::make_shared<std::array<Tensor, 2>>(std::array{index, offsets});
    try {
      graph_ = borrow_csr(num_targets, num_sources,
                          {indices_of(offsets), indices_of(index), {}, owner}, options);
      caller_edges_ = graph_.num_edges();
      return;
    } catch (const Error&) {
      // Columns that do not rise, or lie outside: built, or refused, as a list of edges below.
    }
  }
  Tensor targets = arguments.index;
  Tensor sources = arguments.index;
  switch (arguments.layout) {
    case Layout::source_target:
      targets = row_of(arguments.index, 1);
      sources = row_of(arguments.index, 0);
      break;
    case Layout::target_source:
      targets = row_of(arguments.index, 0);
      sources = row_of(arguments.index, 1);
      break;
    case Layout::by_target:
      sources = torch::stable::contiguous(arguments.index);
      targets = row_numbers(*arguments.offsets, arguments.index);
      break;
    case Layout::by_source:
      targets = torch::stable::contiguous(arguments.index);
      sources = row_numbers(*arguments.offsets, arguments.index);
      break;
  }
  const std::int64_t given = targets.size(0);
  caller_edges_ = given;
  if (arguments.loops == Loops::as_given) {
    build(targets, sources, nullptr, place);
    return;
  }
  Tensor positions = counting(targets, given);
  if (arguments.loops != Loops::one_more) {
    const Tensor differ = call<Tensor>("aten::ne", "Tensor", targets, sources);
    positions = torch::stable::flatten(call<Tensor>("aten::nonzero", "", differ), 0, -1);
  }
  const bool drops_edges = positions.size(0) < given;
  if (drops_edges) {
    targets = selected(targets, positions);
    sources = selected(sources, positions);
  }
  if (const std::int64_t loops = added_loops(); loops > 0) {
    caller_edges_ += loops;
    const Tensor vertices = in_type(counting(targets, loops), targets.scalar_type());
    targets = joined(targets, vertices);
    sources = joined(sources, vertices);
    Tensor all = counting(targets, caller_edges_);
    positions = joined(positions, torch::stable::narrow(all, 0, given, loops));
  }
  build(targets, sources, drops_edges ? &positions : nullptr, place);
}

std::int64_t Structure::added_loops() const {
  const bool adds = arguments_.loops == Loops::one_each || arguments_.loops == Loops::one_more;
  return adds ? std::min(arguments_.targets, arguments_.sources) : 0;
}

void Structure::build(const Tensor& targets, const Tensor& sources, const Tensor* caller_positions,
                      const Place& place) {
  BuildOptions options;
  options.duplicates = Duplicates::keep;
  options.keep_edge_ids = true;
  options.device = place.device;
  options.memory = place.memory;
  options.stream = place.stream;
  graph_ =
      from_coo(static_cast<VertexId>(arguments_.targets), static_cast<VertexId>(arguments_.sources),
               indices_of(targets), indices_of(sources), {}, options);
  const std::int64_t edges = graph_.num_edges();
  if (edges == 0) {
    if (caller_edges_ > 0) order_ = empty_beside(targets, 0, ScalarType::Long);
    return;
  }
  // The library says where each edge went; what is wanted is where each came from.
  const Tensor ids = edge_positions(graph_, targets, place);
  const Tensor numbers = counting(targets, edges);
  const bool sorted = equal(ids, numbers);
  graph_ = graph_.with_edge_ids({});
  if (sorted && caller_positions == nullptr) return;
  Tensor order = call<Tensor>("aten::scatter", "src", numbers, std::int64_t{0}, ids, numbers);
  if (caller_positions != nullptr) order = selected(*caller_positions, order);
  order_ = order;
  synchronise(place.device, place.stream);  // other streams may use it next
}

Tensor Structure::loop_weights(double weight, ScalarType type) const {
  Tensor values = empty_beside(arguments_.index, caller_edges_, type);
  torch::stable::fill_(values, 1);
  if (const std::int64_t loops = added_loops(); loops > 0) {
    torch::stable::fill_(torch::stable::narrow(values, 0, caller_edges_ - loops, loops), weight);
  }
  return torch::stable::contiguous(in_rows(values));
}

Graph Structure::with_loop_weight(double weight) const {
  if (added_loops() == 0 || weight == 1) return graph_;
  const Tensor ordered = loop_weights(weight, ScalarType::Float);
  const Place place = place_of(ordered);
  synchronise(place.device, place.stream);  // other streams may use it next
  return graph_.with_values(PlacedArray<float>(borrowed<float>(ordered), graph_.place()));
}

std::vector<double> Structure::scales(Norm norm, double loop_weight) const {
  const bool by_source = norm == Norm::symmetric_by_source;
  std::vector<double> degrees(
      static_cast<std::size_t>(by_source ? graph_.num_cols() : graph_.num_rows()));
  if (by_source) {
    for (const VertexId source : graph_.col_indices()) ++degrees[static_cast<std::size_t>(source)];
  } else {
    for (VertexId row = 0; row < graph_.num_rows(); ++row) {
      degrees[static_cast<std::size_t>(row)] = static_cast<double>(graph_.degree(row));
    }
  }
  // A mean is one over the number of edges, whatever they weigh.
  for (std::int64_t i = 0; norm != Norm::mean && i < added_loops(); ++i) {
    degrees[static_cast<std::size_t>(i)] += loop_weight - 1;
  }
  for (double& degree : degrees) {
    const double inverse = degree > 0 ? 1 / degree : 0;
    degree = norm == Norm::mean ? inverse : std::sqrt(inverse);
  }
  return degrees;
}

void Structure::require_square(Norm norm) const {
  if (norm == Norm::none || norm == Norm::mean || graph_.is_square()) return;
  throw Error(ErrorCode::invalid_argument, "symmetric normalisation of a graph that is not square",
              "graph", "use as many sources as targets");
}

void Structure::require_each_edge_once() const {
  if (!graph_.has_repeated_edges()) return;
  throw Error(ErrorCode::invalid_argument, "repeated edges in sums of bits", "edge_index",
              "merge them first (torch_geometric.utils.coalesce), or use floats");
}

Graph Structure::graph(Norm norm, double loop_weight) {
  if (norm == Norm::none && loop_weight == 1) return graph_;
  require_square(norm);
  const std::scoped_lock lock(mutex_);
  const auto found = graphs_.find({static_cast<int>(norm), loop_weight});
  if (found != graphs_.end()) return found->second;
  require_no_capture(place_of(arguments_.index), "this normalisation was not used before");
  Graph graph = with_loop_weight(loop_weight);
  if (norm != Norm::none) {
    const std::vector<double> wide = scales(norm, loop_weight);
    Buffer<float> narrow(static_cast<std::int64_t>(wide.size()));
    std::transform(wide.begin(), wide.end(), narrow.data(),
                   [](double scale) { return static_cast<float>(scale); });
    const SharedArray<float> shared(std::move(narrow));
    graph = norm == Norm::mean ? graph.with_scales(shared, {}) : graph.with_scales(shared, shared);
  }
  return graphs_.emplace(std::pair{static_cast<int>(norm), loop_weight}, graph).first->second;
}

Tensor Structure::entries(Norm norm, double loop_weight) {
  require_square(norm);
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find({static_cast<int>(norm), loop_weight});
  if (found != entries_.end()) return found->second;
  const Tensor values = torch::stable::view(loop_weights(loop_weight, ScalarType::Double),
                                            std::array<std::int64_t, 2>{edges(), 1});
  if (norm != Norm::none) {
    const std::vector<double> by = scales(norm, loop_weight);
    auto* entry = static_cast<double*>(values.data_ptr());
    for (VertexId row = 0; row < graph_.num_rows(); ++row) {
      for (const VertexId column : graph_.neighbours(row)) {
        *entry *= by[static_cast<std::size_t>(row)];
        if (norm != Norm::mean) *entry *= by[static_cast<std::size_t>(column)];
        ++entry;
      }
    }
  }
  return entries_.emplace(std::pair{static_cast<int>(norm), loop_weight}, values).first->second;
}

Graph Structure::unique_graph() {
  if (!graph_.has_repeated_edges()) return graph_;
  const std::scoped_lock lock(mutex_);
  if (unique_) return *unique_;
  const Place place = place_of(arguments_.index);
  require_no_capture(place, "max and min were not used before");
  BuildOptions options;
  options.duplicates = Duplicates::first;
  options.device = place.device;
  options.memory = place.memory;
  options.stream = place.stream;
  std::vector<VertexId> rows(static_cast<std::size_t>(graph_.num_edges()));
  for (VertexId row = 0; row < graph_.num_rows(); ++row) {
    std::fill(rows.begin() + graph_.row_offsets()[row],
              rows.begin() + graph_.row_offsets()[row + 1], row);
  }
  unique_ = from_coo(graph_.num_rows(), graph_.num_cols(), rows, graph_.col_indices().span(), {},
                     options);
  return *unique_;
}

Tensor Structure::in_rows(const Tensor& values) const {
  return order_ ? selected(values, *order_) : torch::stable::contiguous(values);
}

Tensor Structure::to_caller(const Tensor& values) const {
  if (!order_) return values;
  Tensor result = zeros_beside(values, caller_edges_, values.size(1), values.scalar_type());
  return call<Tensor>("aten::index_copy", "", result, std::int64_t{0}, *order_, values);
}

}  // namespace tessera::torch_ops
