// Inputs of every shape: a scalar, arrays, a nested array, a bus, an array of buses in a bus.
pragma circom 2.2.0;

bus Point() {
    signal x;
    signal y;
}

bus Segment() {
    Point() ends[2];
    signal weight[3];
}

template Shapes() {
    signal input scalar;
    signal input row[3];
    signal input table[2][3];
    input Point() point;
    input Segment() segment;
    signal output total;

    signal products[2][3];
    var sum = scalar;
    for (var i = 0; i < 2; i++) {
        for (var j = 0; j < 3; j++) {
            products[i][j] <== row[j] * table[i][j];
            sum += (i * 3 + j + 1) * products[i][j];
        }
        sum += segment.ends[i].x + 100 * segment.ends[i].y;
    }
    for (var j = 0; j < 3; j++) {
        sum += (1000 + j) * segment.weight[j];
    }
    signal area <== point.x * point.y;
    total <== sum + area;
}

component main {public [point]} = Shapes();
