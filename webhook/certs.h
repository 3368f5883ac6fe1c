// Where the admission server's certificate comes from: a value that the controller sets, or two files.
// Input: KeyPair or paths -> CertificateSource. It makes no certificate and checks no chain.
// Threads: any; current() takes a short lock and does no I/O.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "nezha/base/result.h"
#include "webhook/certificate_source.h"
#include "webhook/file_version.h"

namespace nezha::webhook {

// Holds the pair in force. set() keeps the pointer when the pair is the same.
class LiveCertificate final : public CertificateSource {
 public:
  std::shared_ptr<const KeyPair> current() const override;
  void set(KeyPair pair);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const KeyPair> pair_;
};

// Follows two PEM files, as cert-manager or a person writes them. A pair that does not fit together, as seen while
// only one of the files is new, leaves the last good pair in force.
class FileCertificate final : public CertificateSource {
 public:
  FileCertificate(std::string certificate_path, std::string key_path)
      : certificate_path_(std::move(certificate_path)), key_path_(std::move(key_path)) {}

  std::shared_ptr<const KeyPair> current() const override { return live_.current(); }

  // Reads the files when one of them changed since they were last read; true: a new pair is in force. Failures name
  // the file; each is told once per change. Called by one thread, now and then.
  [[nodiscard]] Result<bool> refresh();

 private:
  const std::string certificate_path_;
  const std::string key_path_;
  std::optional<std::pair<FileVersion, FileVersion>> seen_;
  LiveCertificate live_;
};

}  // namespace nezha::webhook
