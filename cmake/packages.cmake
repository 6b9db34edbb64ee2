# Debian 12's packages, found once, each under one target name.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(RocksDB REQUIRED)
find_package(Boost 1.81 REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
find_library(SNAPPY_LIBRARY snappy REQUIRED)
find_library(ISAL_LIBRARY isal REQUIRED)

# CRC32C and the four compression codecs of record batches.
add_library(kanal_codecs INTERFACE)
target_link_libraries(kanal_codecs INTERFACE PkgConfig::ZSTD PkgConfig::LZ4 PkgConfig::ZLIB
  "${SNAPPY_LIBRARY}" "${ISAL_LIBRARY}")

# Asio without its deprecated parts; compiled once in src/broker/asio.cpp.
add_library(kanal_asio INTERFACE)
target_link_libraries(kanal_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(kanal_asio INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_DISABLE_BOOST_ALIGN)
if(NOT TARGET RocksDB::rocksdb)
  add_library(RocksDB::rocksdb ALIAS rocksdb)
endif()
