"""Which folder may include which, and where each third-party library may be used.

The layers: base <- config, obs <- io <- net <- http <- s3 <- cache, and base <- k8s <- webhook.
"""

import re

BASE = ("base",)
GROUND = (*BASE, "config", "obs")
WIRE = (*GROUND, "io", "net", "http")

# module -> modules whose headers it may include, beside its own
ALLOWED_MODULES = {
    "base": (),
    "config": BASE,
    "obs": BASE,
    "io": GROUND,
    "net": (*GROUND, "io"),
    "http": (*GROUND, "io", "net"),
    "s3": WIRE,
    "pki": GROUND,
    "k8s": (*GROUND, "pki"),
    "webhook": (*GROUND, "pki", "k8s"),
    "cache": (*WIRE, "s3", "pki"),
    "cli": (*GROUND, "pki", "k8s", "webhook"),
    "test": (*WIRE, "s3", "pki", "k8s", "webhook", "cache", "cli"),
    "bench": (*WIRE, "s3", "pki", "k8s", "webhook", "cache", "cli"),
}

# The one door between the data plane and Kubernetes: following the configuration.
ALLOWED_ONLY_IN = {
    "nezha/k8s/configmap_watch.h": ("cache/main.cc", "cache/config_source.cc"),
    "nezha/k8s/api_server.h": ("cache/main.cc", "cache/config_source.cc"),
}

# (header pattern, path patterns of its homes)
HOMES = (
    (r"boost/outcome", (r"include/nezha/base/",)),
    (
        r"boost/asio/buffer\.hpp",
        (r"src/net/", r"include/nezha/net/", r"src/http/", r"cache/", r"test/"),
    ),  # Beast's input
    (r"boost/asio(?!/buffer\.hpp)", (r"src/net/", r"include/nezha/net/", r"cache/", r"test/")),
    (r"boost/beast", (r"src/http/", r"test/")),
    (r"boost/container/small_vector", (r"cache/index/",)),
    (r"boost/(?!outcome|asio|beast|container/small_vector)", (r"src/net/", r"src/http/")),
    (
        r"nlohmann/",
        (r"src/k8s/", r"src/s3/", r"cache/(purge|prefetch)/", r"include/nezha/k8s/", r"webhook/", r"cli/", r"test/"),
    ),
    (r"yaml-cpp/", (r"src/config/", r"cli/")),
    (r"httplib\.h", (r"src/k8s/", r"webhook/", r"cache/admin/", r"cache/prefetch/", r"test/")),
    (r"spdlog/|fmt/|prometheus/", (r"src/obs/",)),
    (r"openssl/", (r"src/net/", r"src/s3/", r"src/pki/", r"src/k8s/", r"webhook/", r"test/")),
    (r"ares", (r"src/net/",)),
    (r"xxhash", (r"cache/", r"test/")),
    (r"pugixml", (r"src/s3/",)),
    (r"libpmem", (r"cache/tier/",)),
    (r"CLI/", (r"(webhook|cache|cli)/",)),
    (r"gtest/|gmock/|rapidcheck", (r"test/",)),
    (r"benchmark/", (r"bench/",)),
)


def module_of(path):
    """`include/nezha/http/range.h`, `src/http/range.cc` -> http; `webhook/serve.h` -> webhook; else the path's top."""
    match = re.match(r"(?:include/nezha|src)/(\w+)/", path)
    return match.group(1) if match else path.split("/")[0]
