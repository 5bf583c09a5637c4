/* Reads the policy's inputs as float32 from stdin, one sample after the other in the order of the graph, and writes its
   outputs to stdout: how parity vectors are run on a target. Nothing is carried from one sample to the next. */
#include <stdio.h>

#include "policy.h"

int main(void)
{
    static float in[POLICY_INPUT_SIZE], out[POLICY_OUTPUT_SIZE];
    while (fread(in, sizeof(float), POLICY_INPUT_SIZE, stdin) == POLICY_INPUT_SIZE) {
        policy_infer_flat(in, out);
        if (fwrite(out, sizeof(float), POLICY_OUTPUT_SIZE, stdout) != POLICY_OUTPUT_SIZE) return 1;
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
