// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/writing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "support/expect_error.hpp"
#include "support/files.hpp"

#include "io/file.hpp"

namespace tessera::io {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;

TEST(Writing, counts_the_files_that_got_to_their_places) {
  const TemporaryFolder folder;
  const std::int64_t before = files_written();
  write_text_file(folder / "a", "one");
  { AtomicFile never(folder / "b"); }
  EXPECT_EQ(files_written(), before + 1);
  EXPECT_EQ(read_file(folder / "a"), "one");
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(Writing, links_are_followed_also_to_files_that_are_not_there_yet) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "inner");
  std::filesystem::create_symlink("inner/second", folder / "first");
  std::filesystem::create_symlink("../target", folder / "inner/second");
  EXPECT_EQ(std::filesystem::path(written_path(folder / "first")).lexically_normal(),
            folder / "target");
  for (const char* text : {"one", "two"}) {
    write_text_file(folder / "first", text);
    EXPECT_EQ(read_file(folder / "target"), text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "first"));
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "inner/second"));
  }
}

TEST(Writing, a_circle_of_links_is_an_error) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  testing::expect_error(ErrorCode::io, {"link"}, [&] { write_text_file(folder / "a", "x"); });
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "a"));
}

TEST(Writing, removes_what_dead_writers_left_and_nothing_else) {
  const TemporaryFolder folder;
  for (const char* name : {".tessera-1-0.tmp", ".tessera-1-1.tmp", ".tessera-1-x.tmp",
                           ".tessera--1.tmp", ".tessera-.tmp", "tessera-1-0.tmp"}) {
    write_file(folder / name, "half");
  }
  const Descriptor writer(::open((folder / ".tessera-1-1.tmp").c_str(), O_RDONLY));
  ASSERT_EQ(::flock(writer.number(), LOCK_EX), 0);
  std::filesystem::create_symlink("precious", folder / ".tessera-2-2.tmp");
  std::filesystem::create_directory(folder / ".tessera-3-3.tmp");
  write_file(folder / "precious", "precious");
  write_text_file(folder / "new", "new");
  EXPECT_FALSE(std::filesystem::exists(folder / ".tessera-1-0.tmp"));
  EXPECT_EQ(read_file(folder / "precious"), "precious");
  EXPECT_EQ(folder.num_files(), 9u);
}

TEST(Writing, abandoned_files_never_get_to_their_places) {
  // In a process of its own, since it is for those that end.
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::int64_t before = files_written();
    AtomicFile file(folder / "a");
    file.write(bytes_of("new"));
    bool refused = false;
    const bool abandoned = abandon_files(before);
    try {
      file.commit();
    } catch (const Error&) {
      refused = true;
    }
    try {
      write_text_file(folder / "b", "new");
      refused = false;
    } catch (const Error&) {
    }
    ::_exit(abandoned && refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(Writing, results_in_their_places_are_not_abandoned) {
  const TemporaryFolder folder;
  const std::int64_t before = files_written();
  write_text_file(folder / "a", "result");
  EXPECT_FALSE(abandon_files(before));
  write_text_file(folder / "b", "another");
  EXPECT_EQ(folder.num_files(), 2u);
}

}  // namespace
}  // namespace tessera::io
