#include "webhook/connections.h"

#include <sys/socket.h>

#include "nezha/base/check.h"

namespace nezha::webhook {

// OpenSSL frees a connection before the server closes its socket, so a descriptor in the map is never a stale one.
int OpenConnections::free_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &OpenConnections::on_free);
  NEZHA_CHECK(index >= 0, "OpenSSL has no memory for its extra data");
  return index;
}

void OpenConnections::watch(SSL_CTX& context) {
  free_index();
  SSL_CTX_set_app_data(&context, this);
  SSL_CTX_set_info_callback(&context, &OpenConnections::on_state);
}

void OpenConnections::on_state(const SSL* connection, int where, int) {
  auto* self = static_cast<OpenConnections*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection)));
  if (where & SSL_CB_HANDSHAKE_START) self->opened(const_cast<SSL*>(connection));
  if (where & SSL_CB_HANDSHAKE_DONE) self->move(connection, State::kHandshake, State::kIdle);
}

void OpenConnections::on_free(void* connection, void* self, CRYPTO_EX_DATA*, int, long, void*) {
  if (!self) return;  // a connection of someone else in this process
  auto& connections = *static_cast<OpenConnections*>(self);
  std::lock_guard lock(connections.mutex_);
  connections.connections_.erase(connection);
}

void OpenConnections::opened(SSL* connection) {
  if (SSL_get_ex_data(connection, free_index())) return;  // a later handshake message of the same connection
  SSL_set_ex_data(connection, free_index(), this);
  std::lock_guard lock(mutex_);
  connections_[connection].descriptor = SSL_get_fd(connection);
}

void OpenConnections::move(const SSL* connection, State from, State to) {
  std::lock_guard lock(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end() || found->second.state != from) return;
  found->second.state = to;
  found->second.idle_since = ++ticks_;
  if (to != State::kIdle || rooms_owed_ == 0) return;
  --rooms_owed_;
  end(found->second);
}

void OpenConnections::begin_request(const SSL* connection) { move(connection, State::kIdle, State::kBusy); }
void OpenConnections::end_request(const SSL* connection) { move(connection, State::kBusy, State::kIdle); }

// An ending connection counts as busy, so that it is not chosen again.
void OpenConnections::end(Connection& connection) {
  connection.state = State::kBusy;
  ::shutdown(connection.descriptor, SHUT_RD);
}

void OpenConnections::close_after_this(const SSL* connection) {
  // What the client has sent beyond the answered request is not read: to the TLS layer it has said goodbye.
  SSL_set_shutdown(const_cast<SSL*>(connection), SSL_RECEIVED_SHUTDOWN);
  std::lock_guard lock(mutex_);
  const auto found = connections_.find(connection);
  if (found != connections_.end()) end(found->second);
}

void OpenConnections::make_room() {
  std::lock_guard lock(mutex_);
  Connection* longest = nullptr;
  for (auto& [connection, entry] : connections_)
    if (entry.state == State::kIdle && (!longest || entry.idle_since < longest->idle_since)) longest = &entry;
  if (longest)
    end(*longest);
  else
    ++rooms_owed_;
}

void OpenConnections::close_idle() {
  std::lock_guard lock(mutex_);
  for (auto& [connection, entry] : connections_)
    if (entry.state == State::kIdle) end(entry);
}

}  // namespace nezha::webhook
