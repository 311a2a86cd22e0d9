//go:build !race

package conformance_test

const underRace = false
