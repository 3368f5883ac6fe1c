// Named<Tag, T>: a value with a type of its own, so that things that could be swapped stop compiling.
// Costs nothing at run time; comparable and hashable; get() gives the plain value.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace nezha {

template <class Tag, class T>
class Named {
 public:
  using value_type = T;
  Named() = default;
  explicit Named(T value) : value_(std::move(value)) {}
  const T& get() const { return value_; }
  friend auto operator<=>(const Named&, const Named&) = default;
  friend bool operator==(const Named&, const Named&) = default;

 private:
  T value_{};
};

using HostName = Named<struct HostNameTag, std::string>;          // lower-case DNS name, no port
using UpstreamName = Named<struct UpstreamNameTag, std::string>;  // `upstreams[].name`
using RuleName = Named<struct RuleNameTag, std::string>;          // `injection[].name`
using IpAddress = Named<struct IpAddressTag, std::string>;        // textual IPv4 or IPv6, canonical form
using Namespace = Named<struct NamespaceTag, std::string>;        // a Kubernetes namespace

}  // namespace nezha

template <class Tag, class T>
struct std::hash<nezha::Named<Tag, T>> {
  size_t operator()(const nezha::Named<Tag, T>& named) const { return std::hash<T>{}(named.get()); }
};
