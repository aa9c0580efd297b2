// Fails by assert, with a message before it, when age is 18 or less or 256 or more.
pragma circom 2.0.0;

template Bits(n) {
    signal input value;
    signal bits[n];
    var sum = 0;
    for (var i = 0; i < n; i++) {
        bits[i] <-- (value >> i) & 1;
        bits[i] * (bits[i] - 1) === 0;
        sum += bits[i] * 2 ** i;
    }
    value === sum;
}

template Adult() {
    signal input age;
    signal input limit;
    signal output scaled;
    if (age <= 18) {
        log("age must be above 18, it is", age);
    }
    assert(age > 18);
    component bits = Bits(8);
    bits.value <== age;
    scaled <== age * limit;
}

component main {public [limit]} = Adult();
