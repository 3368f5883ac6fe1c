# Every third-party library, named once. A library has one home: test/tidy checks the includes.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)             # Outcome: src/base; Asio: src/net; Beast: src/http
find_package(OpenSSL 3 REQUIRED)              # src/net (TLS), src/s3 (signing), src/pki, src/k8s, webhook
find_package(nlohmann_json 3.11 REQUIRED)     # src/k8s, src/s3, webhook
find_package(yaml-cpp 0.7 REQUIRED)           # src/config, cli (manifests)
find_package(spdlog REQUIRED)                 # src/obs
find_package(prometheus-cpp REQUIRED)         # src/obs
find_package(PkgConfig REQUIRED)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares)          # src/net
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)        # cache
pkg_check_modules(PUGIXML REQUIRED IMPORTED_TARGET pugixml)        # src/s3
pkg_check_modules(PMEM REQUIRED IMPORTED_TARGET libpmem)           # cache/tier
find_library(HTTPLIB_LIBRARY NAMES cpp-httplib REQUIRED)            # webhook, cache/admin, src/k8s
add_library(httplib::httplib UNKNOWN IMPORTED)
set_target_properties(httplib::httplib PROPERTIES IMPORTED_LOCATION ${HTTPLIB_LIBRARY})
target_compile_definitions(httplib::httplib INTERFACE
  CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
target_link_libraries(httplib::httplib INTERFACE OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
find_package(CLI11 REQUIRED)                  # main.cc of each program
if(NEZHA_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
