// Owners of OpenSSL's objects, and PEM text <-> those objects. Private to src/pki.
// Threads: values; OpenSSL's error queue is per thread and emptied by library_error().
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "nezha/base/clock.h"
#include "nezha/base/freer.h"
#include "nezha/base/result.h"

namespace nezha::pki {

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;
using ConstraintsPtr = std::unique_ptr<NAME_CONSTRAINTS, Freer<NAME_CONSTRAINTS_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;

// kGiveUp, with the library's own words for the last failure on this thread.
Error library_error(std::string_view what);

BioPtr reader_of(std::string_view text);
std::string text_of(BIO* memory);

// kFixInput: not PEM of that kind.
Result<CertificatePtr> parse_certificate(std::string_view pem);
Result<KeyPtr> parse_key(std::string_view pem);
Result<std::string> pem_of(X509* certificate);
Result<std::string> pem_of(EVP_PKEY* key);

WallTime wall_of(const ASN1_TIME* time);

}  // namespace nezha::pki
