#include "base/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "support/temp_folder.h"
#include "support/throws.h"

namespace transept {
namespace {
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ReadFile, WholeBytesOrTheReason) {
  const TempFolder folder;
  const std::string bytes("a\0b\n", 4);
  EXPECT_EQ(read_file(folder.put("f", bytes), 4), bytes);
  EXPECT_EQ(read_file(folder.put("empty", ""), 0), "");
  EXPECT_THAT(input_error([&] { read_file(folder / "f", 3); }), AllOf(HasSubstr("f: "), HasSubstr("more than the 3")));
  EXPECT_THAT(input_error([&] { read_file(folder / "none", 10); }), HasSubstr("no such file"));
  EXPECT_THAT(input_error([&] { read_file(folder / "f" / "below", 10); }), HasSubstr("no such file"));
  EXPECT_THAT(input_error([&] { read_file(folder.path(), 10); }), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(input_error([&] { read_file(folder / "pipe", 10); }),
              HasSubstr("not a regular file"));  // and does not wait for a writer
}

TEST(MappedFile, BytesOfAFile) {
  const TempFolder folder;
  const MappedFile map(folder.put("f", "hello"));
  ASSERT_EQ(map.bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(map.bytes()[4]), 'o');
  EXPECT_TRUE(MappedFile(folder.put("empty", "")).bytes().empty());
  EXPECT_THAT(input_error([&] { MappedFile m(folder / "none"); }), HasSubstr("no such file"));
}

TEST(FileWriter, FullDiskIsAnEnvironmentErrorWithTheName) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const auto write = [] {
    FileWriter out("/dev/full");
    out.write("some text");
    out.close();
  };
  EXPECT_THAT(environment_error(write), AllOf(HasSubstr("/dev/full"), HasSubstr("space")));
}

TEST(FileWriter, UnwritablePlaces) {
  const TempFolder folder;
  EXPECT_THAT(environment_error([&] { FileWriter out(folder / "no" / "f"); }), HasSubstr("cannot be written"));
  EXPECT_THAT(environment_error([&] { FileWriter out(folder.path()); }), HasSubstr("cannot be written"));
  EXPECT_THAT(environment_error([&] { make_writable_folder(folder.put("file", "x") / "sub"); }),
              HasSubstr("cannot be created"));
  make_writable_folder(folder / "a" / "b" / "c");
  EXPECT_TRUE(fs::is_directory(folder / "a" / "b" / "c"));
  make_writable_folder(folder / "a" / "b" / "c");
}

TEST(WriteFileAtomic, ReplacesAndLeavesNothingElse) {
  const TempFolder folder;
  write_file_atomic(folder / "f", "one");
  write_file_atomic(folder / "f", "two");
  EXPECT_EQ(folder.get("f"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteFileAtomic, AFailureLeavesTheOldFile) {
  const TempFolder folder;
  folder.put("f", "old");
  fs::create_directory(folder / "f.partial");  // stands where the new file would be written
  EXPECT_THAT(environment_error([&] { write_file_atomic(folder / "f", "new"); }), HasSubstr("f.partial"));
  EXPECT_EQ(folder.get("f"), "old");

  fs::create_directory(folder / "g");
  folder.put("g/inside", "x");
  EXPECT_THAT(environment_error([&] { write_file_atomic(folder / "g", "new"); }), HasSubstr("put in place"));
  EXPECT_EQ(folder.get("g/inside"), "x");
  EXPECT_FALSE(fs::exists(folder / "g.partial"));
}

TEST(ReplaceFolderAtomic, KeepsTheFormerOne) {
  const TempFolder folder;
  const fs::path target = folder / "checkpoint", previous = folder / "previous", staged = folder / "staged";
  for (const char* content : {"1", "2", "3", "4"}) {
    folder.put("staged/f", content);
    folder.put(std::string("staged/only") + content, "");
    replace_folder_atomic(staged, target, previous);
    EXPECT_EQ(folder.get("checkpoint/f"), content);
    EXPECT_FALSE(fs::exists(staged));
    if (*content != '1') {
      EXPECT_EQ(folder.get("previous/f"), std::string(1, static_cast<char>(*content - 1)));
      EXPECT_FALSE(fs::exists(target / (std::string("only") + static_cast<char>(*content - 1))));
    }
  }
}

TEST(ReplaceFolderAtomic, WithoutAStagedFolderTheOldOneStands) {
  const TempFolder folder;
  folder.put("checkpoint/f", "old");
  EXPECT_THAT(
      environment_error([&] { replace_folder_atomic(folder / "staged", folder / "checkpoint", folder / "previous"); }),
      HasSubstr("put in place"));
  EXPECT_EQ(folder.get("checkpoint/f"), "old");
}

}  // namespace
}  // namespace transept
