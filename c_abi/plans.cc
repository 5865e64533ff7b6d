// Reads and writes of include/slime/slime.h: lists, plans and pages.
#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

static_assert(sizeof(slime_assignment) == sizeof(Assignment));
static_assert(offsetof(slime_assignment, local) == offsetof(Assignment, local));
static_assert(offsetof(slime_assignment, remote) == offsetof(Assignment, remote));
static_assert(offsetof(slime_assignment, local_offset) == offsetof(Assignment, local_offset));
static_assert(offsetof(slime_assignment, remote_offset) == offsetof(Assignment, remote_offset));
static_assert(offsetof(slime_assignment, length) == offsetof(Assignment, bytes));

std::span<const Assignment> list_of(const slime_assignment* assignments, size_t count) {
  return {reinterpret_cast<const Assignment*>(assignments), count};
}

// What is wrong, or nullptr.
const char* read_move(int op, const slime_extra* extra, Opcode* opcode, Extra* known) {
  if (op != SLIME_READ && op != SLIME_WRITE) return "op is neither SLIME_READ nor SLIME_WRITE";
  *opcode = op == SLIME_READ ? Opcode::kRead : Opcode::kWrite;
  return read_extra(extra, known) ? nullptr : kWrongExtra;
}

// Returns as read_move().
const char* read_pages(const slime_pages* given, Pages* pages) {
  slime_pages known = SLIME_PAGES_INIT;
  if (given == nullptr || !read_struct(given, &known)) {
    return "pages is NULL, or pages.size is wrong: begin with SLIME_PAGES_INIT";
  }
  if (known.count > 0 && (known.local_pages == nullptr || known.remote_pages == nullptr)) {
    return "pages.local_pages or pages.remote_pages is NULL";
  }
  const auto stride = [&](uint64_t given_stride) {
    return given_stride != 0 ? given_stride : known.page_bytes;
  };
  *pages = {.local = known.local,
            .remote = known.remote,
            .bytes = known.page_bytes,
            .local_offset = known.local_offset,
            .remote_offset = known.remote_offset,
            .local_stride = stride(known.local_stride),
            .remote_stride = stride(known.remote_stride),
            .local_pages = {known.local_pages, known.count},
            .remote_pages = {known.remote_pages, known.count}};
  return nullptr;
}

}  // namespace

extern "C" {

int slime_submit(slime_engine* engine, slime_peer peer, int op, const slime_assignment* assignments,
                 size_t count, const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    if (engine == nullptr || request == nullptr || (assignments == nullptr && count > 0)) {
      return invalid("slime_submit: an argument is NULL");
    }
    Opcode opcode;
    Extra known;
    if (const char* const wrong = read_move(op, extra, &opcode, &known)) return invalid(wrong);
    return tell(engine->engine->submit(peer, opcode, list_of(assignments, count), known), request);
  });
}

int slime_prepare(slime_engine* engine, slime_peer peer, const slime_assignment* assignments,
                  size_t count, slime_plan* plan) {
  return guarded(engine, [&] {
    if (engine == nullptr || plan == nullptr || (assignments == nullptr && count > 0)) {
      return invalid("slime_prepare: an argument is NULL");
    }
    return tell(engine->engine->prepare(peer, list_of(assignments, count)), plan);
  });
}

int slime_start(slime_engine* engine, slime_plan plan, int op, const uint32_t* indices,
                size_t count, const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    if (engine == nullptr || request == nullptr) {
      return invalid("slime_start: an argument is NULL");
    }
    if (indices == nullptr && count > 0) {
      return invalid("slime_start: indices is NULL, for the whole plan, but count is not 0");
    }
    Opcode opcode;
    Extra known;
    if (const char* const wrong = read_move(op, extra, &opcode, &known)) return invalid(wrong);
    std::optional<std::span<const uint32_t>> chosen;
    if (indices != nullptr) chosen.emplace(indices, count);
    return tell(engine->engine->start(plan, opcode, chosen, known), request);
  });
}

int slime_start_pages(slime_engine* engine, slime_peer peer, int op, const slime_pages* pages,
                      const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    if (engine == nullptr || request == nullptr) {
      return invalid("slime_start_pages: an argument is NULL");
    }
    Opcode opcode;
    Extra known;
    Pages read;
    const char* wrong = read_move(op, extra, &opcode, &known);
    if (wrong == nullptr) wrong = read_pages(pages, &read);
    if (wrong != nullptr) return invalid(wrong);
    return tell(engine->engine->start_pages(peer, opcode, read, known), request);
  });
}

}  // extern "C"
