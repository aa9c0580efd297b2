// Membership in a Merkle tree, anonymous, with a nullifier: see README.md.
pragma circom 2.0.0;

include "poseidon.circom";

// "I know (secret, salt) whose commitment is a leaf of the tree with this root, and `nullifier` is
// what this secret gives in this scope." Nothing else about the leaf is revealed.
//
// path[i] says on which side the node of height i stands: 0 left, 1 right.
template MerkleMembership(depth) {
    signal input root;
    signal input scope;
    signal input secret;
    signal input salt;
    signal input siblings[depth];
    signal input path[depth];
    signal output nullifier;

    component leaf = Poseidon2();
    leaf.left <== secret;
    leaf.right <== salt;

    component node[depth];
    signal moved[depth];
    var current = leaf.out;
    for (var i = 0; i < depth; i++) {
        path[i] * (path[i] - 1) === 0;
        moved[i] <== path[i] * (siblings[i] - current);
        node[i] = Poseidon2();
        node[i].left <== current + moved[i];
        node[i].right <== siblings[i] - moved[i];
        current = node[i].out;
    }
    root === current;

    component tag = Poseidon2();
    tag.left <== secret;
    tag.right <== scope;
    nullifier <== tag.out;
}
