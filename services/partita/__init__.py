"""Partita: a scheduler and provers for Groth16 proofs made of partitions."""
