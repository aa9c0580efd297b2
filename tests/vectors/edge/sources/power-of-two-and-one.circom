// 63 constraints + 1 output + 1 = 65 rows.
pragma circom 2.0.0;

include "chain.circom";

component main = Chain(63);
