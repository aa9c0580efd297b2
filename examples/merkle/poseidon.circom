// Poseidon with two inputs (t = 3, S-box x^5, 8 full and 57 partial rounds),
// https://eprint.iacr.org/2019/458. The constants are those of the file that the main component
// includes beside this one: they depend on the field.
pragma circom 2.0.0;

// out = first element of the permutation of (0, left, right).
//
// `state` never holds signals but linear expressions in them, so additions and the matrix cost no
// constraint. Each S-box costs three.
template Poseidon2() {
    signal input left;
    signal input right;
    signal output out;

    var half = 4;
    var partial = 57;
    var constant[65][3] = poseidon_round_constants();
    var m[3][3] = poseidon_mds();

    signal square[8][3];
    signal fourth[8][3];
    signal fifth[8][3];
    signal partial_square[57];
    signal partial_fourth[57];
    signal first[57];
    signal rest[2];

    var state[3] = [0, left, right];
    var next[3];

    for (var r = 0; r < half; r++) {
        for (var i = 0; i < 3; i++) {
            state[i] += constant[r][i];
            square[r][i] <== state[i] * state[i];
            fourth[r][i] <== square[r][i] * square[r][i];
            fifth[r][i] <== fourth[r][i] * state[i];
        }
        for (var i = 0; i < 3; i++) {
            state[i] = m[i][0] * fifth[r][0] + m[i][1] * fifth[r][1] + m[i][2] * fifth[r][2];
        }
    }

    // In a partial round only state[0] goes through the S-box. The signal made is not its fifth
    // power x but the next state[0] = m00 x + m01 s1 + m02 s2, from which x is linear: the S-box of
    // the next round then reads one signal, and the growing sums stay out of the A and B matrices.
    var inverse = 1 / m[0][0];
    for (var k = 0; k < partial; k++) {
        for (var i = 0; i < 3; i++) {
            state[i] += constant[half + k][i];
        }
        partial_square[k] <== state[0] * state[0];
        partial_fourth[k] <== partial_square[k] * partial_square[k];
        var others = m[0][1] * state[1] + m[0][2] * state[2];
        first[k] <== m[0][0] * partial_fourth[k] * state[0] + others;
        var x = inverse * (first[k] - others);
        for (var i = 1; i < 3; i++) {
            next[i] = m[i][0] * x + m[i][1] * state[1] + m[i][2] * state[2];
        }
        state = [first[k], next[1], next[2]];
    }

    // Two linear constraints, so that the full rounds read signals and not sums of sixty terms.
    rest[0] <== state[1];
    rest[1] <== state[2];
    state = [first[partial - 1], rest[0], rest[1]];

    for (var r = half; r < 2 * half; r++) {
        for (var i = 0; i < 3; i++) {
            state[i] += constant[partial + r][i];
            square[r][i] <== state[i] * state[i];
            fourth[r][i] <== square[r][i] * square[r][i];
            fifth[r][i] <== fourth[r][i] * state[i];
        }
        for (var i = 0; i < 3; i++) {
            state[i] = m[i][0] * fifth[r][0] + m[i][1] * fifth[r][1] + m[i][2] * fifth[r][2];
        }
    }
    out <== state[0];
}
