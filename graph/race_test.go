//go:build race

package graph_test

// The race detector makes everything several times slower.
const underRace = true
