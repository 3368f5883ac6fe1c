// Result<T>: the value of a call that can fail in an expected way, and the Error that says what to do then.
//
// Three classes of failure, decided once for the whole code:
//   expected (bad input, network, full disk)  -> Result<T>, handled by the caller;
//   broken invariant                          -> NEZHA_CHECK, the process aborts;
//   bad configuration at start                -> one line on standard error and exit status 2.
// Exceptions of libraries stop at the one adapter that calls the library.
// Threads: values, no sharing. Reading the value of a failed Result aborts.
#pragma once

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>
#include <string>
#include <utility>

namespace nezha {

// What the caller may do about a failure.
enum class Remedy {
  kFixInput,    // the input is wrong and will stay wrong: tell whoever wrote it
  kAbsent,      // the thing does not exist: a normal answer, not a fault
  kRetryHere,   // transient, the same call may be repeated at once (e.g. a pooled connection that was closed)
  kRetryLater,  // transient, give up this attempt; a later one may succeed (e.g. an upstream that is down)
  kTimedOut,    // as kRetryLater, because the time for it ran out
  kGiveUp,      // permanent for this object or process (e.g. no space, corrupt data)
};

struct Error {
  Remedy remedy = Remedy::kGiveUp;
  std::string message;  // one line for a person: what, where and, if known, what to do
};

template <class T = void>
using Result = BOOST_OUTCOME_V2_NAMESPACE::basic_result<T, Error, BOOST_OUTCOME_V2_NAMESPACE::policy::terminate>;

inline auto fail(Remedy remedy, std::string message) {
  return BOOST_OUTCOME_V2_NAMESPACE::failure(Error{remedy, std::move(message)});
}
inline auto ok() { return BOOST_OUTCOME_V2_NAMESPACE::success(); }

}  // namespace nezha

// NEZHA_TRY(auto name, call()) returns the failure of call() to the caller, or names its value; NEZHA_TRY(call()) is
// for a call without a value. NEZHA_CO_TRY(auto name, …) and NEZHA_CO_DO(…) are the same inside a coroutine (Outcome's
// own one-argument form does not compile there in Boost 1.81).
#define NEZHA_TRY(...) BOOST_OUTCOME_TRY(__VA_ARGS__)
#define NEZHA_CO_TRY(...) BOOST_OUTCOME_CO_TRY(__VA_ARGS__)
#define NEZHA_CO_DO(...)                                               \
  do {                                                                 \
    auto nezha_result = (__VA_ARGS__);                                 \
    if (!nezha_result) co_return std::move(nezha_result).as_failure(); \
  } while (false)
