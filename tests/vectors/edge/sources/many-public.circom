// Three hundred public inputs and a single constraint.
pragma circom 2.0.0;

template SumIsSquare(n) {
    signal input values[n];
    signal input root;
    var sum = 0;
    for (var i = 0; i < n; i++) {
        sum += values[i];
    }
    root * root === sum;
}

component main {public [values]} = SumIsSquare(300);
