// Incremental changes of an overlay (KIP-339).
#include "kanal/coordinator/config_change.hpp"

#include "kanal/coordinator/topic_config.hpp"

#include <gtest/gtest.h>

namespace kanal::coordinator {
namespace {

ConfigAlteration change(ConfigOperation operation, std::string name, std::string value) {
  return {std::move(name), operation, std::move(value)};
}

std::string after(ConfigMap overlay, ConfigOperation operation, std::string value) {
  const std::vector changes{change(operation, "cleanup.policy", std::move(value))};
  auto changed = altered(std::move(overlay), changes, &find_topic_config);
  if (!changed) return changed.error().detail;
  const auto found = changed->find("cleanup.policy");
  return found == changed->end() ? "(not set)" : found->second;
}

TEST(ConfigChange, AppendingStartsFromWhatIsSetOrTheDefault) {
  EXPECT_EQ(after({}, ConfigOperation::kAppend, "compact"), "delete,compact");
  EXPECT_EQ(after({{"cleanup.policy", "compact"}}, ConfigOperation::kAppend, "delete"),
            "compact,delete");
  EXPECT_EQ(after({{"cleanup.policy", "compact"}}, ConfigOperation::kAppend, "compact"), "compact")
      << "what is there is not added again";
  EXPECT_EQ(after({{"cleanup.policy", ""}}, ConfigOperation::kAppend, "a,b"), "a,b");
}

TEST(ConfigChange, SubtractingTheLastItemLeavesAnEmptyList) {
  EXPECT_EQ(after({{"cleanup.policy", "a,b,c"}}, ConfigOperation::kSubtract, "c,a"), "b");
  EXPECT_EQ(after({}, ConfigOperation::kSubtract, "delete"), "");
  EXPECT_EQ(after({}, ConfigOperation::kSubtract, "compact"), "delete");
}

TEST(ConfigChange, DeletingGoesBackToTheDefaultAndSettingReplaces) {
  EXPECT_EQ(after({{"cleanup.policy", "a"}}, ConfigOperation::kDelete, ""), "(not set)");
  EXPECT_EQ(after({}, ConfigOperation::kDelete, ""), "(not set)");
  EXPECT_EQ(after({{"cleanup.policy", "a"}}, ConfigOperation::kSet, "b"), "b");
}

TEST(ConfigChange, OnlyListsGrowAndShrink) {
  for (const auto operation : {ConfigOperation::kAppend, ConfigOperation::kSubtract}) {
    for (const char* name : {"retention.ms", "no.such.name"}) {
      const std::vector changes{change(operation, name, "5")};
      const auto changed = altered({}, changes, &find_topic_config);
      ASSERT_FALSE(changed);
      EXPECT_EQ(changed.error().code, ErrorCode::INVALID_CONFIG);
      EXPECT_NE(changed.error().detail.find("its type is not LIST"), std::string::npos);
    }
  }
}

TEST(ConfigChange, AValueGrowsNoLongerThanWhatIsStored) {
  const std::vector changes{change(ConfigOperation::kAppend, "cleanup.policy", "b")};
  const std::string long_one(32'766, 'a');
  const auto changed = altered({{"cleanup.policy", long_one}}, changes, &find_topic_config);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::INVALID_CONFIG);
}

}  // namespace
}  // namespace kanal::coordinator
