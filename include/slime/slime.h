/* clang-format off: the example below is text. */
/* libslime: memory of one process, read and written by another, over all NICs of both hosts.
 *
 * An engine has the NICs of this process, its registered memory, and its peers: other engines, in
 * other processes or in this one. A request moves pieces of memory to or from one peer. The peer's
 * program does nothing for that.
 *
 *   slime_open(NULL, &engine);                              the same in the other process
 *   slime_address(engine, blob, &bytes);                    give these bytes to the other process
 *   slime_add_peer(engine, blob_of_the_other, n, &peer);
 *   slime_register(engine, memory, size, NULL, &mine);
 *   slime_import(engine, peer, its_region_blob, &theirs);   by slime_advertise() there
 *   slime_assignment piece = {mine, theirs, 0, 0, 4096};
 *   slime_submit(engine, peer, SLIME_READ, &piece, 1, NULL, &request);
 *   slime_wait(engine, request, -1, &result);
 *
 * Calls return SLIME_OK, SLIME_AGAIN (not yet, no error), or a negative status; then
 * slime_last_error() is a sentence that says what, where and what to try. Any thread may call
 * anything at any time. Handles that are not valid any more are refused, not followed. Structs
 * begin with their size, so that a newer library can tell what an older program knows: set it, or
 * use the initialisers.
 *
 * When a write is done, its bytes are visible at the peer. When a read is done, they are here. In
 * memory of a GPU they are there for what is launched from then on, where the GPU's
 * CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING is not NONE; else call
 * cuFlushGPUDirectRDMAWrites() before. A piece may be moved twice when a NIC fails, so the peer's
 * program must not use memory that is written before it has been told that the request is done. */
/* clang-format on */
#ifndef SLIME_SLIME_H
#define SLIME_SLIME_H

#include <slime/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* `options` NULL: the defaults. */
int slime_open(const slime_options* options, slime_engine** engine);
/* What engines of this process have to say, a line a call: from any thread, also from several at
 * once, which wait meanwhile. The callback may call nothing of this library. NULL: nothing is said,
 * as at the start. After the return the old callback is not called any more. */
int slime_set_log(slime_log_callback callback, void* user, int level);

/* Requests that are open end, and the peers learn of it, within 1 s. No other call of the engine
 * may be under way or follow. A child of fork(2) may call it for engines of its parent, which it
 * does not disturb; other calls about these are refused there, and it may open engines of its own.
 */
int slime_close(slime_engine* engine);
/* Where this engine is, for slime_add_peer() elsewhere. *bytes: how many `blob` has room for, then
 * how many were written. A program that has these bytes can connect. */
int slime_address(slime_engine* engine, void* blob, size_t* bytes);

/* The address of an engine that is discoverable at this host and port, by number or name. It tries
 * again while nobody listens there. < 0: 30 s. */
int slime_find(slime_engine* engine, const char* host_port, int64_t timeout_ns, void* blob,
               size_t* bytes);
/* The same address gives the same peer. One that is gone may be connected again from then on. */
int slime_add_peer(slime_engine* engine, const void* blob, size_t bytes, slime_peer* peer);
/* Connects now, and not at the first request; also a peer that is gone. SLIME_AGAIN: not within
 * this time; < 0: no limit but that of the set-up. */
int slime_connect(slime_engine* engine, slime_peer peer, int64_t timeout_ns);
/* Its requests end with an error, within 1 s, and the peer's engine learns that the link has ended.
 * The handles of the peer and of its regions are refused from now on; what has come from it and was
 * not fetched or received is dropped. That engine may be added again, or connect again, as another
 * peer: messages that were on their way then have ended. This call does not wait for the peer. */
int slime_remove_peer(slime_engine* engine, slime_peer peer);
/* The next peer that has connected to this engine and that its program has not added. It can be
 * used as any other. SLIME_AGAIN: none comes within this time; < 0: no limit. */
int slime_accept(slime_engine* engine, int64_t timeout_ns, slime_peer_info* info);
int slime_peer_state(slime_engine* engine, slime_peer peer, slime_peer_info* info);

/* `memory` NULL: memory of the host, which peers may read and write. It stays mapped until
 * slime_deregister() has returned SLIME_OK: tcp rails copy, and do not look. Memory of a GPU needs
 * NICs that reach it, else the call fails (SLIME_ERR_UNSUPPORTED). A NIC confirms bytes that the
 * GPU may not have yet, so writes into such memory are followed by a read, and end a round trip
 * later. If peers may not read the region, there is no such read: then the program there waits for
 * its bytes itself. */
int slime_register(slime_engine* engine, void* address, size_t bytes, const slime_memory* memory,
                   slime_region* region);
/* No request may use it from now on, and no peer gets its keys. SLIME_OK: no peer touches the
 * memory any more. SLIME_AGAIN: requests of this engine use it still after this time; call again.
 * < 0: no limit. */
int slime_deregister(slime_engine* engine, slime_region region, int64_t timeout_ns);
/* For slime_import() at a peer. */
int slime_advertise(slime_engine* engine, slime_region region, void* blob64);
int slime_import(slime_engine* engine, slime_peer peer, const void* blob64, slime_remote* remote);

/* The named regions of the peer, in the order of their names. *count: how many there is room for,
 * then how many the peer has; further ones are left out. It waits for the peer, for so long at most
 * (< 0: the engine's default deadline); then SLIME_ERR_TIMEOUT. */
int slime_regions(slime_engine* engine, slime_peer peer, int64_t timeout_ns,
                  slime_remote_info* regions, size_t* count);

/* Begins to move all of these, 2^24 at most. `op`: SLIME_READ (from the peer) or SLIME_WRITE. The
 * array may be reused when the call returns, unless SLIME_BORROW says otherwise, the memory not
 * before the request is done. The first 4096 are checked by this call, the others when they are
 * moved: if one is wrong, the request ends with that. */
int slime_submit(slime_engine* engine, slime_peer peer, int op, const slime_assignment* assignments,
                 size_t count, const slime_extra* extra, slime_request* request);
/* Looks up and checks such a list, for any number of requests, also at once. The plan keeps no
 * memory registered. It is refused after one of its regions was deregistered here, or released, or
 * its peer removed; slime_release() frees it. */
int slime_prepare(slime_engine* engine, slime_peer peer, const slime_assignment* assignments,
                  size_t count, slime_plan* plan);
/* As slime_submit(), of all assignments (`indices` NULL and `count` 0), or of those with these
 * indices in the plan's list, which are all checked by this call. */
int slime_start(slime_engine* engine, slime_plan plan, int op, const uint32_t* indices,
                size_t count, const slime_extra* extra, slime_request* request);
/* As slime_submit(), of pages. All are checked by this call. */
int slime_start_pages(slime_engine* engine, slime_peer peer, int op, const slime_pages* pages,
                      const slime_extra* extra, slime_request* request);
/* Never blocks. SLIME_OK: the request is done, its handle is not valid any more, and *result says
 * how it ended. `result` NULL: the status is that of the request. Several threads may ask for one
 * request: those that are in a call when it ends all get its end; of one with SLIME_COMPLETES or a
 * callback, one of them or that. */
int slime_test(slime_engine* engine, slime_request request, slime_result* result);
/* The same, with a wait. < 0: no limit but the request's deadline, and at most 1 s that it has to
 * end then. When it has ended, with whatever status, nothing touches its memory here any more; what
 * `quiet` says of the peer's memory holds at once. What is on its way when a request is overdue has
 * 0.1 s to come; then the NICs that carry it are taken out of use until both engines have seen
 * that, and return. Other requests go on over other NICs, or when these are back. If the peer does
 * not answer to that, other requests to it begin again over a new link. */
int slime_wait(slime_engine* engine, slime_request request, int64_t timeout_ns,
               slime_result* result);
/* The request is overdue from now on: it ends with SLIME_ERR_CANCELLED within 1 s, unless it ends
 * before. slime_wait() tells how, as ever. This call does not wait for that. */
int slime_cancel(slime_engine* engine, slime_request request);
/* Requests with SLIME_COMPLETES that have ended and that nobody has tested, waited for or released
 * since; each is told once. *count: how many there is room for, then how many were written: if all
 * of the room is used, call again. Never blocks. */
int slime_completed(slime_engine* engine, slime_completion* completions, size_t* count);
/* For poll(2) and its like: readable while there is something of these kinds, now and then also
 * when not. Do not read it: the calls do that fetch these things. Another call gives the same
 * descriptor, for other kinds from then on. slime_close() closes it. */
int slime_event_fd(slime_engine* engine, uint32_t events, int* descriptor);
/* Messages: immediates, signals, notifications and messages with tags. Each comes exactly once,
 * also when a NIC fails or a link is replaced. The message of a request comes after the bytes of
 * that request have been moved. The peer's program may then use what was written, or reuse what
 * was read. Notifications come in the order in which the bytes of their requests were moved, and
 * so do immediates. A notification and an immediate have no order. A request with messages is done
 * when the peer's engine has them. The request of slime_send() with a long message is done when
 * that has been received. If it ends with an error before that, they may have come, or not. `extra`
 * of these calls has no immediate and no notification.
 *
 * Sends so many bytes, 0 to SLIME_NOTIFICATION_BYTES, that this call copies. The peer keeps
 * notifications that its program does not fetch, 4096 or 64 MiB for each sender; further ones wait
 * here. Reads, writes and immediates do not wait for them. */
int slime_notify(slime_engine* engine, slime_peer peer, const void* data, size_t bytes,
                 const slime_extra* extra, slime_request* request);
/* The peer's engine adds `add` to the 64-bit counter at `offset` of that region, which must let
 * peers write, and be memory of the host. One addition, whatever fails. The program there reads it
 * with an atomic load (acquire). `strong` 0: at once; else after all requests to this peer that
 * were submitted before have ended, also those that end with an error; long sends end when they
 * have been received. */
int slime_signal(slime_engine* engine, slime_peer peer, slime_remote remote, uint64_t offset,
                 uint64_t add, int strong, const slime_extra* extra, slime_request* request);
/* Never blocks. *count: how many there is room for, then how many have come; each of them is to be
 * released. */
int slime_notifications(slime_engine* engine, slime_notification* notifications, size_t* count);
/* The request is done when `count` such immediates have come, of this peer or of SLIME_ANY_PEER.
 * Those that came before and that nobody expected count too: 65536 different ones are kept for each
 * peer; the sender of one more gets an error. It ends with an error when the peer is gone. To
 * expect no longer, release it. What it has counted by then is used up, also when it ends with an
 * error. */
int slime_expect(slime_engine* engine, slime_peer peer, uint32_t immediate, uint64_t count,
                 const slime_extra* extra, slime_request* request);
/* Those that came and that nobody has expected count no more. */
int slime_forget(slime_engine* engine, slime_peer peer, uint32_t immediate);
/* Sends a message of any length, of memory of the host, for one slime_recv() at the peer. Messages
 * of one sender that fit the same receive are received in the order of these calls. One of
 * SLIME_SHORT_BYTES or less is copied, and the request is done when the peer's engine has it. A
 * longer one is read by the peer when a receive fits it: the memory may change when the request is
 * done. It need not be registered; where there are RDMA NICs it must be writable, or this call
 * fails. The request ends with an error if the receive ends before it has read the message, and may
 * do so if the link is lost before a receive has come for it. A peer keeps 4096 messages of each
 * sender that nobody has received; further ones wait here, also for receives with other tags. */
int slime_send(slime_engine* engine, slime_peer peer, const void* data, size_t bytes, uint64_t tag,
               const slime_extra* extra, slime_request* request);
#define SLIME_SHORT_BYTES 5096
/* The request is done when the first message has come, of this peer or of SLIME_ANY_PEER, whose tag
 * has the bits of `tag` where `tag_mask` has ones. The result says who sent it, its tag and its
 * bytes. One that is longer than `bytes` ends the request with SLIME_ERR_INVALID and is gone; if it
 * is not short its sender gets an error too. The memory, which is the host's, need not be
 * registered. Receives get messages in the order of these calls. The request ends with an error
 * when its peer is gone (of SLIME_ANY_PEER, only while it reads a message), and when the sender
 * gives up a long message that it reads: receive again. To receive no longer, cancel it: when it
 * has ended, the memory is written no more. */
int slime_recv(slime_engine* engine, slime_peer peer, void* room, size_t bytes, uint64_t tag,
               uint64_t tag_mask, const slime_extra* extra, slime_request* request);
/* Of a request, a plan, a remote region or a notification. Reads, writes, sends, notifications and
 * signals go on, and nobody learns how they end. An expectation ends, and so does a receive for
 * which no message has come; one that reads a message goes on writing: cancel it, and wait. A
 * callback is not called any more. */
int slime_release(slime_engine* engine, uint64_t handle);

/* Of this thread: the last error. Never NULL. */
const char* slime_last_error(void);
const char* slime_status_name(int status);
const char* slime_version(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
