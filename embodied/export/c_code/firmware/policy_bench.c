/* A loop of inferences for timing from outside: build it together with the policy as a shared object. */
#include "policy.h"

float policy_bench(const float *in, int samples, int calls);

/* Runs `calls` inferences over `samples` inputs in turn; returns a sum of outputs, so that no call can be left out. */
float policy_bench(const float *in, int samples, int calls)
{
    float out[POLICY_OUTPUT_SIZE], sum = 0.0f;
    for (int i = 0; i < calls; ++i) {
        policy_infer_flat(in + (i % samples) * POLICY_INPUT_SIZE, out);
        sum += out[0];
    }
    return sum;
}
