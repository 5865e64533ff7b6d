/* Moves many pages at once, as a server of models does with its cache: a list that is prepared
 * once, requests for parts of it, and one loop that waits for all of them by poll(2).
 *
 *     example-plan            # two engines of this process
 *
 * Exit status: 0: the pages are right; 1: an error. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <slime/slime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES = 256, PAGE = 16384, PARTS = 4, BYTES = PAGES * PAGE };

static void must(int status, const char* call) {
  if (status == SLIME_OK) return;
  fprintf(stderr, "%s: %s\n", call, slime_last_error());
  exit(1);
}

/* One part of the plan: every PARTS-th page. */
struct part {
  uint32_t indices[PAGES / PARTS];
  int number;
};

static void start(slime_engine* engine, slime_plan plan, struct part* part, int number) {
  slime_extra extra = SLIME_EXTRA_INIT;
  slime_request request;
  uint32_t i;
  part->number = number;
  for (i = 0; i < PAGES / PARTS; ++i) part->indices[i] = i * PARTS + (uint32_t)number;
  extra.flags = SLIME_COMPLETES | SLIME_BORROW; /* `part` stays as it is */
  extra.user = part;
  must(slime_start(engine, plan, SLIME_READ, part->indices, PAGES / PARTS, &extra, &request),
       "slime_start");
}

/* Waits for anything, and returns how many requests have ended. */
static int complete(slime_engine* engine, int descriptor) {
  slime_completion ended[8];
  size_t count = 8, i;
  struct pollfd readable;
  readable.fd = descriptor;
  readable.events = POLLIN;
  if (poll(&readable, 1, 60000) != 1) exit(1);
  must(slime_completed(engine, ended, &count), "slime_completed");
  for (i = 0; i < count; ++i) {
    const struct part* const part = ended[i].user;
    if (ended[i].status != SLIME_OK) {
      fprintf(stderr, "part %d: %s\n", part->number, ended[i].text);
      exit(1);
    }
  }
  return (int)count;
}

int main(void) {
  slime_engine *here = NULL, *there = NULL;
  slime_peer peer;
  slime_region mine, theirs;
  slime_remote remote;
  slime_plan plan;
  char address[SLIME_ADDRESS_BYTES], region[SLIME_REGION_BYTES];
  size_t address_bytes = sizeof address;
  static slime_assignment list[PAGES];
  static struct part parts[PARTS];
  char *cache = malloc(BYTES), *other_cache = malloc(BYTES);
  int descriptor, i, ended = 0, right = 0;
  if (cache == NULL || other_cache == NULL) return 1;
  memset(cache, 0, BYTES);
  for (i = 0; i < PAGES; ++i) memset(other_cache + i * PAGE, i + 1, PAGE);
  must(slime_open(NULL, &here), "slime_open");
  must(slime_open(NULL, &there), "slime_open");
  must(slime_register(here, cache, BYTES, NULL, &mine), "slime_register");
  must(slime_register(there, other_cache, BYTES, NULL, &theirs), "slime_register");
  must(slime_address(there, address, &address_bytes), "slime_address");
  must(slime_advertise(there, theirs, region), "slime_advertise");
  must(slime_add_peer(here, address, address_bytes, &peer), "slime_add_peer");
  must(slime_import(here, peer, region, &remote), "slime_import");
  must(slime_event_fd(here, SLIME_EVENT_COMPLETED, &descriptor), "slime_event_fd");
  for (i = 0; i < PAGES; ++i) { /* page i here is the i-th from the end there */
    const slime_assignment page = {mine, remote, (uint64_t)i * PAGE,
                                   (uint64_t)(PAGES - 1 - i) * PAGE, PAGE};
    list[i] = page;
  }
  must(slime_prepare(here, peer, list, PAGES, &plan), "slime_prepare");
  for (i = 0; i < PARTS; ++i) start(here, plan, &parts[i], i);
  while (ended < PARTS) ended += complete(here, descriptor);
  for (i = 0; i < PAGES; ++i) {
    right += memcmp(cache + i * PAGE, other_cache + (PAGES - 1 - i) * PAGE, PAGE) == 0;
  }
  printf("%d of %d pages are right\n", right, (int)PAGES);
  slime_release(here, plan);
  slime_close(here);
  slime_close(there);
  free(cache);
  free(other_cache);
  return right == PAGES ? 0 : 1;
}
