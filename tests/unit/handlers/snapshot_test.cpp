// Snapshots of a running broker, without the daemon around it.
#include "kanal/broker/snapshot.hpp"

#include "one_broker.hpp"

namespace kanal::handlers::testing {
namespace {

class Snapshot : public OneBroker {
 protected:
  bool is_there(const std::string& path) { return files->exists(path).value(); }
  /// Cancelled from the given question on. How often it was asked.
  std::size_t take(const std::string& target, std::size_t cancelled_at) {
    std::size_t asked = 0;
    const auto made = broker->snapshot(target, [&] { return ++asked > cancelled_at; });
    EXPECT_EQ(made.has_value(), cancelled_at >= asked) << "question " << cancelled_at;
    EXPECT_EQ(is_there(target), made.has_value()) << "question " << cancelled_at;
    EXPECT_FALSE(is_there(target + ".tmp")) << "question " << cancelled_at;
    return asked;
  }
};

TEST_F(Snapshot, CancelledAtAnyMomentIsNotMade) {
  create("one", 2);
  create("two");
  append("one");
  const std::size_t questions = take(directory + "/snapshots/whole", SIZE_MAX);
  EXPECT_GE(questions, 3U) << "once a partition";
  for (std::size_t at = 0; at < questions; ++at) {
    EXPECT_EQ(take(directory + "/snapshots/cancelled", at), at + 1)
        << "nothing is done after it was cancelled";
  }
}

TEST_F(Snapshot, OfNoTopicsIsNotMadeEitherWhenCancelled) {
  take(directory + "/snapshots/cancelled", 0);
  EXPECT_FALSE(is_there(directory + "/snapshots/cancelled"));
}

}  // namespace
}  // namespace kanal::handlers::testing
