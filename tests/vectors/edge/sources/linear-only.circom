// Compiled with --O0: every constraint is linear, so A and B have no entry but the public rows.
pragma circom 2.0.0;

template Linear() {
    signal input x;
    signal input y;
    signal output sum;
    signal output difference;
    sum <== x + 3 * y + 5;
    difference <== x - y;
    signal doubled <== 2 * sum;
    signal check <== doubled - difference;
    check === x + 7 * y + 10;
}

component main {public [x]} = Linear();
