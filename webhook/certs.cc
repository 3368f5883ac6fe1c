#include "webhook/certs.h"

#include "nezha/pki/certificates.h"

namespace nezha::webhook {
namespace {
constexpr uint64_t kFileBytesMax = 1024 * 1024;
}

std::shared_ptr<const KeyPair> LiveCertificate::current() const {
  std::lock_guard lock(mutex_);
  return pair_;
}

void LiveCertificate::set(KeyPair pair) {
  std::lock_guard lock(mutex_);
  if (pair_ && pair_->certificate_pem == pair.certificate_pem && pair_->key_pem == pair.key_pem) return;
  pair_ = std::make_shared<const KeyPair>(std::move(pair));
}

Result<bool> FileCertificate::refresh() {
  const std::pair versions(file_version(certificate_path_), file_version(key_path_));
  if (versions == seen_) return false;
  seen_ = versions;
  pki::Identity pair;
  NEZHA_TRY(pair.certificate_pem, read_file(certificate_path_, kFileBytesMax));
  NEZHA_TRY(pair.key_pem, read_file(key_path_, kFileBytesMax));
  if (const auto fits = pki::check_pair(pair); !fits) {
    return fail(Remedy::kFixInput, certificate_path_ + " and " + key_path_ + ": " + fits.error().message);
  }
  live_.set({pair.certificate_pem, pair.key_pem});
  return true;
}

}  // namespace nezha::webhook
