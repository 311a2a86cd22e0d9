//go:build race

package conformance_test

// The race detector makes everything several times slower.
const underRace = true
