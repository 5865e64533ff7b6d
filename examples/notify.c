/* Writes memory of a peer, which learns that by a notification and by an immediate.
 *
 *     example-notify    # two engines of one process, over all NICs of the host
 *
 * read.c does the same between two processes: they give each other the two addresses. Built from an
 * installed libslime:
 *     gcc -std=c99 notify.c -o notify $(pkg-config --cflags --libs libslime)
 * Exit status: 0: the bytes are right; 1: an error. */
#define _POSIX_C_SOURCE 200809L
#include <slime/slime.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BYTES 4096
#define PAGE_IS_FULL 7 /* an immediate: the programs agree on what it means */

static int failed(const char* call) {
  fprintf(stderr, "%s: %s\n", call, slime_last_error());
  return 1;
}

/* The writer's program. */
static int write_page(slime_engine* writer, slime_peer peer, slime_region mine,
                      slime_remote theirs) {
  const slime_assignment page = {mine, theirs, 0, 0, BYTES};
  slime_extra extra = SLIME_EXTRA_INIT;
  slime_request request = 0;
  slime_result result = SLIME_RESULT_INIT;
  extra.flags = SLIME_WITH_NOTIFICATION | SLIME_WITH_IMMEDIATE;
  extra.notification = "request 12, page 3";
  extra.notification_bytes = strlen("request 12, page 3");
  extra.immediate = PAGE_IS_FULL;
  if (slime_submit(writer, peer, SLIME_WRITE, &page, 1, &extra, &request) != SLIME_OK) {
    return failed("slime_submit");
  }
  if (slime_wait(writer, request, -1, &result) != SLIME_OK) return failed("slime_wait");
  if (result.status != SLIME_OK) fprintf(stderr, "the write ended: %s\n", result.text);
  return result.status != SLIME_OK;
}

/* The owner's program: waits for the immediate, and fetches the notification. */
static int await_page(slime_engine* owner) {
  slime_request full = 0;
  slime_result result = SLIME_RESULT_INIT;
  slime_notification one;
  const struct timespec pause = {0, 100000};
  size_t count = 0;
  if (slime_expect(owner, SLIME_ANY_PEER, PAGE_IS_FULL, 1, NULL, &full) != SLIME_OK ||
      slime_wait(owner, full, -1, &result) != SLIME_OK || result.status != SLIME_OK) {
    return failed("slime_expect or slime_wait");
  }
  while (count == 0) { /* immediates and notifications have an order each, none with each other */
    count = 1;
    if (slime_notifications(owner, &one, &count) != SLIME_OK) return failed("slime_notifications");
    if (count == 0) nanosleep(&pause, NULL);
  }
  printf("the peer says: %.*s\n", (int)one.bytes, (const char*)one.data);
  return slime_release(owner, one.handle) != SLIME_OK;
}

int main(void) {
  static char from[BYTES], to[BYTES];
  slime_engine *writer = NULL, *owner = NULL;
  slime_region mine = 0, owned = 0;
  slime_peer peer = 0;
  slime_remote theirs = 0;
  char address[SLIME_ADDRESS_BYTES], blob[SLIME_REGION_BYTES];
  size_t bytes = sizeof address;
  int code;
  memset(from, 'x', BYTES);
  if (slime_open(NULL, &writer) != SLIME_OK || slime_open(NULL, &owner) != SLIME_OK) {
    return failed("slime_open");
  }
  if (slime_register(owner, to, BYTES, NULL, &owned) != SLIME_OK ||
      slime_address(owner, address, &bytes) != SLIME_OK ||
      slime_advertise(owner, owned, blob) != SLIME_OK) {
    return failed("the owner's set-up");
  }
  if (slime_register(writer, from, BYTES, NULL, &mine) != SLIME_OK ||
      slime_add_peer(writer, address, bytes, &peer) != SLIME_OK ||
      slime_import(writer, peer, blob, &theirs) != SLIME_OK) {
    return failed("the writer's set-up");
  }
  code = write_page(writer, peer, mine, theirs) != 0 || await_page(owner) != 0 ||
         memcmp(from, to, BYTES) != 0;
  slime_close(writer);
  slime_close(owner);
  return code;
}
