// One constraint; witness (1, product, left, right).
pragma circom 2.0.0;

template Product() {
    signal input left;
    signal input right;
    signal output product;
    product <== left * right;
}

component main = Product();
