// Compiled with --O0: rows between the products are linear, and one input occurs in no row at all,
// so its points are infinity in every section of the key; others occur in A, B or C alone.
pragma circom 2.0.0;

template Sparse() {
    signal input only_a;
    signal input only_b;
    signal input nowhere;
    signal input both;
    signal output only_c;
    signal product <== only_a * only_b;
    signal shifted <== product + 9;
    signal copied <== shifted;
    signal square <== both * both;
    only_c <== copied + square;
}

component main = Sparse();
