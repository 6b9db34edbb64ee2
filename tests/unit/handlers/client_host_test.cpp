#include "client_host.hpp"

#include <gtest/gtest.h>

namespace kanal::handlers {
namespace {

TEST(ClientHost, IsWrittenAsJavaWritesIt) {
  EXPECT_EQ(client_host("127.0.0.1"), "/127.0.0.1");
  EXPECT_EQ(client_host("::1"), "/0:0:0:0:0:0:0:1");
  EXPECT_EQ(client_host("::ffff:10.1.2.3"), "/10.1.2.3");
  EXPECT_EQ(client_host("2001:db8::a:0:ff"), "/2001:db8:0:0:0:a:0:ff");
  EXPECT_EQ(client_host(""), "/");
}

}  // namespace
}  // namespace kanal::handlers
