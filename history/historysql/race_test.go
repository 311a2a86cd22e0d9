//go:build race

package historysql_test

// The race detector makes everything several times slower.
const underRace = true
