/* What the calls of slime/slime.h take and give: handles, statuses, structs. */
#ifndef SLIME_TYPES_H
#define SLIME_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An engine; a pointer to it is valid until slime_close(). */
typedef struct slime_engine slime_engine;
/* Handles; 0 is never one. */
typedef uint64_t slime_peer;    /* another engine */
typedef uint64_t slime_region;  /* registered memory of this engine */
typedef uint64_t slime_remote;  /* registered memory of a peer */
typedef uint64_t slime_plan;    /* a list of pieces, to be moved any number of times */
typedef uint64_t slime_request; /* what was asked for; it ends with the call that returns its end */

/* What calls return. */
enum {
  SLIME_OK = 0,
  SLIME_AGAIN = 1,            /* not yet: call again */
  SLIME_ERR_INVALID = -1,     /* an argument that no correct program passes; a handle of old */
  SLIME_ERR_CONFIG = -2,      /* options, environment or sizes cannot work together */
  SLIME_ERR_SYSTEM = -3,      /* a call into the operating system or a driver failed */
  SLIME_ERR_REMOTE = -4,      /* the peer has gone, refused, or cannot be reached */
  SLIME_ERR_TIMEOUT = -5,     /* a deadline has passed */
  SLIME_ERR_NO_MEMORY = -6,   /* memory, descriptors or another resource ran out */
  SLIME_ERR_UNSUPPORTED = -7, /* correct, but this machine cannot do it */
  SLIME_ERR_INTERNAL = -8,    /* a bug of libslime */
  SLIME_ERR_CANCELLED = -9    /* of a request: slime_cancel() */
};

/* What peers may do with a region. */
enum { SLIME_REMOTE_NONE = 0, SLIME_REMOTE_WRITE = 1, SLIME_REMOTE_READ = 2 };

/* Of slime_submit(): from the peer, or to it. */
enum { SLIME_READ = 1, SLIME_WRITE = 2 };

/* Sizes. */
#define SLIME_ADDRESS_BYTES 1024 /* of an engine's address, at most */
#define SLIME_REGION_BYTES 64    /* of a region's address, exactly */
#define SLIME_RAILS 32           /* of a link, at most */
#define SLIME_THREADS 64         /* of an engine, at most */

/* Of slime_open(). */
typedef struct {
  size_t size; /* sizeof(slime_options) */
  /* As "ifname=eth0,eth1; peer_timeout=5": the settings of docs/configuration.md, in small letters
   * and without NCCL_SLIME_, in which error texts name them too. NULL: none. The variables of the
   * environment count for the others. */
  const char* settings;
  double default_deadline_s; /* of a request without one; 0: 30 */
  /* Called for each immediate that comes while nobody expects it: then it is not kept for a later
   * slime_expect(). As slime_callback below. NULL: they are kept. */
  void (*on_immediate)(void* user, slime_peer peer, uint32_t immediate);
  void* user;       /* for on_immediate */
  const char* name; /* that peers see, 255 bytes at most; NULL: "host:process" */
  /* As "0.0.0.0:7600": who connects there gets this engine's address (slime_find()), and so can
   * connect to it. NULL: only those whom the program gives the address. */
  const char* discoverable;
  /* Number of the engine's threads, SLIME_THREADS at most; 0: one. They move what no thread of the
   * program moves: mostly what peers ask for. Each peer belongs to one of them, by turns as the
   * engine gets to know them. The first one also takes peers that connect and calls the program's
   * functions. */
  uint32_t threads;
  uint32_t reserved; /* 0 */
} slime_options;
#define SLIME_OPTIONS_INIT \
  { sizeof(slime_options), NULL, 0, NULL, NULL, NULL, NULL, 0, 0 }

/* Kinds of memory: the host's; a GPU's; a GPU's, which NICs find by a DMA-BUF. */
enum { SLIME_HOST = 0, SLIME_CUDA = 1, SLIME_CUDA_DMA_BUF = 2 };

/* Of slime_register(). */
typedef struct {
  size_t size;     /* sizeof(slime_memory) */
  uint32_t rights; /* of peers: SLIME_REMOTE_... */
  /* SLIME_CUDA: NICs find it by its address, for which the module nvidia-peermem is loaded. */
  uint32_t kind; /* SLIME_HOST, SLIME_CUDA or SLIME_CUDA_DMA_BUF */
  /* Peers can find it by this name (slime_regions()): 63 bytes at most, of one region here. NULL:
   * only those find it whom the program gives what slime_advertise() writes. */
  const char* name;
  /* Of a SLIME_CUDA_DMA_BUF: a descriptor whose DMA-BUF contains the memory, from dma_buf_offset
   * on, as cuMemGetHandleForAddressRange() gives one. It may be closed when the call has returned.
   * The address is still the one that the GPU has for it. Else both are ignored. */
  int dma_buf;
  int reserved; /* 0 */
  uint64_t dma_buf_offset;
} slime_memory;
#define SLIME_MEMORY_INIT \
  { sizeof(slime_memory), SLIME_REMOTE_READ | SLIME_REMOTE_WRITE, SLIME_HOST, NULL, 0, 0, 0 }

/* A named region of a peer. */
typedef struct {
  char name[64];
  unsigned char blob[SLIME_REGION_BYTES]; /* for slime_import() */
  uint64_t base, bytes;                   /* its address there, which only its program can use */
  uint32_t rights;                        /* SLIME_REMOTE_... */
  uint32_t kind;                          /* SLIME_HOST or SLIME_CUDA */
} slime_remote_info;

/* `length` bytes between a region here and one of the peer. 0 bytes are allowed, and move
 * nothing. */
typedef struct {
  slime_region local;
  slime_remote remote;
  uint64_t local_offset, remote_offset, length;
} slime_assignment;

/* Page local_pages[i] of a region here and page remote_pages[i] of a region of the peer, for each i
 * below `count`. Page n begins at the offset of its side + n * the stride of its side. A stride of
 * 0: page_bytes. */
typedef struct {
  size_t size; /* sizeof(slime_pages) */
  slime_region local;
  slime_remote remote;
  uint64_t page_bytes;
  uint64_t local_offset, remote_offset;
  uint64_t local_stride, remote_stride;
  const uint32_t* local_pages;
  const uint32_t* remote_pages;
  size_t count;
} slime_pages;
#define SLIME_PAGES_INIT \
  { sizeof(slime_pages), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0 }

/* How a request ended. */
typedef struct {
  size_t size; /* sizeof(slime_result) */
  int status;  /* SLIME_OK, or why it ended */
  /* 1: nothing is on its way any more that touches memory of this engine or of the peer for this
   * request. 0: its link was lost while it wrote, or the peer has its signal and has not said that
   * it carried that out; the peer's memory may still change until the region is deregistered
   * there, or the peer has another link to this engine or knows that it is gone. Memory of this
   * engine is not touched any more in any case. */
  int quiet;
  const char* text; /* why, for people; valid until the next call of this thread; "" if it is OK */
  uint64_t bytes;   /* that were moved, or received */
  uint64_t queued_ns; /* from the call until it began */
  uint64_t moved_ns;  /* from then until it was done */
  slime_peer peer;    /* of slime_recv(): who sent the message; 0: none has come */
  uint64_t tag;       /* of that message */
  uint64_t retries;   /* parts that were lost on a rail, or with a link, and were moved again */
  uint64_t rail_bytes[SLIME_RAILS]; /* by each rail of the link, with what was given up */
} slime_result;
#define SLIME_RESULT_INIT                                     \
  {                                                           \
    sizeof(slime_result), 0, 1, NULL, 0, 0, 0, 0, 0, 0, { 0 } \
  }

/* Called when a request has ended, in place of slime_test() and slime_wait(): by the engine's own
 * thread (the first of several), or by slime_close(), one call after the other. It may call
 * anything of this library but slime_close(), slime_find() and slime_regions(); of other calls with
 * a time-out, only with 0. While it runs, that thread moves no request of its peers; only those
 * move that another thread waits for. The handle is not valid any more. `result` is valid until it
 * returns. */
typedef void (*slime_callback)(void* user, slime_request request, const slime_result* result);

/* Flags of slime_extra. */
enum {
  /* What is told to the peer when all bytes of the request have been moved. */
  SLIME_WITH_IMMEDIATE = 1,
  SLIME_WITH_NOTIFICATION = 2,
  SLIME_COMPLETES = 4, /* slime_completed() says when it has ended */
  /* More follows: the request begins with the next one to this peer that has no such flag, or
   * when somebody waits for it or tests it; after 5 s at the latest. */
  SLIME_MORE = 8,
  SLIME_BORROW =
      16 /* of reads and writes: the arrays stay as they are until the request has ended */
};

/* What comes with a request. */
typedef struct {
  size_t size;              /* sizeof(slime_extra) */
  int64_t deadline_ns;      /* from the call on; 0: the engine's default */
  uint32_t flags;           /* SLIME_..., of these */
  uint32_t immediate;       /* with its flag: for slime_expect() at the peer */
  const void* notification; /* with its flag: for slime_notifications() at the peer */
  size_t notification_bytes;
  slime_callback callback; /* NULL: none. Not with SLIME_COMPLETES */
  void* user;              /* for the callback, or for slime_completed() */
} slime_extra;
#define SLIME_EXTRA_INIT \
  { sizeof(slime_extra), 0, 0, 0, NULL, 0, NULL, NULL }

/* A notification that has come. Its bytes live until slime_release(handle). */
typedef struct {
  slime_peer peer; /* who sent it; this engine may not have added it, but can use it as any peer */
  uint64_t handle;
  const void* data;
  size_t bytes;
} slime_notification;
#define SLIME_NOTIFICATION_BYTES ((size_t)64 << 20) /* of one, at most */
#define SLIME_ANY_PEER ((slime_peer)0)

/* The end of a request, as slime_result has it. */
typedef struct {
  slime_request request; /* its handle, which is not valid any more */
  void* user;            /* of its slime_extra */
  int status, quiet;
  const char* text; /* valid until this thread calls slime_completed() again */
  uint64_t bytes, queued_ns, moved_ns;
  slime_peer peer;
  uint64_t tag;
} slime_completion;

/* States of a peer. */
enum {
  SLIME_PEER_NEW = 0, /* known by its address; connected at the first request */
  SLIME_PEER_CONNECTING = 1,
  SLIME_PEER_UP = 2,
  SLIME_PEER_GONE = 3 /* it cannot be reached: requests end with that. Add or connect it again */
};
/* Of slime_peer_state() and slime_accept(). */
typedef struct {
  size_t size; /* sizeof(slime_peer_info) */
  int state;   /* SLIME_PEER_... */
  int reserved;
  const char* text;  /* why it is gone; valid until the next call of this thread */
  uint32_t rails;    /* of the link to it: pairs of NICs, or parts of them. 0: not connected */
  uint32_t rails_up; /* of these; the others are tried again */
  slime_peer peer;
  /* These are valid until the next such call of this thread. The name is what the peer says of
   * itself: bytes of any kind without 0; "" before it was connected. */
  const char* name;
  const void* address;  /* for slime_add_peer(), also of another engine */
  size_t address_bytes; /* 0: it is not known yet */
  /* For people, a line for each rail of the link: its number, its NIC and transport here, and
   * whether it is up; "": not connected. */
  const char* rail_text;
  /* Nanoseconds that reads and writes of 1 to 4096 bytes over this link have taken until their
   * bytes were confirmed: a moving average, in which each new one counts an eighth. 0: there was
   * none yet. */
  uint64_t round_trip_ns;
  /* Since this link was made: works that this engine posted, and the calls that posted them, of
   * which one posts many works. Over tcp also the calls that only acknowledged or answered the
   * peer's works, and a long work takes several calls. */
  uint64_t works, doorbells;
} slime_peer_info;
#define SLIME_PEER_INFO_INIT \
  { sizeof(slime_peer_info), 0, 0, NULL, 0, 0, 0, NULL, NULL, 0, NULL, 0, 0, 0 }

/* Kinds of slime_event_fd(). */
enum {
  SLIME_EVENT_COMPLETED = 1,     /* for slime_completed() */
  SLIME_EVENT_NOTIFICATIONS = 2, /* for slime_notifications() */
  SLIME_EVENT_PEERS = 4          /* for slime_accept() */
};

/* For slime_set_log(). */
enum { SLIME_LOG_WARN = 0, SLIME_LOG_INFO = 1, SLIME_LOG_TRACE = 2 };
typedef void (*slime_log_callback)(void* user, int level, const char* text);

#ifdef __cplusplus
}
#endif
#endif
