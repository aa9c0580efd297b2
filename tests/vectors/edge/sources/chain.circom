// n constraints, one output and so n + 2 rows in the key.
pragma circom 2.0.0;

template Chain(n) {
    signal input start;
    signal output end;
    signal link[n];
    link[0] <== start * start;
    for (var i = 1; i < n; i++) {
        link[i] <== link[i - 1] * link[i - 1] + i;
    }
    end <== link[n - 1];
}
