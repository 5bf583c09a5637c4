/* The firmware of a device under test: answers each observation frame with one action frame, in lockstep, over UDP or
   over stdin and stdout (a pipe, or a serial line in raw mode). Needs POSIX; everything else is the policy itself.

   usage: device_loop [--udp PORT | --udp-any PORT] [--watchdog-ms N]
   (--udp hears this machine alone, --udp-any every interface; watchdog 0, the default, waits for ever)

   Frame, little-endian as this code expects its machine to be: magic u32 "EDL1", sequence u32, kind u16, count u16,
   count words of payload, crc32 u32 (IEEE, as in zlib) of all before it. Kinds:
     0 HELLO        answered by HELLO with the 64 digits of the package's sha256; resets policy and sequence
     1 OBSERVATION  count float32; answered by ACTION or, where it is not finite, by SAFE with its sequence number
     2 ACTION       count float32
     3 SAFE         count float32, the safe action: also sent unasked once per watchdog period of silence
   A sequence number seen last is answered by the same bytes again, an older one not at all, a broken frame not at all. */
#define _POSIX_C_SOURCE 200809L
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "policy.h"

enum { MAGIC = 0x314c4445, HEAD = 12, HELLO = 0, OBSERVATION = 1, ACTION = 2, SAFE = 3,
       WORDS = POLICY_OBSERVATIONS > 16 ? POLICY_OBSERVATIONS : 16 };

static unsigned char received[2 * (HEAD + 4 * WORDS + 4)], reply[HEAD + 4 * (POLICY_ACTIONS + 16) + 4];
static size_t have, reply_size;
static uint32_t last_sequence;
static int in_fd = 0, out_fd = 1, is_udp, has_sequence, is_safe;
static float action[POLICY_ACTIONS]; /* applied last; entries that hold start at zero */
static struct sockaddr_in peer, sender;

static uint32_t crc32(const unsigned char *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; ++i) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
    }
    return ~crc;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void transmit(void)
{
    for (size_t sent = 0; sent < reply_size;) {
        const ssize_t done = is_udp ? sendto(out_fd, reply, reply_size, 0, (struct sockaddr *)&peer, sizeof peer)
                                    : write(out_fd, reply + sent, reply_size - sent);
        if (done <= 0) {
            if (is_udp) return; /* the peer left; a later frame brings another one */
            exit(1);
        }
        sent += (size_t)done;
    }
}

static void answer(uint16_t kind, uint32_t sequence, const void *payload, uint16_t count)
{
    const uint32_t magic = MAGIC;
    memcpy(reply, &magic, 4);
    memcpy(reply + 4, &sequence, 4);
    memcpy(reply + 8, &kind, 2);
    memcpy(reply + 10, &count, 2);
    memcpy(reply + HEAD, payload, 4u * count);
    const uint32_t crc = crc32(reply, HEAD + 4u * count);
    memcpy(reply + HEAD + 4u * count, &crc, 4);
    reply_size = HEAD + 4u * count + 4u;
    transmit();
}

/* Returns 1 if the frame showed that the peer is alive. */
static int handle(uint32_t sequence, uint16_t kind, uint16_t count)
{
    static float observation[POLICY_OBSERVATIONS];
    if (kind == HELLO) {
        policy_reset();
        policy_safe(action);
        has_sequence = is_safe = 0;
        answer(HELLO, sequence, POLICY_PACKAGE_SHA256, 16);
        return 1;
    }
    if (kind != OBSERVATION || count != POLICY_OBSERVATIONS) return 0;
    if (has_sequence && sequence == last_sequence) {
        if (!is_safe) transmit(); /* the answer got lost, or the question came twice: the policy must not run again */
        return 0;
    }
    if (has_sequence && (int32_t)(sequence - last_sequence) < 0) return 0;
    memcpy(observation, received + HEAD, sizeof observation);
    last_sequence = sequence;
    has_sequence = 1;
    is_safe = 0;
    answer(policy_step(observation, action) == 0 ? ACTION : SAFE, sequence, action, POLICY_ACTIONS);
    return 1;
}

/* Handles the frames received so far; what is no frame is skipped byte by byte, so that a line resynchronises. */
static int take_frames(void)
{
    int alive = 0;
    size_t at = 0;
    while (have - at >= HEAD) {
        uint32_t magic, sequence, crc;
        uint16_t kind, count;
        memcpy(&magic, received + at, 4);
        memcpy(&sequence, received + at + 4, 4);
        memcpy(&kind, received + at + 8, 2);
        memcpy(&count, received + at + 10, 2);
        const size_t size = HEAD + 4u * count;
        if (magic == MAGIC && count <= WORDS && have - at < size + 4) break;
        if (magic == MAGIC && count <= WORDS) memcpy(&crc, received + at + size, 4);
        if (magic != MAGIC || count > WORDS || crc != crc32(received + at, size)) {
            ++at;
            continue;
        }
        memmove(received, received + at, have - at);
        have -= at;
        peer = sender;
        alive |= handle(sequence, kind, count);
        at = size + 4;
    }
    memmove(received, received + at, have - at);
    have = is_udp ? 0 : have - at;
    return alive;
}

int main(int argc, char **argv)
{
    long watchdog_ms = 0, port = -1;
    uint32_t address = INADDR_LOOPBACK;
    for (int i = 1; i < argc; i += 2) {
        char *end = "?";
        if (i + 1 < argc && strncmp(argv[i], "--udp", 5) == 0) port = strtol(argv[i + 1], &end, 10);
        if (i + 1 < argc && strcmp(argv[i], "--watchdog-ms") == 0) watchdog_ms = strtol(argv[i + 1], &end, 10);
        if (strcmp(argv[i], "--udp-any") == 0) address = INADDR_ANY;
        else if (strcmp(argv[i], "--udp") != 0 && strcmp(argv[i], "--watchdog-ms") != 0) end = "?";
        if (*end || port > 65535 || watchdog_ms < 0 || watchdog_ms > 3600000) {
            fprintf(stderr, "usage: device_loop [--udp PORT | --udp-any PORT] [--watchdog-ms N]\n");
            return 2;
        }
    }
    if (port >= 0) {
        struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        socklen_t self_size = sizeof self;
        self.sin_addr.s_addr = htonl(address);
        is_udp = 1;
        in_fd = out_fd = socket(AF_INET, SOCK_DGRAM, 0);
        if (in_fd < 0 || bind(in_fd, (struct sockaddr *)&self, sizeof self) != 0) return perror("device_loop"), 1;
        getsockname(in_fd, (struct sockaddr *)&self, &self_size);
        fprintf(stderr, "device_loop: udp %d\n", ntohs(self.sin_port)); /* port 0 asks for any free one */
    }
    policy_reset();
    policy_safe(action);
    for (int64_t heard_ms = now_ms();;) {
        struct pollfd ready = {.fd = in_fd, .events = POLLIN};
        const int64_t left_ms = heard_ms + watchdog_ms - now_ms();
        const int found = poll(&ready, 1, watchdog_ms == 0 ? -1 : left_ms > 0 ? (int)left_ms : 0);
        if (found > 0) {
            socklen_t size = sizeof sender;
            const ssize_t got = is_udp ? recvfrom(in_fd, received, sizeof received, 0, (struct sockaddr *)&sender, &size)
                                       : read(in_fd, received + have, sizeof received - have);
            if (got <= 0 && !is_udp) return 0; /* end of the stream */
            have = (is_udp ? 0 : have) + (got > 0 ? (size_t)got : 0);
            if (take_frames()) heard_ms = now_ms();
        }
        if (watchdog_ms > 0 && now_ms() - heard_ms >= watchdog_ms) {
            if (!is_safe) policy_reset();
            is_safe = 1;
            policy_safe(action);
            if (has_sequence) answer(SAFE, last_sequence, action, POLICY_ACTIONS);
            heard_ms = now_ms();
        }
    }
}
