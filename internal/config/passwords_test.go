//go:build !nopostgres

package config

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/history/historypg"
)

// Whatever the driver takes as a password of an address that is accepted, passwords finds.
func TestPasswordsAgreesWithTheDriver(t *testing.T) {
	for _, name := range []string{"PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "PGSERVICE", "PGSSLMODE", "PGHOST"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	pieces := []string{
		"postgres://", "postgresql://", "user", "=", "=", "password", "password=", "Password=", "'", " ", `\`, "@", ":", "/", "?", "&", "%", "%40", "%3D", "%77",
		"pw1", "pw2", "host=localhost", "localhost", ",", "sslpassword", "\t", "\n", "#", ";", "\v", "\f", "pass%77ord=", "dbname=x ", "[::1]", "+", "5432",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	with := 0
	for range 60_000 {
		var b strings.Builder
		if rng.IntN(2) == 0 {
			b.WriteString("postgres://u:")
		}
		for range 1 + rng.IntN(9) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		address := b.String()
		if !wellFormed(address) {
			continue
		}
		target, err := historypg.Resolve(address, historypg.Options{})
		if err != nil || target.Password == "" {
			continue
		}
		with++
		if found := passwords(address); len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), target.Password) {
			t.Fatalf("%q: the driver has the password %q, found %q", address, target.Password, found)
		}
	}
	if with < 500 {
		t.Errorf("only %d addresses with a password", with)
	}
}
