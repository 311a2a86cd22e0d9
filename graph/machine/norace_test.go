//go:build !race

package machine_test

const simUnderRace = false
