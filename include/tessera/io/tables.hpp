// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/kinds.hpp"
#include "tessera/data/time_split.hpp"

/// How tables in text files are read: lists of edges and tables of vertices. Whatever is not said
/// is found out from the file.
namespace tessera::io {

enum class IdKind {
  automatic,  ///< numbers where the first lines hold integers, else names
  numbers,    ///< ids are the numbers of the vertices
  names,      ///< ids are texts; vertices are numbered as they appear
};

struct EdgeListOptions {
  char separator = 0;  ///< 0: found out; ' ': any run of blanks
  int base = 0;        ///< the first vertex is number 0 or number 1
  std::optional<bool> header = {};
  IdKind ids = IdKind::automatic;
  /// Columns by their name in the header or by their number, from 1. Empty: found out. The weight
  /// may be "none".
  std::string source = {}, target = {}, weight = {};
  std::vector<std::string> features = {};  ///< columns that become features of the edges
  std::string time = {};  ///< the one of them that holds times: a row without one is an error
  /// Given: the table lists interactions of these (data/kinds.hpp), an edge each way.
  Kinds kinds = {};
};

/// What to do with an edge whose end is not in the table of vertices.
enum class UnknownIds { reject, drop };

struct NodeTableOptions {
  std::string path = {};  ///< empty: there is no table of vertices
  char separator = 0;
  std::optional<bool> header = {};
  /// Columns by name or number. Empty: those that are called so.
  std::string id = {}, label = {}, split = {};
  /// Labels are numbers to predict, whole ones too; `label` may name several columns, between
  /// commas. Without it a column with fractions is numbers, and several columns are, too.
  bool numbers = false;
  /// Columns that become features (empty: all that are nothing else), and those left out.
  std::vector<std::string> features = {}, drop = {};
  UnknownIds unknown = UnknownIds::reject;
  /// Column of times by which the vertices are split, in place of a column that says the parts.
  std::string time = {};
  TimeShares time_shares = {};
};

}  // namespace tessera::io
