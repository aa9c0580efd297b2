// The witness program loops for ever when start is 0 (0 / 2 = 0); for others it counts the steps.
pragma circom 2.0.0;

function collatz_steps(start) {
    var value = start;
    var steps = 0;
    while (value != 1) {
        if (value % 2 == 0) {
            value = value \ 2;
        } else {
            value = 3 * value + 1;
        }
        steps += 1;
    }
    return steps;
}

template Collatz() {
    signal input start;
    signal output steps;
    steps <-- collatz_steps(start);
    signal checked <== steps * start;
}

component main = Collatz();
