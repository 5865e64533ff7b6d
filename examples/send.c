/* Sends messages with tags; the receiver says which ones it wants, and where they are to lie.
 *
 *     example-send    # two engines of one process, over all NICs of the host
 *
 * read.c does the same between two processes: they give each other the two addresses. Built from an
 * installed libslime:
 *     gcc -std=c99 send.c -o send $(pkg-config --cflags --libs libslime)
 * Exit status: 0: the bytes are right; 1: an error. */
#include <slime/slime.h>
#include <stdio.h>
#include <string.h>

#define LAYER (UINT64_C(3) << 32) /* a tag: the programs agree on what its bits mean */
#define PAGE_BITS UINT64_C(0xffffffff)
#define BYTES (1 << 20)

static int failed(const char* call) {
  fprintf(stderr, "%s: %s\n", call, slime_last_error());
  return 1;
}

static int ended(slime_engine* engine, slime_request request, slime_result* result) {
  if (slime_wait(engine, request, -1, result) != SLIME_OK) return failed("slime_wait");
  if (result->status != SLIME_OK) fprintf(stderr, "a request ended: %s\n", result->text);
  return result->status != SLIME_OK;
}

/* A short message and a long one, of which the receiver takes the long one first. */
static int exchange(slime_engine* sender, slime_peer peer, slime_engine* receiver) {
  static char from[BYTES], to[BYTES], text[16];
  slime_request sent[2], received[2];
  slime_result result = SLIME_RESULT_INIT;
  memset(from, 'x', BYTES);
  /* Any page of the layer: the mask leaves out the bits of the page. */
  if (slime_recv(receiver, SLIME_ANY_PEER, to, BYTES, LAYER, ~PAGE_BITS, NULL, &received[0]) !=
          SLIME_OK ||
      slime_send(sender, peer, "hello", 5, 1, NULL, &sent[0]) != SLIME_OK ||
      slime_send(sender, peer, from, BYTES, LAYER | 12, NULL, &sent[1]) != SLIME_OK) {
    return failed("slime_recv or slime_send");
  }
  if (ended(receiver, received[0], &result)) return 1;
  printf("page %d has %llu bytes\n", (int)(result.tag & PAGE_BITS),
         (unsigned long long)result.bytes);
  if (slime_recv(receiver, result.peer, text, sizeof text, 1, UINT64_MAX, NULL, &received[1]) !=
      SLIME_OK) {
    return failed("slime_recv");
  }
  if (ended(receiver, received[1], &result)) return 1;
  printf("the peer says: %.*s\n", (int)result.bytes, text);
  return ended(sender, sent[0], &result) || ended(sender, sent[1], &result) ||
         memcmp(from, to, BYTES) != 0;
}

int main(void) {
  slime_engine *sender = NULL, *receiver = NULL;
  slime_peer peer = 0;
  char address[SLIME_ADDRESS_BYTES];
  size_t bytes = sizeof address;
  int code;
  if (slime_open(NULL, &sender) != SLIME_OK || slime_open(NULL, &receiver) != SLIME_OK) {
    return failed("slime_open");
  }
  if (slime_address(receiver, address, &bytes) != SLIME_OK ||
      slime_add_peer(sender, address, bytes, &peer) != SLIME_OK) {
    return failed("slime_address or slime_add_peer");
  }
  code = exchange(sender, peer, receiver);
  slime_close(sender);
  slime_close(receiver);
  return code;
}
