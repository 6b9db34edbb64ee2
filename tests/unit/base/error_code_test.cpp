#include "kanal/base/error_code.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace kanal {
namespace {

TEST(ErrorCodes, NamesAndRetriabilityAreKafkas) {
  std::ifstream facts(std::string(KANAL_GOLDEN_DIR) + "/kafka-4.4/errors.tsv");
  ASSERT_TRUE(facts);
  std::string line;
  std::getline(facts, line);  // column names
  int expected = -1;
  while (std::getline(facts, line)) {
    std::istringstream columns(line);
    int code = 0;
    std::string text;
    std::string may_retry;
    columns >> code >> text >> may_retry;
    EXPECT_EQ(code, expected++);
    EXPECT_EQ(name(static_cast<ErrorCode>(code)), text);
    EXPECT_EQ(retriable(static_cast<ErrorCode>(code)), may_retry == "true") << text;
  }
  EXPECT_EQ(expected, static_cast<int>(ErrorCode::CONTROLLER_ID_NOT_REGISTERED) + 1);
}

TEST(ErrorCodes, NumbersKafkaDoesNotKnowAreUndefined) {
  EXPECT_EQ(name(static_cast<ErrorCode>(137)), "UNDEFINED");
  EXPECT_EQ(name(static_cast<ErrorCode>(-2)), "UNDEFINED");
  EXPECT_EQ(name(static_cast<ErrorCode>(32767)), "UNDEFINED");
  EXPECT_FALSE(retriable(static_cast<ErrorCode>(-2)));
  EXPECT_FALSE(retriable(static_cast<ErrorCode>(137)));
}

}  // namespace
}  // namespace kanal
