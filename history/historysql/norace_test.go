//go:build !race

package historysql_test

const underRace = false
