#include "test/support/fake_api_server.h"

#include <httplib.h>
#include <openssl/pem.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "nezha/base/check.h"

namespace nezha::test {
namespace {

using Json = nlohmann::json;

constexpr int kThreads = 64;  // every open watch holds one
constexpr std::chrono::seconds kWaitMax{20};

struct LogEntry {
  uint64_t version;
  std::string type;
  std::string path;
  Json object;
};

std::string collection_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// ".../namespaces/NS/KIND" matches a list of that namespace, and of all namespaces (".../KIND").
bool in_collection(const std::string& object_path, const std::string& list_path) {
  const std::string collection = collection_of(object_path);
  if (collection == list_path) return true;
  const size_t namespaces = collection.find("/namespaces/");
  if (namespaces == std::string::npos) return false;
  const size_t kind = collection.rfind('/');
  return collection.substr(0, namespaces) + collection.substr(kind) == list_path;
}

struct Selection {
  std::string name;                           // metadata.name, empty: any
  std::map<std::string, std::string> labels;  // equality only

  explicit Selection(const httplib::Request& request) {
    const std::string fields = request.get_param_value("fieldSelector");
    if (fields.starts_with("metadata.name=")) name = fields.substr(14);
    const std::string label = request.get_param_value("labelSelector");
    const size_t equals = label.find('=');
    if (equals != std::string::npos) labels[label.substr(0, equals)] = label.substr(equals + 1);
  }

  bool holds(const Json& object) const {
    const Json& metadata = object.at("metadata");
    if (!name.empty() && metadata.value("name", "") != name) return false;
    for (const auto& [key, value] : labels) {
      if (!metadata.contains("labels") || metadata.at("labels").value(key, "") != value) return false;
    }
    return true;
  }
};

std::string status_json(int code, const std::string& message) {
  Json status{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"}, {"message", message}, {"code", code}};
  if (message.ends_with("already exists")) status["reason"] = "AlreadyExists";
  return status.dump();
}

std::unique_ptr<httplib::Server> make_tls_server(const std::string& certificate_pem, const std::string& key_pem) {
  BIO* certificate_bio = BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size()));
  BIO* key_bio = BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size()));
  X509* certificate = PEM_read_bio_X509(certificate_bio, nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  auto server = std::make_unique<httplib::SSLServer>(certificate, key);
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(certificate_bio);
  BIO_free(key_bio);
  return server;
}

}  // namespace

class FakeApiServer::Impl {
 public:
  explicit Impl(std::unique_ptr<httplib::Server> server, bool tls) : server_(std::move(server)), tls_(tls) {
    server_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_->set_tcp_nodelay(true);
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    };
    server_->Get(".*", handle).Post(".*", handle).Put(".*", handle).Patch(".*", handle).Delete(".*", handle);
    port_ = server_->bind_to_any_port("127.0.0.1");
    NEZHA_CHECK(port_ > 0, "no free port on loopback");
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    server_->stop();
    thread_.join();
  }

  k8s::ApiServer address() const {
    return {.url = std::string(tls_ ? "https" : "http") + "://127.0.0.1:" + std::to_string(port_),
            .token_file = {},
            .ca_file = {}};
  }

  std::string put(const std::string& path, Json object) {
    std::lock_guard lock(mutex_);
    return store(path, std::move(object));
  }

  void remove(const std::string& path) {
    std::lock_guard lock(mutex_);
    erase(path);
  }
  // REQUIRES: mutex_ held.
  void erase(const std::string& path) {
    const auto found = objects_.find(path);
    if (found == objects_.end()) return;
    Json object = found->second;
    objects_.erase(found);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    log("DELETED", path, std::move(object));
  }

  std::optional<std::string> get(const std::string& path) const {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    return found == objects_.end() ? std::nullopt : std::optional(found->second.dump());
  }

  std::vector<std::string> paths_under(const std::string& prefix) const {
    std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& [path, object] : objects_) {
      if (path.starts_with(prefix)) out.push_back(path);
    }
    return out;
  }

  void with_lock(const std::function<void(Impl&)>& change) {
    std::lock_guard lock(mutex_);
    change(*this);
    changed_.notify_all();
  }

  bool wait_until(const std::function<bool()>& holds) const {
    const auto deadline = std::chrono::steady_clock::now() + kWaitMax;
    while (!holds()) {
      std::unique_lock lock(mutex_);
      // Also asked again now and then: what the caller waits for may happen in its own code after our last event.
      changed_.wait_for(lock, std::chrono::milliseconds(20));
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  FaultRule faults_;
  std::vector<SeenRequest> requests_;
  std::map<std::string, Json> objects_;
  std::vector<LogEntry> history_;
  uint64_t version_ = 100;
  uint64_t forgotten_ = 0;    // watches from a version below this get 410
  uint64_t watch_epoch_ = 0;  // a watch ends when this moves on
  bool end_by_cut_ = false;
  std::vector<std::string> raw_;  // bytes for every watch that is open
  bool events_dropped_ = false;
  size_t open_watches_ = 0;
  bool closing_ = false;

 private:
  // REQUIRES: mutex_ held, as everything below that touches the store.
  std::string store(const std::string& path, Json object) {
    const bool known = objects_.count(path) != 0;
    Json& metadata = object["metadata"];
    metadata["resourceVersion"] = std::to_string(++version_);
    metadata["uid"] = known ? objects_[path]["metadata"]["uid"] : Json("uid-" + std::to_string(version_));
    metadata["name"] = path.substr(path.rfind('/') + 1);
    const size_t at = path.find("/namespaces/");
    if (at != std::string::npos) metadata["namespace"] = path.substr(at + 12, path.find('/', at + 12) - at - 12);
    objects_[path] = object;
    log(known ? "MODIFIED" : "ADDED", path, std::move(object));
    return std::to_string(version_);
  }

  void log(const char* type, const std::string& path, Json object) {
    if (!events_dropped_) history_.push_back({version_, type, path, std::move(object)});
    changed_.notify_all();
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    SeenRequest seen{request.method,
                     request.path,
                     request.target,
                     request.body,
                     request.get_header_value("Authorization"),
                     request.get_header_value("Content-Type"),
                     request.has_param("watch")};
    std::unique_lock lock(mutex_);
    requests_.push_back(seen);
    changed_.notify_all();
    const auto fault = faults_ ? faults_(seen) : std::nullopt;
    if (fault && !fault->after) return fail_with(*fault, response);
    if (seen.watch) return start_watch(request, response);
    perform(request, response);
    if (fault) fail_with(*fault, response);
  }

  static void fail_with(const Fault& fault, httplib::Response& response) {
    response.status = fault.status;
    const std::string body = fault.body.empty() ? status_json(fault.status, "a scripted failure") : fault.body;
    if (!fault.cut) return response.set_content(body, "application/json");
    response.set_content_provider(body.size() + 100, "application/json",
                                  [body](size_t offset, size_t, httplib::DataSink& sink) {
                                    if (offset == 0) sink.write(body.data(), body.size());
                                    return offset == 0;
                                  });
  }

  void perform(const httplib::Request& request, httplib::Response& response) {
    if (request.method == "POST") return create(request, response);
    const auto found = objects_.find(request.path);
    if (found == objects_.end()) {
      if (request.method == "GET" && is_collection(request.path)) return list(request, response);
      return refuse(response, 404, request.path + " not found");
    }
    if (request.method == "GET") return response.set_content(found->second.dump(), "application/json");
    if (request.method == "PUT") return update(request, found->second, response);
    if (request.method == "DELETE") return remove(request, found->second, response);
    if (request.method == "PATCH") return patch(request, found->second, response);
    refuse(response, 405, "not supported here");
  }

  // Kinds are plural; the object names of these tests hold a dash or no plural kind's name.
  static bool is_collection(const std::string& path) {
    const std::string last = path.substr(path.rfind('/') + 1);
    return last == "configmaps" || last == "secrets" || last == "services" || last == "events" || last == "pods" ||
           last == "namespaces" || last == "mutatingwebhookconfigurations";
  }

  static void refuse(httplib::Response& response, int code, const std::string& message) {
    response.status = code;
    response.set_content(status_json(code, message), "application/json");
  }

  void create(const httplib::Request& request, httplib::Response& response) {
    Json object = Json::parse(request.body, nullptr, false);
    if (!object.is_object()) return refuse(response, 400, "no JSON object");
    const std::string path = request.path + "/" + object["metadata"].value("name", "");
    if (objects_.count(path) != 0) return refuse(response, 409, path + " already exists");
    store(path, std::move(object));
    response.status = 201;
    response.set_content(objects_[path].dump(), "application/json");
  }

  void update(const httplib::Request& request, const Json& current, httplib::Response& response) {
    Json object = Json::parse(request.body, nullptr, false);
    if (!object.is_object()) return refuse(response, 400, "no JSON object");
    const std::string wanted = object["metadata"].value("resourceVersion", "");
    if (!wanted.empty() && wanted != current["metadata"]["resourceVersion"].get<std::string>()) {
      return refuse(response, 409, "the object has been modified");
    }
    if (object == current) return response.set_content(current.dump(), "application/json");  // no new version
    store(request.path, std::move(object));
    response.set_content(objects_[request.path].dump(), "application/json");
  }

  void remove(const httplib::Request& request, const Json& current, httplib::Response& response) {
    const Json options = Json::parse(request.body, nullptr, false);
    const Json preconditions = options.is_object() ? options.value("preconditions", Json::object()) : Json::object();
    const std::string wanted = preconditions.value("resourceVersion", "");
    if (!wanted.empty() && wanted != current["metadata"]["resourceVersion"].get<std::string>()) {
      return refuse(response, 409, "the object has been modified");
    }
    erase(request.path);
    response.set_content(R"({"kind":"Status","status":"Success"})", "application/json");
  }

  void patch(const httplib::Request& request, const Json& current, httplib::Response& response) {
    const Json body = Json::parse(request.body, nullptr, false);
    Json object = current;
    if (body.is_array())
      object = current.patch(body);
    else
      object.merge_patch(body);
    store(request.path, std::move(object));
    response.set_content(objects_[request.path].dump(), "application/json");
  }

  void list(const httplib::Request& request, httplib::Response& response) {
    const Selection selection(request);
    const size_t limit = std::stoul("0" + request.get_param_value("limit"));
    const size_t skip = std::stoul("0" + request.get_param_value("continue"));
    Json items = Json::array();
    size_t seen = 0;
    Json metadata{{"resourceVersion", std::to_string(version_)}};
    for (const auto& [path, object] : objects_) {
      if (!in_collection(path, request.path) || !selection.holds(object) || seen++ < skip) continue;
      if (limit != 0 && items.size() == limit) {
        metadata["continue"] = std::to_string(skip + limit);
        break;
      }
      items.push_back(object);
    }
    response.set_content(Json{{"kind", "List"}, {"metadata", metadata}, {"items", items}}.dump(), "application/json");
  }

  void start_watch(const httplib::Request& request, httplib::Response& response) {
    const uint64_t from = std::stoull("0" + request.get_param_value("resourceVersion"));
    if (from < forgotten_) return refuse(response, 410, "too old resource version");
    struct State {
      uint64_t version;
      uint64_t epoch;
      size_t raw;
    };
    auto state = std::make_shared<State>(State{from, watch_epoch_, raw_.size()});
    const std::string path = request.path;
    const Selection selection(request);
    ++open_watches_;
    changed_.notify_all();
    response.set_chunked_content_provider(
        "application/json",
        [this, state, path, selection](size_t, httplib::DataSink& sink) {
          std::unique_lock lock(mutex_);
          const std::string bytes = pending(state->version, state->raw, path, selection);
          if (!bytes.empty()) {
            lock.unlock();
            return sink.write(bytes.data(), bytes.size());
          }
          if (closing_ || state->epoch != watch_epoch_) {
            if (closing_ || end_by_cut_) return false;
            lock.unlock();
            sink.done();
            return true;
          }
          changed_.wait_for(lock, std::chrono::milliseconds(50));
          return sink.is_writable();
        },
        [this](bool) {
          std::lock_guard lock(mutex_);
          --open_watches_;
          changed_.notify_all();
        });
  }

  // What a watch that has seen `version` has to be told now.
  std::string pending(uint64_t& version, size_t& raw, const std::string& path, const Selection& selection) {
    std::string out;
    for (const LogEntry& entry : history_) {
      if (entry.version <= version) continue;
      version = entry.version;
      if (!in_collection(entry.path, path) || !selection.holds(entry.object)) continue;
      out += Json{{"type", entry.type}, {"object", entry.object}}.dump() + "\n";
    }
    for (; raw < raw_.size(); ++raw) out += raw_[raw];
    return out;
  }

  std::unique_ptr<httplib::Server> server_;
  const bool tls_;
  int port_ = 0;
  std::thread thread_;
};

FakeApiServer::FakeApiServer() : impl_(std::make_unique<Impl>(std::make_unique<httplib::Server>(), false)) {}
FakeApiServer::FakeApiServer(const std::string& certificate_pem, const std::string& key_pem)
    : impl_(std::make_unique<Impl>(make_tls_server(certificate_pem, key_pem), true)) {}
FakeApiServer::~FakeApiServer() = default;

k8s::ApiServer FakeApiServer::address() const { return impl_->address(); }
std::string FakeApiServer::put(const std::string& path, const std::string& json) {
  return impl_->put(path, Json::parse(json));
}
void FakeApiServer::remove(const std::string& path) { impl_->remove(path); }
std::optional<std::string> FakeApiServer::get(const std::string& path) const { return impl_->get(path); }
std::vector<std::string> FakeApiServer::paths_under(const std::string& prefix) const {
  return impl_->paths_under(prefix);
}
void FakeApiServer::set_faults(FaultRule rule) {
  impl_->with_lock([&](Impl& impl) { impl.faults_ = std::move(rule); });
}
void FakeApiServer::end_watches() {
  impl_->with_lock([](Impl& impl) {
    impl.end_by_cut_ = false;
    ++impl.watch_epoch_;
  });
}
void FakeApiServer::cut_watches() {
  impl_->with_lock([](Impl& impl) {
    impl.end_by_cut_ = true;
    ++impl.watch_epoch_;
  });
}
void FakeApiServer::send_raw(const std::string& bytes) {
  impl_->with_lock([&](Impl& impl) { impl.raw_.push_back(bytes); });
}
void FakeApiServer::send_bookmarks() {
  impl_->with_lock([](Impl& impl) {
    const Json object{{"kind", "ConfigMap"}, {"metadata", {{"resourceVersion", std::to_string(impl.version_)}}}};
    impl.raw_.push_back(Json{{"type", "BOOKMARK"}, {"object", object}}.dump() + "\n");
  });
}
void FakeApiServer::forget_history() {
  impl_->with_lock([](Impl& impl) {
    impl.history_.clear();
    impl.forgotten_ = ++impl.version_;
  });
}
void FakeApiServer::drop_events(bool on) {
  impl_->with_lock([on](Impl& impl) { impl.events_dropped_ = on; });
}
size_t FakeApiServer::open_watches() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->open_watches_;
}
std::vector<SeenRequest> FakeApiServer::requests() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->requests_;
}
size_t FakeApiServer::count(const std::string& method, const std::string& path_part) const {
  size_t found = 0;
  for (const SeenRequest& request : requests()) {
    found += request.method == method && request.target.find(path_part) != std::string::npos ? 1 : 0;
  }
  return found;
}
void FakeApiServer::forget_requests() {
  impl_->with_lock([](Impl& impl) { impl.requests_.clear(); });
}
bool FakeApiServer::wait_until(const std::function<bool()>& holds) const { return impl_->wait_until(holds); }

}  // namespace nezha::test
