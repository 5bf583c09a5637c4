/* The filter for a microcontroller's compiler, which has no operating system under it: the same machine code as on the
   chip, wrapped so that a Linux emulator of the ARM instruction set can feed it (read, write, exit by system call). */
#include "policy.h"

static int system_call(int number, int a, void *b, int c)
{
    register int r0 __asm__("r0") = a;
    register void *r1 __asm__("r1") = b;
    register int r2 __asm__("r2") = c;
    register int r7 __asm__("r7") = number;
    __asm__ volatile("svc 0" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r7) : "memory");
    return r0;
}

enum { EXIT = 1, READ = 3, WRITE = 4 };

static int transfer(int call, int file, void *data, int size)
{
    for (int done = 0; done < size;) {
        const int part = system_call(call, file, (char *)data + done, size - done);
        if (part <= 0) return 0;
        done += part;
    }
    return 1;
}

void _start(void);

void _start(void)
{
    static float in[POLICY_INPUT_SIZE], out[POLICY_OUTPUT_SIZE];
    while (transfer(READ, 0, in, sizeof in)) {
        policy_infer_flat(in, out);
        if (!transfer(WRITE, 1, out, sizeof out)) system_call(EXIT, 1, 0, 0);
    }
    for (;;) system_call(EXIT, 0, 0, 0);
}
