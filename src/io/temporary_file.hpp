// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/file.hpp"

namespace tessera::io {

/// A file that is to become `path`, under a name of its own beside it: ".tessera-PID-NUMBER.tmp".
/// It is locked as long as its process lives, which tells those that were left behind from those
/// that somebody is writing.
class TemporaryFile {
 public:
  /// Also removes what killed processes have left in the folder, once for each folder.
  explicit TemporaryFile(std::string path);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  /// Removes the file unless `take_place` has succeeded.
  ~TemporaryFile();

  int descriptor() const noexcept { return descriptor_.number(); }
  /// Gives the file its name. False, with the reason in errno, where the system refuses.
  bool take_place();

 private:
  std::string path_;
  std::string name_;
  Descriptor descriptor_;
};

/// A name that is removed where the program ends before its work does (`abandon_files`).
void remember_temporary(const std::string& name);
/// Removes it now.
void remove_temporary(const std::string& name);

}  // namespace tessera::io
