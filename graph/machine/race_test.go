//go:build race

package machine_test

// The race detector makes everything several times slower.
const simUnderRace = true
