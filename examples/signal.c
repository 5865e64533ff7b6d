/* Counts finished pages in memory of the consumer, which reads a counter and calls nothing.
 *
 *     example-signal          # two engines of this process
 *
 * Exit status: 0: each page was whole when it was counted; 1: an error. */
#define _POSIX_C_SOURCE 200809L
#include <slime/slime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGES = 100, PAGE = 4096 };

/* What the producer writes: the pages, and how many of them are there. */
static struct {
  uint64_t count;
  unsigned char pages[PAGES][PAGE];
} shared;

static void must(int status, const char* call) {
  if (status == SLIME_OK) return;
  fprintf(stderr, "%s: %s\n", call, slime_last_error());
  exit(1);
}

static slime_request start(slime_engine* engine, slime_peer peer, slime_region mine,
                           slime_remote theirs, uint64_t page) {
  const uint64_t place = (uint64_t)((unsigned char*)shared.pages[page] - (unsigned char*)&shared);
  const slime_assignment piece = {mine, theirs, page * PAGE, place, PAGE};
  slime_request request;
  must(slime_submit(engine, peer, SLIME_WRITE, &piece, 1, NULL, &request), "slime_submit");
  return request;
}

/* Only pages that were written well are counted. A signal could also be strong, and sent at once:
 * then it comes when the requests before it have ended, but also if they have failed. */
static slime_request finish(slime_engine* engine, slime_peer peer, slime_remote theirs,
                            slime_request page) {
  slime_request request;
  must(slime_wait(engine, page, -1, NULL), "slime_wait");
  must(slime_signal(engine, peer, theirs, 0, 1, 0, NULL, &request), "slime_signal");
  return request;
}

int main(void) {
  static unsigned char source[PAGES][PAGE];
  slime_engine *producer = NULL, *consumer = NULL;
  slime_peer peer;
  slime_region mine, counted;
  slime_remote theirs;
  slime_request pages[PAGES], last = 0;
  slime_result result = SLIME_RESULT_INIT;
  char address[SLIME_ADDRESS_BYTES], region[SLIME_REGION_BYTES];
  size_t address_bytes = sizeof address;
  uint64_t page, seen, right = 0;
  const struct timespec pause = {0, 100000};
  time_t end;
  for (page = 0; page < PAGES; ++page) memset(source[page], (int)page + 1, PAGE);
  must(slime_open(NULL, &producer), "slime_open");
  must(slime_open(NULL, &consumer), "slime_open");
  must(slime_register(producer, source, sizeof source, NULL, &mine), "slime_register");
  must(slime_register(consumer, &shared, sizeof shared, NULL, &counted), "slime_register");
  must(slime_address(consumer, address, &address_bytes), "slime_address");
  must(slime_advertise(consumer, counted, region), "slime_advertise");
  must(slime_add_peer(producer, address, address_bytes, &peer), "slime_add_peer");
  must(slime_import(producer, peer, region, &theirs), "slime_import");
  for (page = 0; page < PAGES; ++page) pages[page] = start(producer, peer, mine, theirs, page);
  for (page = 0; page < PAGES; ++page) last = finish(producer, peer, theirs, pages[page]);
  end = time(NULL) + 60;
  for (seen = 0; seen < PAGES && time(NULL) < end;) { /* the consumer */
    const uint64_t count = __atomic_load_n(&shared.count, __ATOMIC_ACQUIRE);
    for (; seen < count; ++seen) right += memcmp(shared.pages[seen], source[seen], PAGE) == 0;
    nanosleep(&pause, NULL);
  }
  must(slime_wait(producer, last, -1, &result), "slime_wait");
  printf("%d of %d pages were whole when they were counted\n", (int)right, (int)PAGES);
  slime_close(producer);
  slime_close(consumer);
  return right == PAGES && result.status == SLIME_OK ? 0 : 1;
}
