// The sections for the programs themselves: `cache:`, `webhook:`, `listen:`, `resolver:`, `tls:`.
#include <set>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "src/config/names.h"
#include "src/config/sections.h"

namespace nezha::config {
namespace {

constexpr size_t kAddressesMax = 64;
constexpr uint64_t kCoresMax = 1024;
constexpr uint64_t kSidecarBytesMin = 64 * 1024 * 1024;
constexpr uint64_t kSidecarMemoryBytesMin = 128 * 1024 * 1024;

Result<TierSettings> read_tier(const View& view) {
  NEZHA_TRY(view.expect_map({"medium", "path", "size"}));
  NEZHA_TRY(const auto medium, view.require("medium", "nvme"));
  NEZHA_TRY(const auto size, view.require("size", "200Gi"));
  TierSettings tier;
  NEZHA_TRY(const auto index, medium.one_of({"memory", "pmem", "nvme"}));
  tier.medium = static_cast<Medium>(index);
  NEZHA_TRY(tier.size_bytes, size.size_bytes());
  if (tier.size_bytes < limits::kTierBytesMin) return size.error("is too small for a tier; write at least 16Mi");
  const auto path = view.find("path");
  if (tier.medium == Medium::kMemory) {
    if (path) return path->error("is not used by medium memory; remove it");
    return tier;
  }
  if (!path) return view.error("has no path; add for example path: /cache/nezha, a directory for this tier alone");
  NEZHA_TRY(tier.path, path->absolute_path());
  return tier;
}

static_assert(limits::kTierBytesMin == 16 * 1024 * 1024, "the messages name it");

Result<std::vector<TierSettings>> read_tiers(const View& view) {
  NEZHA_TRY(const auto views, view.items(limits::kTiersMax));
  std::vector<TierSettings> tiers;
  std::set<std::string> paths;
  for (const View& item : views) {
    NEZHA_TRY(auto tier, read_tier(item));
    if (!paths.insert(tier.path).second) {
      return item.error((tier.path.empty() ? "is a second memory tier" : "has the path of another tier") +
                        std::string("; give each tier a place of its own"));
    }
    tiers.push_back(std::move(tier));
  }
  return tiers;
}

// A key that is reserved: said to be so, instead of being read and used by nothing.
Result<> refuse_reserved(const View& section, std::string_view key, std::string_view advice) {
  if (const auto reserved = section.find(key))
    return reserved->error("is not supported in this version; " + std::string(advice));
  return ok();
}

Result<std::vector<ListenAddress>> read_addresses(const View& view, std::optional<uint16_t> port_default,
                                                  bool zero_allowed) {
  const auto read_one = [&](const View& item) { return item.address(port_default, zero_allowed); };
  return read_list<ListenAddress>(view, kAddressesMax, read_one);
}

Result<TlsSettings::Pair> read_pair(const View& view) {
  NEZHA_TRY(view.expect_map({"certificate", "key"}));
  NEZHA_TRY(const auto certificate, view.require("certificate", "/tls/tls.crt"));
  NEZHA_TRY(const auto key, view.require("key", "/tls/tls.key"));
  TlsSettings::Pair pair;
  NEZHA_TRY(pair.certificate_path, certificate.absolute_path());
  NEZHA_TRY(pair.key_path, key.absolute_path());
  return pair;
}

// "500m" or "2".
Result<uint32_t> read_millicores(const View& view) {
  NEZHA_TRY(const auto value, view.scalar());
  std::string_view digits = value;
  const bool milli = digits.ends_with('m');
  if (milli) digits.remove_suffix(1);
  const auto number = parse_decimal(digits);
  if (!number || *number == 0 || *number > (milli ? kCoresMax * 1000 : kCoresMax))
    return view.error(quoted(value) + " is not an amount of CPU; write for example 500m or 2");
  return static_cast<uint32_t>(milli ? *number : *number * 1000);
}

Result<> read_sidecar_resources(const View& view, SidecarSettings& sidecar) {
  NEZHA_TRY(view.expect_map({"cpu", "memory"}));
  if (const auto cpu = view.find("cpu")) {
    NEZHA_TRY(sidecar.cpu_millicores, read_millicores(*cpu));
  }
  if (const auto memory = view.find("memory")) {
    NEZHA_TRY(sidecar.memory_bytes, memory->size_bytes());
    if (sidecar.memory_bytes < kSidecarMemoryBytesMin) return memory->error("is too small; write at least 128Mi");
  }
  return ok();
}

Result<> read_name_of(const View& view, const char* kind, std::string& into) {
  NEZHA_TRY(into, view.text());
  if (!is_dns1123_subdomain(into)) return view.error(quoted(into) + " is not the name of a " + kind);
  return ok();
}

// What only a volume that is made for the pod has.
Result<> read_ephemeral_volume(const View& view, SidecarSettings& sidecar) {
  for (const char* key : {"storageClass", "snapshot", "medium"}) {
    const auto found = view.find(key);
    if (found && sidecar.volume != SidecarSettings::Volume::kEphemeral)
      return found->error("is for volume: ephemeral; add that, or remove this");
  }
  if (const auto storage_class = view.find("storageClass")) {
    NEZHA_TRY(read_name_of(*storage_class, "StorageClass", sidecar.storage_class));
  }
  if (const auto snapshot = view.find("snapshot")) {
    NEZHA_TRY(read_name_of(*snapshot, "VolumeSnapshot", sidecar.snapshot));
  }
  if (const auto medium = view.find("medium")) {
    NEZHA_TRY(const auto index, medium->one_of({"nvme", "pmem"}));
    sidecar.medium = index == 0 ? Medium::kNvme : Medium::kPmem;
  }
  return ok();
}

Result<SidecarSettings> read_sidecar(const View& view) {
  NEZHA_TRY(view.expect_map({"image", "size", "volume", "storageClass", "snapshot", "medium", "resources"}));
  SidecarSettings sidecar;
  NEZHA_TRY(const auto image, view.require("image", "registry.example.org/nezha-cache:0.1.0"));
  NEZHA_TRY(sidecar.image, image.text());
  if (sidecar.image.find_first_of(" \t\r\n") != std::string::npos)
    return image.error(quoted(sidecar.image) + " is not the name of an image; remove the blanks");
  if (const auto size = view.find("size")) {
    NEZHA_TRY(sidecar.size_bytes, size->size_bytes());
    if (sidecar.size_bytes < kSidecarBytesMin) return size->error("is too small; write at least 64Mi");
  }
  if (const auto volume = view.find("volume")) {
    NEZHA_TRY(const auto index, volume->one_of({"emptyDir", "memory", "ephemeral"}));
    sidecar.volume = static_cast<SidecarSettings::Volume>(index);
  }
  NEZHA_TRY(read_ephemeral_volume(view, sidecar));
  if (const auto resources = view.find("resources")) {
    NEZHA_TRY(read_sidecar_resources(*resources, sidecar));
  }
  return sidecar;
}

}  // namespace

Result<CacheSettings> read_cache(const View& top) {
  CacheSettings cache;
  const auto section = top.find("cache");
  if (!section) return cache;
  NEZHA_TRY(section->expect_map({"memory", "tiers", "credentialsDirectory"}));
  if (const auto memory = section->find("memory")) {
    NEZHA_TRY(cache.memory_bytes, memory->size_bytes());
  }
  if (const auto tiers = section->find("tiers")) {
    NEZHA_TRY(cache.tiers, read_tiers(*tiers));
  }
  if (const auto directory = section->find("credentialsDirectory")) {
    NEZHA_TRY(cache.credentials_directory, directory->absolute_path());
  }
  if (cache.tiers.empty() && cache.memory_bytes != 0 && cache.memory_bytes / 2 < limits::kTierBytesMin) {
    return section->find("memory")->error(
        "is too small, because half of it is the only tier; write at least 32Mi, or list cache.tiers");
  }
  return cache;
}

Result<WebhookSettings> read_webhook(const View& top) {
  WebhookSettings webhook;
  const auto section = top.find("webhook");
  if (!section) return webhook;
  NEZHA_TRY(section->expect_map({"cacheAddress", "cacheTlsAddress", "trust", "sidecar"}));
  if (const auto address = section->find("cacheAddress")) {
    NEZHA_TRY(webhook.cache_address, address->ip());
  }
  if (const auto address = section->find("cacheTlsAddress")) {
    NEZHA_TRY(webhook.cache_tls_address, address->ip());
  }
  if (const auto trust = section->find("trust")) {
    NEZHA_TRY(const auto index, trust->one_of({"false", "true"}));
    webhook.trust = index == 1;
  }
  if (const auto sidecar = section->find("sidecar")) {
    NEZHA_TRY(webhook.sidecar, read_sidecar(*sidecar));
  }
  return webhook;
}

Result<ListenSettings> read_listen(const View& top) {
  ListenSettings listen;
  const auto section = top.find("listen");
  if (!section) return listen;
  NEZHA_TRY(section->expect_map({"http", "https", "relay", "admin", "adminTokenFile"}));
  if (const auto http = section->find("http")) {
    NEZHA_TRY(listen.http, read_addresses(*http, std::nullopt, true));
  }
  if (const auto https = section->find("https")) {
    NEZHA_TRY(listen.https, read_addresses(*https, std::nullopt, true));
  }
  if (const auto relay = section->find("relay")) {
    NEZHA_TRY(listen.relay, read_addresses(*relay, std::nullopt, true));
  }
  if (const auto admin = section->find("admin")) {
    NEZHA_TRY(listen.admin, admin->address(std::nullopt, true));
  }
  if (const auto token = section->find("adminTokenFile")) {
    NEZHA_TRY(listen.admin_token_path, token->absolute_path());
    if (!listen.admin) return token->error("is for listen.admin, which is not there; add it or remove this");
  }
  return listen;
}

Result<std::vector<ListenAddress>> read_resolver(const View& top) {
  const auto section = top.find("resolver");
  if (!section) return std::vector<ListenAddress>();
  NEZHA_TRY(section->expect_map({"servers"}));
  NEZHA_TRY(const auto servers, section->require("servers", "[\"10.96.0.10:53\"]"));
  constexpr uint16_t kDnsPort = 53;
  NEZHA_TRY(auto addresses, read_addresses(servers, kDnsPort, false));
  if (addresses.empty()) return servers.error("is empty; list a server, or remove resolver to use /etc/resolv.conf");
  return addresses;
}

Result<TlsSettings> read_tls(const View& top) {
  TlsSettings tls;
  const auto section = top.find("tls");
  if (!section) return tls;
  NEZHA_TRY(refuse_reserved(*section, "ca", "remove it and list the hosts' certificates in tls.certificates"));
  NEZHA_TRY(section->expect_map({"certificates", "directory"}));
  if (const auto certificates = section->find("certificates")) {
    NEZHA_TRY(tls.certificates, read_list<TlsSettings::Pair>(*certificates, limits::kCertificatesMax, read_pair));
  }
  if (const auto directory = section->find("directory")) {
    NEZHA_TRY(tls.directory, directory->absolute_path());
  }
  return tls;
}

}  // namespace nezha::config
