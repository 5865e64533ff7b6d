/* Reads memory of another process, which does nothing for it.
 *
 *     example-read            # two processes of this host, over all its NICs
 *
 * Built from an installed libslime:
 *     gcc -std=c99 read.c -o read $(pkg-config --cflags --libs libslime)
 * Exit status: 0: the bytes are right; 1: an error. */
#define _POSIX_C_SOURCE 200809L
#include <slime/slime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (1 << 20)

/* What a program must carry from one process to the other, by any means. */
struct card {
  char engine[SLIME_ADDRESS_BYTES];
  size_t engine_bytes;
  char region[SLIME_REGION_BYTES];
};

static int failed(const char* call) {
  fprintf(stderr, "%s: %s\n", call, slime_last_error());
  return 1;
}

static int carry(int to, const void* bytes, size_t count) {
  return write(to, bytes, count) == (ssize_t)count;
}
static int take(int from, void* bytes, size_t count) {
  size_t have = 0;
  while (have < count) {
    const ssize_t got = read(from, (char*)bytes + have, count - have);
    if (got <= 0) return 0;
    have += (size_t)got;
  }
  return 1;
}

/* Has the memory, and waits until the other process has done. */
static int owner(int other) {
  slime_engine* engine = NULL;
  slime_region region = 0;
  struct card card;
  char done = 0;
  char* const memory = malloc(BYTES);
  if (memory == NULL) return 1;
  memset(memory, 'x', BYTES);
  memset(&card, 0, sizeof card);
  card.engine_bytes = sizeof card.engine;
  if (slime_open(NULL, &engine) != SLIME_OK) return failed("slime_open");
  if (slime_register(engine, memory, BYTES, NULL, &region) != SLIME_OK) {
    return failed("slime_register");
  }
  if (slime_address(engine, card.engine, &card.engine_bytes) != SLIME_OK ||
      slime_advertise(engine, region, card.region) != SLIME_OK) {
    return failed("slime_address or slime_advertise");
  }
  if (!carry(other, &card, sizeof card)) return 1;
  (void)take(other, &done, 1);
  slime_close(engine);
  free(memory);
  return 0;
}

static int reader(int other) {
  slime_engine* engine = NULL;
  slime_peer peer = 0;
  slime_region mine = 0;
  slime_remote theirs = 0;
  slime_request request = 0;
  slime_result result = SLIME_RESULT_INIT;
  struct card card;
  char* const memory = calloc(1, BYTES);
  size_t right = 0;
  if (memory == NULL || !take(other, &card, sizeof card)) return 1;
  if (slime_open(NULL, &engine) != SLIME_OK) return failed("slime_open");
  if (slime_register(engine, memory, BYTES, NULL, &mine) != SLIME_OK) {
    return failed("slime_register");
  }
  if (slime_add_peer(engine, card.engine, card.engine_bytes, &peer) != SLIME_OK) {
    return failed("slime_add_peer");
  }
  if (slime_import(engine, peer, card.region, &theirs) != SLIME_OK) return failed("slime_import");
  {
    const slime_assignment all = {mine, theirs, 0, 0, BYTES};
    if (slime_submit(engine, peer, SLIME_READ, &all, 1, NULL, &request) != SLIME_OK) {
      return failed("slime_submit");
    }
  }
  if (slime_wait(engine, request, -1, &result) != SLIME_OK) return failed("slime_wait");
  if (result.status != SLIME_OK) {
    fprintf(stderr, "the read ended: %s\n", result.text);
    return 1;
  }
  while (right < BYTES && memory[right] == 'x') ++right;
  printf("%zu of %d bytes are right, in %.1f us\n", right, BYTES,
         (double)(result.queued_ns + result.moved_ns) * 1e-3);
  (void)carry(other, "d", 1);
  slime_close(engine);
  free(memory);
  return right == BYTES ? 0 : 1;
}

int main(void) {
  int ends[2], status = 0, code;
  pid_t child;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  child = fork(); /* before there are engines */
  if (child < 0) return 1;
  if (child == 0) {
    close(ends[0]);
    return owner(ends[1]);
  }
  close(ends[1]);
  code = reader(ends[0]);
  close(ends[0]);
  waitpid(child, &status, 0);
  return code != 0 || status != 0;
}
