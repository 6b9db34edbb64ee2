#include "data_directory.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/memory_file_system.hpp"

namespace kanal::broker {
namespace {

const DirectoryMeta kMeta{"cluster-1", NodeId(3)};

TEST(Meta, ReadsWhatItWrote) {
  const auto read = decode_meta(encode_meta(kMeta));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, kMeta);
}

TEST(Meta, OfANewerFormatIsRefusedWithWhatToDo) {
  const auto read = decode_meta("kanal-data 2\nsomething else\n");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().detail.find("use a newer kanald"), std::string::npos);
}

TEST(Meta, WithAnyByteChangedIsRefused) {
  const std::string text = encode_meta(kMeta);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(decode_meta(damaged)) << "byte " << at;
  }
}

TEST(Meta, CutAnywhereIsRefused) {
  const std::string text = encode_meta(kMeta);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(decode_meta(text.substr(0, size))) << size << " bytes";
  }
}

TEST(DataDirectory, IsHeldByOneAtATime) {
  const std::string path = testing::TempDir() + "/kanal-data-directory";
  const auto files = make_system_file_system();
  ASSERT_TRUE(files->remove_all(path));
  {
    const auto first = DataDirectory::open(*files, path);
    ASSERT_TRUE(first);
    const auto second = DataDirectory::open(*files, path);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().detail.find("in use by another kanald"), std::string::npos);
  }
  EXPECT_TRUE(DataDirectory::open(*files, path));
}

TEST(DataDirectory, WhatAStopLeftIsReadAndAnyDamageOfItTold) {
  test::MemoryFileSystem files;
  EXPECT_EQ(read_stop(files, "/data").error().os_error, ENOENT);
  const auto directory = DataDirectory::open(files, "/data");
  ASSERT_TRUE(directory->write_stop(files, 1234));
  EXPECT_EQ(read_stop(files, "/data").value(), 1234U);
  const Buffer sound = files.content("/data/stopped").value();
  for (std::size_t at = 0; at < sound.size(); ++at) {
    Buffer flipped = sound;
    flipped[at] ^= std::byte{1};
    files.set_content("/data/stopped", flipped);
    EXPECT_FALSE(read_stop(files, "/data")) << "byte " << at;
    files.set_content("/data/stopped", Bytes(sound).first(at));
    EXPECT_FALSE(read_stop(files, "/data")) << at << " bytes";
  }
}

TEST(DataDirectory, OfANewerFormatIsLeftUntouched) {
  const std::string path = testing::TempDir() + "/kanal-newer-directory";
  const auto files = make_system_file_system();
  ASSERT_TRUE(files->remove_all(path));
  ASSERT_TRUE(files->create_directories(path));
  std::ofstream(path + "/meta") << "kanal-data 99\nwho knows\n";
  EXPECT_FALSE(DataDirectory::open(*files, path));
  const auto entries = files->list(path);
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), 1U) << "nothing was added beside meta";
}

}  // namespace
}  // namespace kanal::broker
