pragma circom 2.0.0;

include "poseidon_bls12381.circom";
include "merkle.circom";

component main {public [root, scope]} = MerkleMembership(20);
