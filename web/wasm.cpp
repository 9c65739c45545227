// The page's WebAssembly module: answer(request, progress, so_far) for JavaScript (worker.js).
#include <emscripten/bind.h>

#include "web/answers.hpp"

namespace {

std::string answer(const std::string& request, emscripten::val progress, emscripten::val so_far) {
  return attnsim::web::answer(
      request, {.progress =
                    [&](std::size_t done, std::size_t wanted) {
                      progress(static_cast<double>(done), static_cast<double>(wanted));
                    },
                .so_far = [&](const std::string& answer) { so_far(answer); }});
}

}  // namespace

EMSCRIPTEN_BINDINGS(attnsim) {
  emscripten::function("answer", &answer);
}
