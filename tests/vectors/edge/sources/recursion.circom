// The witness program calls itself `depth` times; a great depth runs out of its memory.
pragma circom 2.0.0;

function triangle(n) {
    if (n == 0) {
        return 0;
    }
    return n + triangle(n - 1);
}

template Triangle() {
    signal input depth;
    signal output sum;
    sum <-- triangle(depth);
    2 * sum === depth * (depth + 1);
}

component main {public [depth]} = Triangle();
