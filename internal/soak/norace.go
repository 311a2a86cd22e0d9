//go:build !race

package soak

// UnderRace reports whether the race detector is on, which makes everything several times slower.
const UnderRace = false
