#include "nezha/k8s/admission_review.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/support/policies.h"

namespace nezha::k8s {
namespace {

TEST(AdmissionReview, ReadsTheRequestAndKeepsTheObjectRaw) {
  auto review = test::make_review(test::make_pod(), "team");
  review["request"]["object"]["spec"]["fieldOfTomorrow"] = {{"n", 9007199254740993}};
  review["request"]["dryRun"] = true;
  const auto request = parse_review(review.dump(), 100);
  ASSERT_TRUE(request);
  EXPECT_EQ(request.value().uid, review["request"]["uid"].get<std::string>());
  EXPECT_EQ(request.value().operation, "CREATE");
  EXPECT_EQ(request.value().resource, "pods");
  EXPECT_EQ(request.value().name_space.get(), "team");
  EXPECT_TRUE(request.value().dry_run);
  EXPECT_EQ(*request.value().object, review["request"]["object"]);
}

TEST(AdmissionReview, ObjectMayBeAbsent) {
  auto review = test::make_review(test::make_pod());
  review["request"].erase("object");
  EXPECT_TRUE(parse_review(review.dump(), 100).value().object->is_null());
}

TEST(AdmissionReview, WritesOnlyWhatThereIs) {
  EXPECT_EQ(write_review({"u", {}, {}}),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}})");
  EXPECT_EQ(write_review({"u", {{"/a", "1"}}, {"w"}}),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true,)"
            R"("patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d","warnings":["w"]}})");
}

TEST(AdmissionReview, TextThatIsNoUtf8CannotBreakTheAnswer) {
  EXPECT_TRUE(nlohmann::json::accept(write_review({"u", {}, {"bad \xff byte"}})));
}

}  // namespace
}  // namespace nezha::k8s
