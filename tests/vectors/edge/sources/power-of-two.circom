// 62 constraints + 1 output + 1 = 64 rows.
pragma circom 2.0.0;

include "chain.circom";

component main = Chain(62);
