// The registration: what is wanted of it, that a second pass changes nothing, and words for what is wrong.
#include "webhook/controller/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nezha/pki/base64.h"
#include "nezha/pki/certificates.h"
#include "test/unit/webhook_controller/registration_fixture.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Namespace kRelease("nezha-system");

std::string make_ca() {
  const WallTime start = std::chrono::system_clock::from_time_t(1'800'000'000);
  return pki::make_ca("test", {start, start + std::chrono::hours(1)}).value().certificate_pem;
}

WantedSelector wanted_selector() {
  WantedSelector wanted;
  wanted.selector.match_labels["app"] = "train";
  wanted.everywhere = true;
  return wanted;
}

WantedRegistration wanted_with(std::vector<std::string> cas) {
  return {.cas = std::move(cas), .selectors = {}, .kept = {}, .always_excluded = {Namespace("kube-system"), kRelease}};
}

Json live() { return Json::parse(test::kRegistration); }

TEST(Registration, BundleGoesIntoEveryEntryAndNothingElseChanges) {
  const std::string a = make_ca(), b = make_ca();
  Json desired = desired_registration(live(), wanted_with({a, b}));
  EXPECT_EQ(registered_cas(desired), (std::set<std::string>{a, b}));
  for (Json& entry : desired["webhooks"]) {
    EXPECT_EQ(pki::base64_decode(entry["clientConfig"]["caBundle"].get<std::string>()).value(), a + b);
    entry["clientConfig"].erase("caBundle");
  }
  EXPECT_EQ(desired, live());
}

TEST(Registration, SecondPassChangesNothing) {
  WantedRegistration wanted = wanted_with({make_ca()});
  wanted.selectors["selector-1.nezha.io"] = wanted_selector();
  const Json once = desired_registration(live(), wanted);
  EXPECT_EQ(once["webhooks"].size(), 3u);
  EXPECT_EQ(desired_registration(once, wanted), once);
}

TEST(Registration, OnlyWhatEveryEntryTrustsIsRegistered) {
  const std::string a = make_ca();
  Json partial = desired_registration(live(), wanted_with({a}));
  partial["webhooks"][1]["clientConfig"].erase("caBundle");
  EXPECT_THAT(registered_cas(partial), IsEmpty());
  EXPECT_THAT(registered_cas(live()), IsEmpty());
  EXPECT_THAT(registered_cas(Json::object()), IsEmpty());
}

TEST(Registration, SelectorEntriesAreAddedRepairedKeptAndDropped) {
  WantedRegistration wanted = wanted_with({make_ca()});
  wanted.selectors["selector-1.nezha.io"] = wanted_selector();
  Json with_entry = desired_registration(live(), wanted);
  EXPECT_THAT(selector_entries(with_entry), ElementsAre("selector-1.nezha.io"));
  Json drifted = with_entry;
  drifted["webhooks"][2]["failurePolicy"] = "Fail";
  drifted["webhooks"][2]["objectSelector"] = Json::object();
  EXPECT_EQ(desired_registration(drifted, wanted), with_entry);
  wanted.selectors.clear();
  wanted.kept = {"selector-1.nezha.io"};
  EXPECT_EQ(desired_registration(with_entry, wanted), with_entry);
  wanted.kept.clear();
  EXPECT_THAT(selector_entries(desired_registration(with_entry, wanted)), IsEmpty());
}

TEST(Registration, FollowsAChangedStaticEntry) {
  WantedRegistration wanted = wanted_with({make_ca()});
  wanted.selectors["selector-1.nezha.io"] = wanted_selector();
  Json changed = desired_registration(live(), wanted);
  changed["webhooks"][0]["timeoutSeconds"] = 3;
  EXPECT_EQ(desired_registration(changed, wanted)["webhooks"][2]["timeoutSeconds"], 3);
}

TEST(Registration, WithoutThePodEntryNothingIsAddedOrDropped) {
  WantedRegistration wanted = wanted_with({make_ca()});
  wanted.selectors["selector-1.nezha.io"] = wanted_selector();
  Json stripped = desired_registration(live(), wanted);
  stripped["webhooks"].erase(0);
  EXPECT_EQ(desired_registration(stripped, wanted), stripped);
  Json none = live();
  none.erase("webhooks");
  EXPECT_EQ(desired_registration(none, wanted), none);
}

TEST(RegistrationProblems, NoneWhenAllIsWell) {
  const std::string ca = make_ca();
  EXPECT_THAT(registration_problems(desired_registration(live(), wanted_with({ca})), "nezha-webhook", kRelease, ca),
              IsEmpty());
}

TEST(RegistrationProblems, EachInWords) {
  const std::string ca = make_ca();
  EXPECT_THAT(registration_problems(live(), "nezha-webhook", kRelease, ca),
              ElementsAre(HasSubstr("entry pod.nezha.io has an empty caBundle"),
                          HasSubstr("entry namespace.nezha.io has an empty caBundle")));
  const Json good = desired_registration(live(), wanted_with({ca}));
  EXPECT_THAT(registration_problems(good, "nezha-webhook", kRelease, make_ca()),
              ElementsAre(HasSubstr("trusts another CA"), HasSubstr("trusts another CA")));
  EXPECT_THAT(registration_problems(good, "other", kRelease, ca)[0],
              HasSubstr("calls the Service nezha-system/nezha-webhook and not ours, nezha-system/other"));
  EXPECT_THAT(registration_problems(Json::object(), "nezha-webhook", kRelease, ca),
              ElementsAre(HasSubstr("has no entry pod.nezha.io")));
}

TEST(Registration, OddContentsAreNoCrash) {
  for (const char* text : {R"({"webhooks":7})", R"({"webhooks":[7,null,"x",[]]})", R"({"webhooks":[{"name":7}]})",
                           R"({"webhooks":[{"name":"pod.nezha.io","clientConfig":7}]})",
                           R"({"webhooks":[{"name":"pod.nezha.io","clientConfig":{"service":7,"caBundle":7}}]})",
                           R"({"webhooks":[{"name":"pod.nezha.io","clientConfig":{"caBundle":"%%%"}}]})"}) {
    const Json odd = Json::parse(text);
    WantedRegistration wanted = wanted_with({make_ca()});
    (void)desired_registration(odd, wanted);
    EXPECT_THAT(registered_cas(odd), IsEmpty());
    (void)registration_problems(odd, "s", kRelease, "ca");
  }
}

}  // namespace
}  // namespace nezha::webhook
