// SPDX-License-Identifier: Apache-2.0
#include "io/member_name.hpp"

#include "tessera/core/printable.hpp"

namespace tessera::io {
namespace {

/// True for "a" and "a/b", and for nothing that a system would look for elsewhere.
bool stays_inside(std::string_view name) {
  const bool names_drive = name.size() > 1 && name[1] == ':';
  if (names_drive || name.find('\\') != std::string_view::npos) return false;
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace

void require_plain_name(std::string_view name, const std::string& where, ErrorCode code) {
  const char* const problem = name.empty()              ? "an array has no name"
                              : printable(name) != name ? "the name of an array cannot be printed"
                              : !stays_inside(name)     ? "the name of an array is a path"
                                                        : nullptr;
  if (problem == nullptr) return;
  throw Error(code, problem, where + ": '" + std::string(name) + "'", "rename the array");
}

void require_plain_member(std::string_view member, const std::string& where, ErrorCode code) {
  constexpr std::string_view ending = ".npy";
  if (member.ends_with(ending)) member.remove_suffix(ending.size());
  require_plain_name(member, where, code);
}

}  // namespace tessera::io
