// Freer: the deleter of a C library's objects, for std::unique_ptr: `std::unique_ptr<SSL, Freer<SSL_free>>`.
// Threads: a value without state.
#pragma once

namespace nezha {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

}  // namespace nezha
