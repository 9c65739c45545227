// The page's WebAssembly module: answer(request, progress) for JavaScript (worker.js).
#include <emscripten/bind.h>

#include "web/answers.hpp"

namespace {

std::string answer(const std::string& request, emscripten::val progress) {
  return attnsim::web::answer(request, [&](std::size_t done, std::size_t wanted) {
    progress(static_cast<double>(done), static_cast<double>(wanted));
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(attnsim) {
  emscripten::function("answer", &answer);
}
