// Package soak sets the sizes of tests: a short form by default, less under the race detector, and the long form of
// `make soak`.
package soak

import (
	"os"
	"strconv"
)

// On reports whether the long forms are asked for.
func On() bool { return os.Getenv("SOAK") != "" }

// Size is how many cases a test tries: short by default, race under the race detector, long if the long forms are asked for.
func Size(short, race, long int) int {
	switch {
	case On():
		return long
	case UnderRace:
		return race
	}
	return short
}

// Setting returns the integer in an environment variable such as SOAK_KILLS, or the default.
func Setting(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}
