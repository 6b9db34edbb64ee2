// Request headers as real clients send them, and what becomes of frames that cannot be served.
#include "dispatch.hpp"

#include "fixture.hpp"

namespace kanal::server::testing {
namespace {

MutableBytes bytes_of(std::string& frame) {
  return {reinterpret_cast<std::byte*>(frame.data()), frame.size()};
}

TEST(OpenRequest, ReadsBothHeaderVersions) {
  // ApiVersions v0 and v3 as librdkafka 2.0.2 sends them (client id "rdkafka"; name "librdkafka",
  // version "2.0.2").
  std::string v0 = be16(18) + be16(0) + be32(1) + be16(7) + "rdkafka";
  std::string v6 =
      be16(18) + be16(6) + be32(2) + be16(7) + "rdkafka" + std::string(1, '\0') + "\x0blibrdkafka";
  OpenedRequest old = open_request(bytes_of(v0), fake_route);
  EXPECT_EQ(old.verdict, Verdict::kRun);
  EXPECT_EQ(old.header.client_id, "rdkafka");
  EXPECT_EQ(old.body.remaining(), 0U);
  OpenedRequest flexible = open_request(bytes_of(v6), fake_route);
  EXPECT_EQ(flexible.verdict, Verdict::kRun);
  EXPECT_EQ(flexible.header.correlation_id, 2);
  EXPECT_EQ(flexible.body.remaining(), 11U);
}

TEST(OpenRequest, TakesNullEmptyAndNegativeClientIds) {
  for (const int length : {-1, 0, -2}) {
    for (const int version : {1, 6}) {
      std::string frame = be16(kEcho) + be16(version) + be32(1) + be16(length) +
                          (version == 6 ? std::string(1, '\0') : "");
      const OpenedRequest opened = open_request(bytes_of(frame), fake_route);
      EXPECT_EQ(opened.verdict, Verdict::kRun);
      EXPECT_EQ(opened.header.client_id, "");
      EXPECT_EQ(opened.body.remaining(), 0U);
    }
  }
}

TEST(OpenRequest, SkipsTaggedFieldsOfTheHeader) {
  std::string frame = be16(kEcho) + be16(6) + be32(1) + be16(-1) +
                      "\2"
                      "\5"
                      "\1"
                      "x"
                      "\6" +
                      std::string(1, '\0') + "body";
  const OpenedRequest opened = open_request(bytes_of(frame), fake_route);
  EXPECT_EQ(opened.verdict, Verdict::kRun);
  EXPECT_EQ(opened.body.remaining(), 4U);
}

TEST(OpenRequest, RefusesWithAReasonThatNamesTheFault) {
  const auto reason = [](std::string frame) {
    return open_request(bytes_of(frame), fake_route).reason;
  };
  EXPECT_EQ(reason(be16(99) + be16(0) + be32(1) + be16(-1)), "unknown API key");
  EXPECT_EQ(reason(be16(kEcho) + be16(8) + be32(1) + be16(-1)),
            "unsupported version; served are 0-7");
  EXPECT_NE(reason(be16(kEcho) + be16(1) + be32(1) + be16(50) + "abc").find("client_id"),
            std::string::npos);
  EXPECT_NE(reason(be16(kEcho) + be16(6) + be32(1) + be16(-1) + "\xff\xff\xff\xff\x07")
                .find("request header"),
            std::string::npos);
}

TEST(ResponseHeader, HasTagsWhereFlexibleButNeverForApiVersions) {
  const auto size = [](std::int16_t key, std::int16_t version) {
    wire::Writer out;
    write_response_header(out, *fake_route(key), version, 9);
    return out.bytes().size();
  };
  EXPECT_EQ(size(kEcho, 4), 4U);
  EXPECT_EQ(size(kEcho, 5), 5U);
  EXPECT_EQ(size(kApiVersionsKey, 4), 4U);
  EXPECT_EQ(size(kApiVersionsKey, 5), 4U);
}

}  // namespace
}  // namespace kanal::server::testing
