// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/step/context.hpp"
#include "tessera/step/program.hpp"

/// Rewrites put cheaper nodes in the place of others, and leave every value that is read after the
/// program as it was. Those before `differentiate` decide for both directions.
namespace tessera::step {

/// What rewrites may know. Shapes are those that were noted (`note_shapes`).
struct Surroundings {
  std::span<const Value> kept;  ///< values that are read after the run
  const Placement& placement;
  const Context& context;
};

/// Which side of `differentiate` a rewrite works on.
enum class Side { before, after, both };

struct Rewrite {
  const char* name;
  const char* summary;
  Side side;
  /// Returns how often it fired.
  std::int64_t (*apply)(Program& program, const Surroundings& around);
};

/// All of them, in the order in which they are applied.
std::span<const Rewrite> rewrites();

struct Fired {
  std::string name;
  std::int64_t times = 0;
  std::int64_t saved_nodes = 0;  ///< each takes a pass of its own, or more
  std::int64_t saved_bytes = 0;  ///< that nodes read and write less, by the shapes that were noted
};

/// What the nodes of a program read and write, by the shapes that were noted.
std::int64_t bytes_moved(const Program& program);

/// Throws `invalid_argument` for a name that no rewrite has, with those there are.
void require_rewrites(std::span<const std::string> names);

/// Applies the rewrites of one side of `differentiate` but those named in `off`, and says which
/// fired.
std::vector<Fired> rewrite(Program& program, const Surroundings& around, Side side,
                           std::span<const std::string> off = {});

}  // namespace tessera::step
